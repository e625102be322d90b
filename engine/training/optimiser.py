"""Optimisers and learning-rate schedules as recipes name them."""

from __future__ import annotations

import math

import torch
from torch import nn

from engine.training.recipe import OptimiserConfig


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


def climb(config: OptimiserConfig) -> int:
    """Steps in which the rate grows: until they are done, what validation says is no verdict."""
    return 0 if config.decay == "inverse-sqrt" else config.warmup_steps


def learning_rate(config: OptimiserConfig, step: int, total: int) -> float:
    """Rate at `step` (from 0) of `total`."""
    rate = config.lr
    if config.decay == "inverse-sqrt":
        return rate * math.sqrt(config.warmup_steps / max(step, config.warmup_steps, 1))
    if config.warmup_steps:
        rate *= min(1.0, (step + 1) / config.warmup_steps)
    if config.decay == "linear":
        rate *= max(0.0, 1 - step / max(total, 1))
    if config.decay == "cosine":
        rate *= (1 + math.cos(math.pi * min(1.0, step / max(total, 1)))) / 2
    return rate
