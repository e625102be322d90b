"""Optimisers, learning-rate schedules and the average of parameters, as recipes name them."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from engine.cards import added

OVER_ALL_EPOCHS = ("linear", "cosine")
"""Decays whose every step depends on the number of epochs."""


@dataclass(frozen=True)
class OptimiserConfig:
    name: Literal["adam", "adamw", "adagrad"] = "adam"
    lr: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-8
    weight_decay: float = 0.0
    """Decoupled for adamw, where biases and LayerNorm are left out of it."""
    initial_accumulator: float = 0.0
    """adagrad alone."""
    warmup_steps: int = 0
    """The rate climbs linearly over so many steps; a linear or cosine decay multiplies with that, from the first step on."""
    decay: Literal["none", "linear", "cosine", "inverse-sqrt"] = "none"
    """linear, cosine: to zero at the last of training.epochs; inverse-sqrt (T5, TIGER): lr for warmup_steps without a climb,
    then lr · sqrt(warmup_steps / step)."""
    clip_norm: float = 0.0
    """Global gradient norm limit; 0 leaves gradients alone."""
    average: float = added(0.0)
    """Decay of the exponential moving average of the parameters that is validated and kept; 0: the parameters themselves."""


def build(config: OptimiserConfig, model: nn.Module) -> torch.optim.Optimizer:
    parameters = [p for p in model.parameters() if p.requires_grad]
    betas = (config.beta1, config.beta2)
    if config.name == "adam":
        return torch.optim.Adam(parameters, config.lr, betas, config.eps, weight_decay=config.weight_decay, fused=True)
    if config.name == "adagrad":
        return torch.optim.Adagrad(
            parameters,
            config.lr,
            weight_decay=config.weight_decay,
            initial_accumulator_value=config.initial_accumulator,
            eps=config.eps,
        )
    # biases and LayerNorm vectors are not decayed (authors of BERT and BERT4Rec)
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, config.lr, betas, config.eps, fused=True)


def learning_rate(config: OptimiserConfig, step: int, total: int) -> float:
    """Rate at `step` (from 0) of `total`."""
    rate = config.lr
    if config.decay == "inverse-sqrt":
        flat = max(config.warmup_steps, 1)
        return rate * math.sqrt(flat / max(step, flat))
    if config.warmup_steps:
        rate *= min(1.0, (step + 1) / config.warmup_steps)
    if config.decay == "linear":
        rate *= max(0.0, 1 - step / max(total, 1))
    if config.decay == "cosine":
        rate *= (1 + math.cos(math.pi * min(1.0, step / max(total, 1)))) / 2
    return rate


class Average:
    """Exponential moving average of a model's trained parameters, after every step (Polyak & Juditsky 1992).

    With a constant rate the parameters wander about a minimum; their average lies nearer to it. parameters: name → float32
    tensor, as in the model.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.model_parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.parameters = {name: p.detach().clone() for name, p in self.model_parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the parameters after `step` (from 0). Early on the average follows them faster than by the decay."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for name, parameter in self.model_parameters.items():
            self.parameters[name].lerp_(parameter, 1 - decay)

    @contextlib.contextmanager
    def in_the_model(self) -> Iterator[None]:
        """The model has the average for its parameters, and its own again afterwards."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, parameter in self.model_parameters.items():
            replaced = parameter.clone()
            parameter.copy_(self.parameters[name])
            self.parameters[name] = replaced
