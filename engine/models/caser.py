"""Caser (Tang & Wang, WSDM 2018): the latest L items as an image L × d, and filters that slide over it.

Horizontal filters of heights 1 to L look at that many items in a row, all of their dimensions, and keep what fits best anywhere
in the window (max over places, 3.2.1); vertical filters are weighted sums of the L items, a weight per place (3.2.2). Both go
through one layer to z, and a score is [z; user vector] · W'_i + b'_i (3.3).

Differs: windows near the start of a history are padded with zeros, windows near its end have fewer than T targets; authors' code
drops both. Filters have no biases, as in the paper (their code has). docs/models.md lists the rest.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card, OnPage, Variant
from engine.models.factorisation import TASTE
from engine.models.graph import Graph
from engine.models.layers import dropout
from engine.models.windowed import UserAndWindow


@dataclass(frozen=True)
class CaserConfig:
    dim: int = 50
    """Width d of item and user vectors, and of z."""
    window: int = 5
    """Latest items read, L (paper: 5 for MovieLens)."""
    horizontal: int = 16
    """Horizontal filters of each height from 1 to L (authors: 16)."""
    vertical: int = 4
    """Vertical filters (authors: 4)."""
    dropout: float = 0.5
    """On what the filters found (authors: .5)."""
    fold_in: int = 200
    """Latest items of a history that fold a user in."""


class Caser(UserAndWindow):
    name = "caser"
    Config = CaserConfig
    card = Card(
        title="Caser",
        order=31,
        summary="Looks at the last few items as at a picture: filters slide over it and find what stands in a row, others weigh "
        "the places. A vector of the user's lasting taste is added.",
        paper="Tang & Wang, Personalized Top-N Sequential Recommendation via Convolutional Sequence Embedding, WSDM 2018",
        reasons={"attention": "It has filters in place of attention, whose weights are the same for every history."},
        variants=(Variant("caser", page=OnPage(examples=10)),),
    )

    def __init__(
        self, config: CaserConfig, num_items: int, num_users: int, generator: torch.Generator, graph: Graph
    ) -> None:
        super().__init__(config, num_items, num_users, generator, graph, targets_dim=2 * config.dim)
        heights = range(1, config.window + 1)
        self.rows = nn.ParameterList(torch.empty(config.horizontal, config.dim, height) for height in heights)
        self.columns = nn.Linear(config.window, config.vertical, bias=False)
        self.joint = nn.Linear(config.horizontal * config.window + config.vertical * config.dim, config.dim)
        self.bias = nn.Parameter(torch.zeros(num_items))
        self.filter_window = config.window
        self.score_parts = {"the latest items, through the filters": config.dim, TASTE: config.dim}
        for matrix in (*self.rows, self.columns.weight, self.joint.weight):
            nn.init.xavier_uniform_(matrix, generator=generator)
        nn.init.zeros_(self.joint.bias)

    def read(self, window: Tensor, people: Tensor) -> Tensor:
        image = self._image(window)
        return self._answer(image, self._matches(image), people)

    def query_with_matches(self, items: Tensor) -> tuple[Tensor, list[Tensor]]:
        image = self._image(self.window(items))
        matches = self._matches(image)
        return self._answer(image, matches, self.people(items, None)), matches

    def _image(self, window: Tensor) -> Tensor:
        image: Tensor = self.items(window).transpose(1, 2)  # [batch, d, L]
        return image

    def _answer(self, image: Tensor, matches: list[Tensor], people: Tensor) -> Tensor:
        best = [of_height.amax(1) for of_height in matches]
        features = torch.cat([*best, self.columns(image).transpose(1, 2).flatten(1)], dim=1)
        z = F.relu(self.joint(dropout(features, self.config.dropout, self.training)))
        return torch.cat([z, people], dim=1)

    def _matches(self, image: Tensor) -> list[Tensor]:
        # every filter at every place is a row of one matrix, mostly of zeros: windows are so short that its product takes half
        # the time of five convolutions and their gradients (4.8 and 10.1 ms for 512 windows, one thread of an AMD EPYC)
        size = self.config.window
        placed, rows = [], []
        for height, filters in enumerate(self.rows, 1):
            placed += [F.pad(filters, (start, size - height - start)) for start in range(size - height + 1)]
            rows.append((size - height + 1) * len(filters))
        fits = F.relu(image.flatten(1) @ torch.cat(placed).flatten(1).T)
        return [part.unflatten(1, (-1, self.config.horizontal)) for part in fits.split(rows, dim=1)]

    @property
    def place_weights(self) -> Tensor:  # type: ignore[override]
        """Of the vertical filters: float32 [filters, L]."""
        return self.columns.weight
