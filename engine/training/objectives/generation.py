"""Objectives of models that generate: the codes of the next item, and instructions in codes and words."""

import collections
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.cards import added
from engine.errors import UsageError
from engine.generation import Generator
from engine.generation.language import TASKS, TITLES, Adapted
from engine.training.objectives.base import Batch, Objective
from engine.training.sampling import few_of_each, gather_last, owners, stride, windows

# --- the next item's codes, written after those of the history: cross-entropy at every code (TIGER, LETTER, LC-Rec)
#
# A network that reads from left to right (`decoder-only`, or an encoder–decoder with a causal encoder) has all items of a
# window as targets of one pass. An encoder that looks both ways would let a target see itself, so there every target is an
# example of its own, with the history before it; batches mix the targets of many users, and `per_user` takes a few of each
# user's per epoch. In both, the decoder reads the true codes of its target, so all levels are learned at once.


@dataclass(frozen=True)
class IdentifierConfig:
    """The codes of the next item are written after the codes of the history (TIGER, LETTER, LC-Rec)."""

    temperature: float = 1.0
    """Logits are divided by τ before the softmax (LETTER's ranking-guided loss; 1 is plain cross-entropy)."""
    per_user: int = 0
    """Targets drawn per user and epoch, where each needs a pass of its own (an encoder that looks both ways); 0 takes all."""
    step: float = 0.5
    """Where targets share a pass: windows over sequences longer than max_length start every step · max_length items, and
    every item is a target once."""


class Identifier(Objective):
    """A batch is (items [examples, length + 1], wanted [examples, length], users [examples]): the items but the first are targets
    where they are wanted, each after all items before it. Where every target has a pass of its own, only the last is wanted.
    """

    alike: Tensor

    def prepare(self, model: Generator, items: Tensor, offsets: Tensor) -> None:
        self.pad, self.written, self.shared, self.apart = model.pad, model.written, model.shares, model.draws_apart
        starts, size = offsets.cpu(), model.max_length
        if self.shared:
            ends, lengths = windows(starts, size + 1, stride(self.config.step, size))
            users = torch.searchsorted(starts, ends - 1, right=True) - 1
            # windows of a user stand from the last to the first; each has as targets what the one before it does not reach
            fresh = lengths - 1
            fresh[:-1] = torch.where(users[:-1] == users[1:], ends[:-1] - ends[1:], fresh[:-1])
        else:
            of_events = owners(starts)
            place = torch.arange(len(items)) - starts[of_events]
            ends = (place > 0).nonzero()[:, 0] + 1
            users = of_events[ends - 1]
            lengths, fresh = (place[ends - 1] + 1).clamp(max=size + 1), torch.ones_like(ends)
        self.users, self.ends, self.lengths, self.fresh = users, ends, lengths, fresh
        self.alike = fresh * (size + 2) + lengths  # batches hold examples with as many targets, then as many items
        codes = torch.cat([torch.zeros(1, dtype=torch.int64), self.written[items].sum(1).cpu().cumsum(0)])
        self.codes = int((codes[ends] - codes[ends - fresh]).sum())
        limit = self.config.per_user if self.config.per_user and not self.shared else len(items)
        self.count = int(torch.bincount(users, minlength=1).clamp(max=limit).sum())

    @property
    def typical_targets(self) -> float:
        return self.codes * self.count / (len(self.ends) * self.steps)

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        limit = self.config.per_user if self.count < len(self.ends) else 0
        yield from few_of_each(self.users, limit, self.alike, self.batch_size, generator)

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        device = self.items.device
        lengths = self.lengths[examples].to(device)
        width = int(lengths.max())
        items = gather_last(self.items, self.ends[examples].to(device), lengths, width, self.pad)
        is_target = torch.arange(width - 1, device=device) >= width - 1 - self.fresh[examples].to(device)[:, None]
        return items, is_target, self.users[examples].to(device)

    def targets(self, batch: Batch) -> Tensor:
        items, is_target, _ = batch
        return (self.written[items[:, 1:]].sum(2) * is_target).sum(1)

    def loss(self, model: Generator, batch: Batch) -> Tensor:
        items, is_target, users = batch
        targets = items[:, 1:][is_target]
        if self.shared:
            last = int(is_target.sum(1).max())  # the targets stand at the end
            logits = model.teach(items, users, last)[is_target[:, -last:]]
        else:
            logits = model.after(items[:, :-1], items[:, -1:], users)[:, 0]
        real = self.written[targets]
        return F.cross_entropy(logits[real].float() / self.config.temperature, model.tokens[targets][real])


# --- tasks in words for a language model that learns codes (LC-Rec, 3.3): sequences, items in words and back, searches, tastes
#
# Every target of every user is asked for once per epoch and task, every item is described once in each direction, every
# user's taste is named once. Which prompt of a task is used is drawn anew each time. The loss is on answers alone.


PADDING, QUESTION, ANSWER = 0, 1, 2
MEASURED = 64
"""Examples that are written out once in order to know how long answers are."""


@dataclass(frozen=True)
class InstructionConfig:
    """A language model answers questions about sequences and items in codes and words (LC-Rec)."""

    tasks: str = "seqrec,item2index,index2item,fusionseqrec,itemsearch,preferenceobtain"
    """Which tasks are mixed, of those in engine/generation/language.py."""
    words: int = 64
    """Tokens kept of a text in a question or an answer (the last ones)."""
    temperature: float = 1.0
    """Logits are divided by τ before the softmax (LETTER's ranking-guided loss; 1 is plain cross-entropy)."""
    examples: int = added(0)
    """Examples that are drawn of all, once for the whole training (BIGRec: 1,024); 0: all are learnt from."""


class Instructions(Objective):
    """A batch is (ids, parts), both int64 [examples, places], padded on the right: numbers of both vocabularies, and whether they
    are padding, question or answer.
    """

    def prepare(self, model: Adapted, items: Tensor, offsets: Tensor) -> None:
        self.model, self.device = model, items.device
        chosen = [task.strip() for task in self.config.tasks.split(",")]
        unknown = [task for task in chosen if task not in TASKS]
        if unknown:
            raise UsageError(f"objective.tasks: there is no task {unknown[0]!r}; there are {', '.join(TASKS)}")
        prompts = "".join(part for task in chosen for prompt in TASKS[task] for part in prompt)
        if "identifiers" not in model.needs and ("{codes}" in prompts or "{history}" in prompts):
            raise UsageError(f"objective.tasks: {model.name} knows items by their titles alone; its task is {TITLES}")
        log, ends = items.tolist(), offsets.tolist()
        self.sequences = [log[start:end] for start, end in itertools.pairwise(ends)]
        described = [item for item in range(model.num_items) if model.attributes[item]]
        self.examples: list[tuple[str, int, int]] = []  # task, user or item, place of the target
        for task in chosen:
            if task in ("item2index", "index2item"):
                self.examples += [(task, item, 0) for item in described]
            elif task == "preferenceobtain":
                self.examples += [(task, user, len(taken)) for user, taken in enumerate(self.sequences) if taken]
            else:
                self.examples += [(task, u, p) for u, taken in enumerate(self.sequences) for p in range(1, len(taken))]
        order = torch.randperm(len(self.examples), generator=torch.Generator().manual_seed(0)).tolist()
        if self.config.examples:
            self.examples = [self.examples[number] for number in order[: self.config.examples]]
            order = list(range(len(self.examples)))
        self.count = len(self.examples)
        lengths = [len(self._written(self.examples[number], 0.5, 0.5)[1]) for number in order[:MEASURED]]
        self.mean_answer = sum(lengths) / max(len(lengths), 1)

    @property
    def typical_targets(self) -> float:
        return self.mean_answer * self.count / max(self.steps, 1)

    def draw(self, examples: Tensor, generator: torch.Generator) -> Batch:
        chance = torch.rand(len(examples), 2, generator=generator, device=self.device).tolist()
        rows = [
            self._written(self.examples[number], *pair) for number, pair in zip(examples.tolist(), chance, strict=True)
        ]
        width = max(len(question) + len(answer) for question, answer in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.int64)
        parts = torch.full_like(ids, PADDING)
        for row, (question, answer) in enumerate(rows):
            whole = len(question) + len(answer)
            ids[row, :whole] = torch.tensor(question + answer)
            parts[row, :whole] = QUESTION
            parts[row, len(question) : whole] = ANSWER
        return ids.to(self.device), parts.to(self.device)

    def targets(self, batch: Batch) -> Tensor:
        return (batch[1] == ANSWER).sum(1)

    def loss(self, model: Adapted, batch: Batch) -> Tensor:
        ids, parts = batch
        mask = (parts != PADDING).long()
        states, _ = model.run(ids, mask, (mask.cumsum(1) - 1).clamp(min=0))
        is_answer = parts[:, 1:] == ANSWER
        return F.cross_entropy(model.logits(states[:, :-1][is_answer]) / self.config.temperature, ids[:, 1:][is_answer])

    # --- an example in words

    def _written(self, example: tuple[str, int, int], which: float, other: float) -> tuple[list[int], list[int]]:
        """Question and answer as numbers; `which` and `other`, 0 to 1, decide the prompt and the words of a search."""
        name, owner, place = example
        model, prompts = self.model, TASKS[name]
        prompt = prompts[min(int(which * len(prompts)), len(prompts) - 1)]
        taken = self.sequences[owner] if name not in ("item2index", "index2item") else []
        before = taken[max(0, place - model.max_length) : place]
        item = taken[place] if taken and place < len(taken) else owner
        slots: dict[str, list[int]] = {}
        for slot in ("codes", "text", "history", "texts", "query", "likes"):
            if f"{{{slot}}}" in prompt.question + prompt.answer:
                slots[slot] = {
                    "codes": lambda: model.codes(item),
                    "text": lambda: self._cut(model.title(item)),
                    "history": lambda: model.history(before),
                    "texts": lambda: self._cut(", ".join(map(model.title, before))),
                    "query": lambda: self._cut(self._query(item, other)),
                    "likes": lambda: self._cut(self._likes(before)),
                }[slot]()
        answer = model.fill(prompt.answer, slots)
        end = model.tokenizer.eos_token_id
        if prompt.answer != "{codes}" and end is not None:  # an identifier is as long as it is
            answer = [*answer, end]
        return model.start() + model.fill(prompt.question, slots), answer

    def _cut(self, words: str) -> list[int]:
        return self.model.text(words)[-self.config.words :]

    def _query(self, item: int, chance: float) -> str:
        attributes = self.model.attributes[item]
        rest = attributes[1:] or attributes
        return rest[min(int(chance * len(rest)), len(rest) - 1)][1] if rest else "?"

    def _likes(self, items: list[int]) -> str:
        """The values that several items of a history share most."""
        counts = collections.Counter(value for item in items for _, value in self.model.attributes[item][1:])
        return ", ".join(value for value, _ in counts.most_common(3)) or self.model.title(items[-1])
