"""LETTER (Wang et al., CIKM 2024): RQ-VAE whose codes also say who takes an item, and whose codes are used evenly.

    L = MSE(x̂, x) + mean over levels [codebook + μ · commitment + β · diversity] + α · collaborative

Both further terms are cross-entropies, as in the authors' code (the paper prints them without the logarithm). Differences from
that code, all in what goes wrong there: the number of clusters is honoured; a code that is alone in its cluster has no
positive and is left out, where the authors' loop never ends; commitment reaches the encoder from every level. What RQ-VAE
differs in (standardised inputs, dead codes put to use) holds too; recipes make the teacher's vectors short (docs/models.md).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.cards import Card, Variant
from engine.tokenizers import kmeans
from engine.tokenizers.base import Learning, Material, Vectors
from engine.tokenizers.rqvae import Rqvae, RqvaeConfig


@dataclass(frozen=True)
class LetterConfig(RqvaeConfig):
    levels: int = 4
    reduction: Literal["sum", "mean"] = "mean"
    start: Literal["k-means", "balanced", "random"] = "balanced"
    epsilon: float = 0.003
    alpha: float = 0.02
    """Weight of the collaborative term (authors: .1, .02, .01, .001; scripts: .01 Instruments, .1 Beauty)."""
    beta: float = 0.0001
    """Weight of the diversity term (authors: 1e-2 … 1e-5)."""
    clusters: int = 10
    """Clusters of the codes of a codebook, formed anew every epoch."""
    teacher: str = "sasrec"
    """The run whose item vectors are the collaborative ones: a folder beside this run's, or a path."""
    unit: bool = False
    """Give all collaborative vectors the same length (the authors do not). A teacher trained with cross-entropy gives rare items
    the longest vectors, and they would be everybody's neighbours."""
    scale: float = 0.0
    """The item vectors' mean length after scaling; 0 leaves them as they are (authors)."""


class Letter(Rqvae):
    name = "letter"
    Config = LetterConfig
    card = Card(
        title="LETTER",
        order=20,
        summary="RQ-VAE with two more aims: items that the same users interact with get similar codes, and the vectors of a "
        "level's codes are kept apart, so that items spread over all of them.",
        paper="Wang et al., Learnable Item Tokenization for Generative Recommendation, CIKM 2024 (LETTER)",
        variants=(Variant("letter", "red"),),
    )
    needs: ClassVar[tuple[str, ...]] = ("vectors", "collaborative")
    _collaborative: Vectors
    _clusters: list[kmeans.Labels]
    config: LetterConfig

    @classmethod
    def needs_of(cls, config: LetterConfig) -> tuple[str, ...]:
        return cls.needs if config.alpha else Rqvae.needs

    @classmethod
    def fit(cls, material: Material, config: Any, generator: np.random.Generator, learning: Learning) -> Self:
        if config.alpha and material.of("collaborative").shape[1] != config.dim:
            raise ValueError(
                f"collaborative vectors have {material.of('collaborative').shape[1]} dimensions, the latent {config.dim}"
            )
        if config.beta and config.clusters > config.codes:
            raise ValueError(
                f"tokenizer.clusters: {config.codes} codes do not make {config.clusters} clusters; set {config.codes} at most"
            )
        return super().fit(material, config, generator, learning)

    def begin_epoch(self, material: Material, draw: torch.Generator) -> None:
        if self.config.alpha:
            self._collaborative = material.of("collaborative")
        self._clusters = []
        if not self.config.beta:
            return
        for book in self.network.quantiser.books:
            generator = np.random.default_rng(int(torch.randint(2**62, (), generator=draw)))
            points = book.detach().cpu().numpy()
            sizes = kmeans.limits(len(points), self.config.clusters)
            self._clusters.append(kmeans.cluster(points, self.config.clusters, *sizes, generator)[1])

    def loss(self, x: Tensor, rows: Tensor, draw: torch.Generator) -> dict[str, Tensor]:
        config, batch = self.config, x[rows.to(x.device)]
        reconstruction, quantised = self.network(batch, config.epsilon)
        self._count(quantised.codes)
        terms = self.network.terms(batch, reconstruction, quantised)
        total = self.weighed(terms)
        if config.beta:
            levels = [
                diversity(chosen, book, codes, companions(codes, clusters, draw))
                for chosen, book, codes, clusters in zip(
                    quantised.rows, self.network.quantiser.books, quantised.codes.T, self._clusters, strict=True
                )
            ]
            terms["diversity"] = torch.stack(levels).mean()
            total = total + config.beta * terms["diversity"] * (len(levels) if config.reduction == "sum" else 1)
        if config.alpha:
            teacher = torch.from_numpy(self._collaborative[rows.numpy()]).to(x.device)
            terms["collaborative"] = collaborative(quantised.latent, teacher)
            total = total + config.alpha * terms["collaborative"]
        return {"loss": total, **terms}


def collaborative(latent: Tensor, teacher: Tensor) -> Tensor:
    """−(1/B) Σ_i log softmax_j(ẑ_i · h_j)[i]: which of the batch's items is this one, by its quantised vector.

    latent: ẑ [batch, dim], straight-through, so the gradient goes to the encoder; teacher: h [batch, dim].
    """
    return F.cross_entropy(latent @ teacher.T, torch.arange(len(latent), device=latent.device))


def companions(codes: Tensor, clusters: np.ndarray, draw: torch.Generator) -> Tensor:
    """int64 [batch]: for each item's code another code of the same cluster, drawn; −1 where it is alone in its cluster.

    codes: int64 [batch]; clusters: int [K], the cluster of every code.
    """
    labels = torch.from_numpy(clusters)
    order = labels.argsort(stable=True)  # codes by cluster
    sizes = labels.bincount()
    first = sizes.cumsum(0) - sizes
    position = torch.empty_like(order)
    position[order] = torch.arange(len(order)) - first.repeat_interleave(sizes)
    cpu_codes = codes.cpu()
    size, at = sizes[labels[cpu_codes]], position[cpu_codes]
    drawn = (torch.rand(len(cpu_codes), generator=draw, dtype=torch.float64) * (size - 1)).long()
    drawn = drawn + (drawn >= at)  # any member but the code itself
    companion = order[(first[labels[cpu_codes]] + drawn).clamp(max=len(order) - 1)]
    return torch.where(size > 1, companion, -1).to(codes.device)


def diversity(chosen: Tensor, book: Tensor, codes: Tensor, positives: Tensor) -> Tensor:
    """Mean over items of −log softmax over all codes but the own one of ⟨e_c, e_j⟩, at a code of the same cluster.

    chosen: e_c [batch, dim]; book: [K, dim]; codes, positives: int64 [batch], −1 for items without a positive.
    """
    logits = (chosen @ book.T).scatter(1, codes[:, None], -torch.inf)
    if not bool((positives >= 0).any()):
        return chosen.sum() * 0
    return F.cross_entropy(logits, positives, ignore_index=-1)
