"""BIGRec (Bao et al., A Bi-Step Grounding Paradigm for Large Language Models in Recommendation Systems, arXiv 2308.08434).

A language model learns to write the title of the next item after those of the history (3.1: grounded in the space of
recommendations). What it writes need be no item's title: it is embedded as titles are, by the last state of its last word in the
language model as it came, and the items are ranked by their distance to it (3.2: grounded in items):

    score(j) = −‖g − e_j‖² + ‖g‖² = 2 g · e_j − ‖e_j‖²      g of what was written, e_j of the title of item j

Differs: popularity and collaborative scores are not mixed into distances (3.3). docs/models.md says what else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.cards import Card
from engine.generation.language import TASKS, TITLES, UNSEEN, Adapted, padded
from engine.models.base import ItemIndex
from engine.models.item_to_item import Attributes

ROWS = 64
"""Titles that are embedded at a time."""


@dataclass(frozen=True)
class BIGRecConfig:
    base: str = ""
    """The language model: a name on Hugging Face, or the path of a folder that holds it (authors: LLaMA-7B)."""
    rank: int = 8
    """Rank r of the adapters (authors: 8)."""
    alpha: int = 16
    """Adapters weigh alpha / rank (authors: 16)."""
    dropout: float = 0.05
    """Before the adapters (authors: .05)."""
    adapted: str = "q_proj,v_proj"
    """The layers that get adapters, by their names in the base model."""
    max_length: int = 10
    """Latest items read (authors: 10)."""
    words: int = 32
    """Tokens of a title that is written, at most."""
    beam: int = 4
    """Titles that a beam search keeps, of which the best is taken (authors: 4)."""


class BIGRec(Adapted):
    name = "bigrec"
    Config = BIGRecConfig
    objective = "instructions"
    kind = "generative"
    card = Card(
        title="BIGRec",
        order=66,
        summary="A pretrained language model that learned to generate the title of what comes next after the titles of the "
        "history. Items are ranked by how near their titles are to what it generated.",
        paper="Bao, Zhang, Wang, Zhang, Yang, Luo, Chen, Feng & Tian, A Bi-Step Grounding Paradigm for Large Language Models in "
        "Recommendation Systems, 2023",
        geometry="euclidean",
        reasons={"attention": UNSEEN},
    )
    needs = ("attributes",)
    exports = ()

    rows: Tensor | None
    """Of the index, once it was needed: the model as it came is not trained, so they stay what they are."""

    def __init__(
        self, config: BIGRecConfig, num_items: int, num_users: int, generator: torch.Generator, attributes: Attributes
    ) -> None:
        super().__init__()
        self.config, self.num_items, self.max_length = config, num_items, config.max_length
        self.attributes, self.histories = attributes, 16
        if not any(attributes):
            raise ValueError("no item has a title to write; take sasrec, which reads none")
        self.adapt(config, generator)
        self.register_buffer("rows", None, persistent=False)

    def question(self, items: Sequence[int]) -> list[int]:
        titles = ", ".join(self.title(item) for item in items if item != self.pad)
        return self.start() + self.fill(TASKS[TITLES][0].question, {"texts": self.text(titles)})

    def written(self, items: Tensor) -> list[list[int]]:
        """The title that is written after each history, as numbers of words. items: int64 [batch, length]."""
        from transformers import DynamicCache

        ids, mask = padded([self.question(row) for row in items.tolist()], items.device)
        # what is written before is read once, not once per title that the beam keeps
        _, cache = self.run(ids[:, :-1], mask[:, :-1], (mask[:, :-1].cumsum(1) - 1).clamp(min=0), DynamicCache())
        cache.batch_repeat_interleave(self.config.beam)
        end = self.tokenizer.eos_token_id
        written = self.base.generate(
            input_ids=ids, attention_mask=mask, past_key_values=cache,
            max_new_tokens=self.config.words, num_beams=self.config.beam,
            do_sample=False, eos_token_id=end, pad_token_id=end if end is not None else 0,
        )[:, ids.shape[1] :].tolist()  # fmt: skip
        return [row[: row.index(end)] if end in row else row for row in written]

    @torch.no_grad()
    def embedded(self, titles: Sequence[Sequence[int]]) -> Tensor:
        """float32 [titles, width]: the last state of each, in the language model without adapters."""
        vectors = []
        device = self.base.get_input_embeddings().weight.device
        with self.language.disable_adapter():
            for first in range(0, len(titles), ROWS):
                rows = [self.start() + list(title or self.text("?")) for title in titles[first : first + ROWS]]
                ids, mask = padded(rows, device)
                states, _ = self.run(ids, mask, (mask.cumsum(1) - 1).clamp(min=0))
                vectors.append(states[:, -1].float())
        return torch.cat(vectors)

    def query(self, items: Tensor, users: Tensor | None = None) -> Tensor:
        return 2 * self.embedded(self.written(items))

    def index(self) -> ItemIndex:
        if self.rows is None:
            self.rows = self.embedded([self.text(self.title(item)) for item in range(self.num_items)])
        return ItemIndex(self.rows, -self.rows.square().sum(1))
