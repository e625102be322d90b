"""RQ-VAE: an autoencoder whose latent vector is rounded level by level (TIGER, Rajput et al., NeurIPS 2023, section 3.1).

What is known to go wrong and is seen to here: inputs are standardised and trained with AdamW (raw unit vectors under the
paper's Adagrad collapse onto a few codes); codebooks start from k-means over the whole catalogue and not over the first
batch; a code that nobody used for some epochs is put where an item is.
"""

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.console import Progress
from engine.errors import SeqscopeError
from engine.tokenizers import kmeans
from engine.tokenizers.base import Codes, Learning, Material, Scaling, Tokenizer, Vectors
from engine.tokenizers.sinkhorn import assign
from engine.training import checkpoint
from engine.training.checkpoint import State
from engine.training.loop import seed_dropout, seed_of
from engine.training.optimiser import build, learning_rate

ROUNDS = 8
BATCH = 4096
CHECKPOINT = "checkpoint.safetensors"

# --- residual quantisation: level after level, the nearest code to what the levels before left over


@dataclass(frozen=True)
class Quantised:
    codes: Tensor
    """int64 [batch, levels]"""
    latent: Tensor
    """[batch, dim]: ẑ, the sum of the chosen rows; its gradient goes to the encoder as though nothing had been rounded."""
    residuals: tuple[Tensor, ...]
    """Per level [batch, dim]: r_d, what is quantised there; gradient to the encoder, none to the levels before."""
    rows: tuple[Tensor, ...]
    """Per level [batch, dim]: the chosen rows e_c of the codebook, with gradient."""


class ResidualQuantiser(nn.Module):
    """Codebooks [codes, dim], one per level.

    r_1 = z, c_d = argmin ‖r_d − e‖², r_{d+1} = r_d − sg[e_{c_d}]. The rows are held fixed in the residual, so that a level's
    codes answer for their own residual and not for those of the levels after; the encoder hears from every level.
    """

    def __init__(self, levels: int, codes: int, dim: int) -> None:
        super().__init__()
        self.books = nn.ParameterList([nn.Parameter(torch.zeros(codes, dim)) for _ in range(levels)])

    def forward(self, z: Tensor, epsilon: float = 0.0, iterations: int = 50) -> Quantised:
        """z: [batch, dim]; epsilon: above 0 spreads the last level's codes evenly over the batch (Sinkhorn)."""
        residual, codes, residuals, rows = z, [], [], []
        for level, book in enumerate(self.books):
            with torch.no_grad():
                last = level == len(self.books) - 1
                chosen = assign(distances(residual, book), epsilon if last else 0.0, iterations)
            codes.append(chosen)
            residuals.append(residual)
            rows.append(book[chosen])
            residual = residual - rows[-1].detach()
        total = torch.stack(rows).sum(0)
        return Quantised(torch.stack(codes, 1), z + (total - z).detach(), tuple(residuals), tuple(rows))

    @torch.no_grad()
    def rows_of(self, codes: Tensor) -> Tensor:
        """[batch, dim]: ẑ of codes int64 [batch, levels]"""
        return torch.stack([book[codes[:, level]] for level, book in enumerate(self.books)]).sum(0)


def distances(points: Tensor, book: Tensor) -> Tensor:
    """[points, codes]: squared distances."""
    return points.square().sum(1, keepdim=True) - 2 * points @ book.T + book.square().sum(1)


# --- the training loop: epochs over the catalogue, checkpoints, and a stop with a message at a loss that is none
#
# All randomness of an epoch follows from (seed, epoch), so that a training that goes on from a checkpoint computes what it would
# have computed without the interruption: on a CPU bit for bit.


def learn(
    network: nn.Module,
    items: int,
    learning: Learning,
    *,
    prepare: Callable[[torch.Generator], None],
    begin: Callable[[torch.Generator], None],
    loss: Callable[[Tensor, torch.Generator], dict[str, Tensor]],
    end: Callable[[torch.optim.Optimizer, torch.Generator], None],
) -> State:
    """Train `network` for the epochs of the recipe, or go on where an interrupted training of the same stopped.

    prepare: once, before the first epoch; begin and end: around every epoch; loss: the terms of the loss for some items
    (int64 [batch]), of which "loss" is minimised and all are kept in the curve as means over the epoch.
    """
    training, state = learning.training, State()
    optimiser = build(learning.optimiser, network)
    path = None if learning.folder is None else learning.folder / CHECKPOINT
    if path is not None and path.exists():
        state = checkpoint.check(path, learning.identity)
        checkpoint.load(path, network, optimiser)
    else:
        prepare(_generator(training.seed, "prepare"))
        state.identity = learning.identity
    progress = Progress(training.epochs, learning.label, title="")
    progress.started -= state.seconds
    steps = math.ceil(items / training.batch_size)
    saved = time.monotonic()
    while state.epoch < training.epochs:
        began = time.monotonic()
        # the order of items has draws of its own, so that runs with and without a term of the loss can be compared
        generator = _generator(training.seed, state.epoch, "draws")
        seed_dropout(seed_of(training.seed, state.epoch, "dropout"))
        begin(generator)
        network.train()
        order = torch.randperm(items, generator=_generator(training.seed, state.epoch, "order"))
        sums: dict[str, Tensor] = {}
        for rows in order.split(training.batch_size):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(learning.optimiser, state.total_steps, steps * training.epochs)
            terms = loss(rows, generator)
            optimiser.zero_grad(set_to_none=True)
            terms["loss"].backward()
            if learning.optimiser.clip_norm:
                nn.utils.clip_grad_norm_(network.parameters(), learning.optimiser.clip_norm)
            optimiser.step()
            state.total_steps += 1
            for name, term in terms.items():
                sums[name] = sums.get(name, torch.zeros(())) + term.detach().double() * len(rows)
        means = {name: float(total) / items for name, total in sums.items()}
        if not math.isfinite(means["loss"]):
            raise SeqscopeError(
                f"{learning.label}, epoch {state.epoch + 1}: the loss is {means['loss']}. "
                "Try a smaller optimiser.lr, or optimiser.clip_norm=5."
            )
        network.eval()
        end(optimiser, generator)
        state.epoch += 1
        state.seconds += time.monotonic() - began
        state.finished = state.epoch == training.epochs
        rounded = {name: float(f"{mean:.6g}") for name, mean in means.items()}
        state.curve.append({"epoch": state.epoch, "seconds": round(state.seconds, 3), **rounded})
        if path is not None and (state.finished or time.monotonic() - saved >= training.checkpoint_seconds):
            checkpoint.save(path, network, optimiser, state)
            saved = time.monotonic()
        words = f"epoch {state.epoch}/{training.epochs} loss {means['loss']:.4f}"
        progress.update(state.epoch, words, f"epoch {state.epoch} of {training.epochs}")
    return state


def _generator(*words: object) -> torch.Generator:
    return torch.Generator().manual_seed(seed_of("tokenizer", *words))


# --- the tokenizer


@dataclass(frozen=True)
class RqvaeConfig:
    levels: int = 3
    codes: int = 256
    """Per level, K."""
    dim: int = 32
    """Of the latent vector and of the codes."""
    hidden: tuple[int, ...] = (512, 256, 128)
    """Widths between the item vector and the latent; the decoder mirrors them."""
    standardise: bool = True
    """Scale every dimension of the item vectors to mean 0 and deviation 1."""
    commitment: float = 0.25
    """Weight of ‖r − sg[e]‖² beside ‖sg[r] − e‖² (both papers: .25; LETTER calls it μ)."""
    reduction: Literal["sum", "mean"] = "sum"
    """Of squared errors over dimensions. sum: ‖·‖² as TIGER writes it, levels added up; mean: LETTER's and LC-Rec's code,
    mean over dimensions and over levels. Weights of further terms mean something else under each."""
    start: Literal["k-means", "balanced", "random"] = "k-means"
    """Where codebooks start. k-means: residual k-means over the latents of the whole catalogue; balanced: with LETTER's
    limits on the size of a cluster; random: items' residuals drawn at random."""
    dead_after: int = 5
    """Epochs without any item after which a code is put at an item's residual; 0 leaves dead codes dead."""
    epsilon: float = 0.0
    """Above 0: Sinkhorn's ε for the last level while learning (LC-Rec's uniform semantic mapping and LETTER: .003)."""
    iterations: int = 50
    """Of Sinkhorn."""


class Network(nn.Module):
    """x → z → ẑ → x̂. Widths [d, *hidden, dim] and back, ReLU between, weights Xavier-normal, biases 0."""

    def __init__(self, config: RqvaeConfig, inputs: int) -> None:
        super().__init__()
        widths = [inputs, *config.hidden, config.dim]
        self.config = config
        self.encoder, self.decoder = _layers(widths), _layers(widths[::-1])
        self.quantiser = ResidualQuantiser(config.levels, config.codes, config.dim)
        self.register_buffer("idle", torch.zeros(config.levels, config.codes))  # epochs in a row without an item
        self.idle: Tensor

    def forward(self, x: Tensor, epsilon: float = 0.0) -> tuple[Tensor, Quantised]:
        """x: float32 [batch, d] → x̂ [batch, d] and what was quantised on the way"""
        quantised: Quantised = self.quantiser(self.encoder(x), epsilon, self.config.iterations)
        return self.decoder(quantised.latent), quantised

    def terms(self, x: Tensor, reconstruction: Tensor, quantised: Quantised) -> dict[str, Tensor]:
        """The parts of the loss, each a mean over the batch: reconstruction, codebook, commitment (unweighted)."""
        fold = torch.sum if self.config.reduction == "sum" else torch.mean

        def error(a: Tensor, b: Tensor) -> Tensor:
            return fold((a - b).square(), dim=1).mean()

        pairs = list(zip(quantised.residuals, quantised.rows, strict=True))
        return {
            "reconstruction": error(x, reconstruction),
            "codebook": fold(torch.stack([error(r.detach(), e) for r, e in pairs]), dim=0),
            "commitment": fold(torch.stack([error(r, e.detach()) for r, e in pairs]), dim=0),
        }


def _layers(widths: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width, following in itertools.pairwise(widths):
        layers += [nn.Linear(width, following), nn.ReLU()]
        nn.init.xavier_normal_(layers[-2].weight)  # type: ignore[arg-type]
        nn.init.zeros_(layers[-2].bias)  # type: ignore[arg-type]
    return nn.Sequential(*layers[:-1])


class Rqvae(Tokenizer):
    name = "rqvae"
    Config = RqvaeConfig
    card = Card(
        title="RQ-VAE",
        order=10,
        summary="An autoencoder whose middle is rounded to codes, level after level: the first says what an item is "
        "roughly, each further one says what the ones before left over. Learned from the items' words alone.",
        paper="Rajput et al., Recommender Systems with Generative Retrieval, NeurIPS 2023 (TIGER)",
        variants=(
            Variant("rqvae", "blue", OnPage()),
            Variant(
                "lc-rec-rqvae",
                "violet",
                order=25,
                summary="RQ-VAE whose last level is filled evenly: items that would collide are assigned anew by "
                "optimal transport, so that no further code is needed.",
                paper="Zheng et al., Adapting Large Language Models by Integrating Collaborative Semantics for "
                "Recommendation, ICDE 2024",
            ),
        ),
    )
    learns = True
    needs: ClassVar[tuple[str, ...]] = ("vectors",)

    def __init__(self, config: RqvaeConfig, scaling: Scaling, network: Network) -> None:
        self.config, self.scaling, self.network, self.record = config, scaling, network.eval(), {}

    @classmethod
    def fit(cls, material: Material, config: Any, generator: np.random.Generator, learning: Learning) -> Self:
        scaling = Scaling.of(material.of("vectors"), config.standardise)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(generator.integers(2**63)))
            network = Network(config, len(scaling.mean))
        tokenizer = cls(config, scaling, network)
        network.to(learning.device)
        x = torch.from_numpy(scaling(material.of("vectors"))).to(learning.device)
        state = learn(
            network, len(material), learning,
            prepare=lambda draw: tokenizer._start(x, draw),
            begin=lambda draw: tokenizer.begin_epoch(material, draw),
            loss=lambda rows, draw: tokenizer.loss(x, rows, draw),
            end=lambda optimiser, draw: tokenizer._end_epoch(x, optimiser, draw),
        )  # fmt: skip
        network.to("cpu")
        if config.dead_after:
            tokenizer._revive(x.cpu())
        tokenizer.record = {"epochs": state.epoch, "seconds": round(state.seconds, 1), "curve": state.curve}
        return tokenizer

    # --- learning ----------------------------------------------------------------------------------------------------

    def begin_epoch(self, material: Material, draw: torch.Generator) -> None:
        """Before every epoch; LETTER forms its clusters of codes here."""

    def loss(self, x: Tensor, rows: Tensor, draw: torch.Generator) -> dict[str, Tensor]:
        """The loss of the items `rows` and its parts; x: float32 [items, d] of the whole catalogue."""
        batch = x[rows.to(x.device)]
        reconstruction, quantised = self.network(batch, self.config.epsilon)
        self._count(quantised.codes)
        terms = self.network.terms(batch, reconstruction, quantised)
        return {"loss": self.weighed(terms), **terms}

    def weighed(self, terms: dict[str, Tensor]) -> Tensor:
        return terms["reconstruction"] + terms["codebook"] + self.config.commitment * terms["commitment"]

    def _count(self, codes: Tensor) -> None:
        for level in range(self.config.levels):
            self.network.idle[level, codes[:, level]] = -1.0  # used; the end of the epoch makes it 0

    @torch.no_grad()
    def _start(self, x: Tensor, draw: torch.Generator) -> None:
        """Codebooks from all latents of the untrained encoder."""
        residual = self._encode(x).cpu()
        generator = np.random.default_rng(seed_of(draw.initial_seed(), "codebooks"))
        for book in self.network.quantiser.books:
            points = residual.numpy()
            if self.config.start == "k-means":
                rows = kmeans.centres(points, self.config.codes, generator)
            elif self.config.start == "balanced":
                rows = kmeans.codebook(points, self.config.codes, generator)
            else:
                rows = points[generator.choice(len(points), self.config.codes, replace=len(points) < self.config.codes)]
            book.copy_(torch.from_numpy(rows))
            residual = residual - torch.from_numpy(rows)[distances(residual, torch.from_numpy(rows)).argmin(1)]

    @torch.no_grad()
    def _end_epoch(self, x: Tensor, optimiser: torch.optim.Optimizer, draw: torch.Generator) -> None:
        """Codes that nobody used for `dead_after` epochs go to items' residuals, the worst served first among some drawn."""
        idle, patience = self.network.idle, self.config.dead_after
        idle += 1
        if not patience or not bool((idle >= patience).any()):
            return
        residual = self._encode(x)
        for level, book in enumerate(self.network.quantiser.books):
            square = distances(residual, book)
            chosen = square.argmin(1)
            dead = (idle[level] >= patience).nonzero()[:, 0]
            if len(dead):
                # items drawn by how badly they are served: a code is worth most where the error is
                weights = square.gather(1, chosen[:, None])[:, 0].clamp(min=0).cpu().double() + 1e-12
                places = torch.multinomial(weights, min(len(dead), len(weights)), generator=draw)
                dead = dead[: len(places)]
                book[dead] = residual[places.to(residual.device)]
                idle[level, dead] = 0
                for moment in optimiser.state.get(book, {}).values():
                    if moment.shape == book.shape:
                        moment[dead] = 0  # what the optimiser remembers belongs to the code's old place
            residual = residual - book[chosen]

    @torch.no_grad()
    def _revive(self, x: Tensor) -> None:
        """What is dead when training ends goes to the residuals of the worst served items, level by level."""
        residual = self._encode(x)
        for book in self.network.quantiser.books:
            for _ in range(ROUNDS):  # items nearest to a code that was moved may leave their own one empty
                error, chosen = distances(residual, book).min(1)
                used = chosen.bincount(minlength=len(book))
                waiting = (used == 0).nonzero()[:, 0].tolist()
                worst = error.argsort(descending=True, stable=True).tolist()
                for item in (item for item in worst if error[item] > 0):
                    if waiting and used[chosen[item]] > 1:
                        used[chosen[item]] -= 1
                        book[waiting.pop()] = residual[item]
            residual = residual - book[distances(residual, book).argmin(1)]

    @torch.no_grad()
    def _encode(self, x: Tensor) -> Tensor:
        return torch.cat([self.network.encoder(part) for part in x.split(BATCH)])

    # --- what it gives -----------------------------------------------------------------------------------------------

    def latents(self, material: Material) -> Vectors:
        latents: Vectors = self._encode(torch.from_numpy(self.scaling(material.of("vectors")))).numpy()
        return latents

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.config.codes,) * self.config.levels

    @torch.no_grad()
    def identify(self, material: Material) -> Codes:
        z = torch.from_numpy(self.latents(material))
        parts = [self.network.quantiser(part).codes for part in z.split(BATCH)]
        codes: Codes = torch.cat(parts).numpy().astype(np.int32)
        return codes

    def quantised(self, codes: Codes) -> Vectors:
        vectors: Vectors = self.network.quantiser.rows_of(
            torch.from_numpy(codes[:, : self.config.levels]).long()
        ).numpy()
        return vectors

    def codebooks(self) -> Vectors:
        return np.stack([book.detach().numpy() for book in self.network.quantiser.books])

    @torch.no_grad()
    def last(self, material: Material, codes: Codes) -> Vectors:
        """float32 [items, codes]: squared distance of each item's last residual to every code of the last level."""
        books = list(self.network.quantiser.books)
        residual = torch.from_numpy(self.latents(material))
        for level, book in enumerate(books[:-1]):
            residual = residual - book[torch.from_numpy(codes[:, level]).long()]
        squared_distances: Vectors = distances(residual, books[-1]).numpy()
        return squared_distances

    @torch.no_grad()
    def lost(self, material: Material, codes: Codes) -> float:
        reconstruction = self.network.decoder(torch.from_numpy(self.quantised(codes))).numpy()
        return self.scaling.lost(self.scaling(material.of("vectors")), reconstruction)

    def parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {f"network.{name}": tensor.numpy() for name, tensor in self.network.state_dict().items()}
        return {"mean": self.scaling.mean, "scale": self.scaling.scale, **arrays}, {}

    @classmethod
    def restore(cls, config: Any, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self:
        network = Network(config, len(arrays["mean"]))
        tensors = {
            name.removeprefix("network."): torch.from_numpy(a) for name, a in arrays.items() if "network." in name
        }
        network.load_state_dict(tensors)
        return cls(config, Scaling(arrays["mean"], arrays["scale"]), network)
