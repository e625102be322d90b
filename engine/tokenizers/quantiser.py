"""Residual quantisation: level after level, the nearest code to what the levels before left over (TIGER, section 3.1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.tokenizers.sinkhorn import assign


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
