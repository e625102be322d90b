"""What every generator is: a network that reads a history once, then writes an identifier token by token."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.bundle.trie import WALK, Trie
from engine.data.identifiers import NONE, Identifiers
from engine.generation import search
from engine.generation.search import Memory, Past, TorchTrie
from engine.models.base import AttentionShape, ItemIndex, Recommender
from engine.models.layers import dropout, visible

CODES = "It generates semantic IDs instead of placing items in a space, so there are no item vectors to compare."


@dataclass(frozen=True)
class GeneratorConfig:
    """Of a transformer that is trained from nothing."""

    identifiers: str = "rqvae"
    """The tokenizer run that made the identifiers: a folder beside this run's, or a path."""
    dim: int = 128
    """Width of token vectors and layers."""
    layers: int = 4
    """Layers, of an encoder and of a decoder each where there are both."""
    heads: int = 4
    """Attention heads."""
    head_dim: int = 32
    """Width of a head, an even number where places are told by rotation; heads · head_dim need not be dim."""
    inner: int = 384
    """Width within the feed-forward layers (LLaMA: 8/3 of dim)."""
    dropout: float = 0.1
    """On embeddings, feed-forward layers and the output of every sub-layer."""
    attention_dropout: float = 0.1
    """On attention weights."""
    max_length: int = 20
    """Latest items read."""
    tied: bool = True
    """Tokens are written with the table that reads them; False gives the output a table of its own (LLaMA)."""
    beam: int = 20
    """Identifiers that a beam search keeps."""


class Generator(Recommender):
    """A recommender whose `query` is the score of every item: the log-probability of its identifier.

    Probabilities are those of a walk down the trie: at every node the softmax runs over its children alone. Items that share an
    identifier share a score. `beam` is how many identifiers validation searches for, and the test where walking the whole trie is
    too dear (`walks`).
    """

    needs: ClassVar[tuple[str, ...]] = ("identifiers",)
    exports: ClassVar[tuple[str, ...]] = ("generator",)
    stop: ClassVar[int] = 0
    """Tokens that stand before each item of a history, 0 or 1 (BOS)."""

    tokens: Tensor
    written: Tensor
    dim: int
    layers: int
    heads: int
    head_dim: int

    def __init__(self, num_items: int, max_length: int, beam: int, identifiers: Identifiers) -> None:
        super().__init__()
        if len(identifiers) != num_items:
            raise ValueError(f"identifiers of {len(identifiers)} items do not fit a catalogue of {num_items}")
        self.num_items, self.max_length, self.beam = num_items, max_length, beam
        self.identifiers, self.trie = identifiers, Trie.build(identifiers)
        self.levels, self.vocabulary = identifiers.levels, identifiers.vocabulary
        # one more row for padding, whose tokens are never looked at
        codes = np.concatenate([identifiers.tokens(), np.zeros((1, self.levels), np.int64)])
        short = np.concatenate([identifiers.codes == NONE, np.ones((1, self.levels), bool)])
        written = ~short
        written[:-1, 1:] |= ~short[:-1, :-1]  # the first END is written, those after it stand for nothing
        self.register_buffer("tokens", torch.from_numpy(codes), persistent=False)
        self.register_buffer("written", torch.from_numpy(written), persistent=False)
        self._on_device: TorchTrie | None = None

    @property
    def bos(self) -> int:
        """The token that asks for the first code."""
        return self.vocabulary

    @property
    def branches(self) -> TorchTrie:
        """The trie, on the model's device."""
        if self._on_device is None or self._on_device.device != self.tokens.device:
            self._on_device = TorchTrie(self.trie, self.tokens.device)
        return self._on_device

    @property
    def shares(self) -> bool:
        """Whether `teach` works: all targets of a sequence share one pass."""
        return True

    @property
    def walks(self) -> bool:
        """Whether the catalogue is small enough to score all of it."""
        return len(self.trie) <= WALK

    # --- what a network defines

    def encode(self, items: Tensor, users: Tensor | None = None) -> Memory:
        """Read histories: int64 [people, length], padded on the left; users as in `query`."""
        raise TypeError(f"{type(self).__name__} defines no encode")

    def decode(
        self,
        tokens: Tensor,
        memory: Memory,
        past: Past | None = None,
        places: Tensor | None = None,
        kept: list[Tensor] | None = None,
    ) -> tuple[Tensor, Past]:
        """Logits after each of `tokens`, int64 [people, beams, new], which follow what `past` holds.

        places: int64 [new], how many tokens of the identifier stand before each (default: counted from `past`). kept receives
        per layer what was looked at in the memory, [people, heads, beams · new, places].
        Returns float32 [people, beams, new, vocabulary] and the past with the new tokens in it.
        """
        raise TypeError(f"{type(self).__name__} defines no decode")

    def teach(self, window: Tensor, users: Tensor | None = None, last: int | None = None) -> Tensor:
        """One pass for all targets of a window: logits of every item but the first after the items before it.

        window: int64 [people, length + 1] → float32 [people, length, levels, vocabulary]; with `last`, of the last so many items.
        """
        raise TypeError(f"{type(self).__name__} defines no teach")

    def attention_between_codes(self, items: Tensor) -> Tensor:
        """What reading a history looked at: float32 [people, layers, heads, length · levels, length · levels], rows sum to 1."""
        raise TypeError(f"{type(self).__name__} defines no attention_between_codes")

    # --- a recommender

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return search.exact_scores(self, self.encode(items, users))

    def index(self) -> ItemIndex:
        return ItemIndex(None, torch.zeros(self.num_items, device=self.tokens.device))

    def inputs(self, targets: Tensor) -> Tensor:
        """Items [...] → the tokens that a decoder reads to write them, [..., levels]: BOS and all codes but the last."""
        codes = self.tokens[targets]
        return torch.cat([torch.full_like(codes[..., :1], self.bos), codes[..., :-1]], -1)

    def after(self, items: Tensor, targets: Tensor, users: Tensor | None = None) -> Tensor:
        """Logits of the codes of `targets`, int64 [people, targets], each right after the history `items`.

        Returns float32 [people, targets, levels, vocabulary].
        """
        return self.decode(self.inputs(targets), self.encode(items, users))[0]

    def candidates(self, items: Tensor, targets: Tensor, users: Tensor | None = None) -> Tensor:
        """As `query`, for some items: their scores float32 [people, targets], computed path by path."""
        return search.path_scores(self, self.encode(items, users), targets)

    def beam_scores(self, items: Tensor, users: Tensor | None, width: int, blocked: Tensor) -> Tensor:
        """As `query`, `search.OUTSIDE` for items that the beam does not reach."""
        beams = search.beam_search(self, self.encode(items, users), width, blocked=blocked)
        return search.item_scores(self, beams)

    def flat(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens of histories, int64 [people, length · (stop + levels)], and which of them count (bool)."""
        codes, real = self.tokens[items], self.written[items]
        if self.stop:
            codes = torch.cat([torch.full_like(codes[..., :1], self.bos), codes], -1)
            real = torch.cat([real[..., :1], real], -1)
        return codes.flatten(1), real.flatten(1)

    def over_items(self, weights: Tensor, items: Tensor) -> Tensor:
        """Attention between tokens, [people, layers, heads, tokens, tokens], as attention between items.

        A row is the mean over the tokens of an item, a column the sum over the tokens of an item, so rows sum to 1.
        """
        width = self.stop + self.levels
        real = self.flat(items)[1].unflatten(1, (-1, width)).to(weights.dtype)
        share = real / real.sum(-1, keepdim=True).clamp(min=1)
        by_key = weights.unflatten(-1, (-1, width)).sum(-1)
        return (by_key.unflatten(-2, (-1, width)) * share[:, None, None, :, :, None]).sum(-2)


def allowed(real: Tensor, group: int, causal: bool) -> Tensor:
    """What to add to a logit, float32 [people, 1, places, places]: 0 where a place may look, −inf elsewhere.

    real: bool [people, places]. causal: a place sees nothing after the `group` of places that it belongs to. A place may always
    look at itself, so that no row of a softmax is empty.
    """
    if not causal:
        return visible(real.long(), 0, causal=False)
    place = torch.arange(real.shape[1], device=real.device)
    seen = real[:, None, None, :] & (place[None, :] // group <= place[:, None] // group)
    seen = seen | (place[None, :] == place[:, None])
    return torch.zeros(seen.shape, device=real.device).masked_fill(~seen, -torch.inf)


def weigh(logits: Tensor, rate: float, training: bool, kept: list[Tensor] | None = None) -> Tensor:
    """Softmax of attention logits, with dropout in training; the weights themselves go into `kept` where it is given."""
    weights = F.softmax(logits, dim=-1)
    if kept is not None:
        kept.append(weights)
    return dropout(weights, rate, training)


def shape_of(model: Generator, causal: bool) -> AttentionShape:
    return AttentionShape(model.layers, model.heads, causal, model.max_length, next_token=False, pooled=not causal)
