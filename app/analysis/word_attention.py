"""Words: what a model that reads texts attends to in them, and what leaving out the target's own words does."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from app.analysis.attention import quoted
from app.analysis.cache import cached, of_model, of_model_and_tables
from app.text import clean, listed, md, short, whole_rank
from engine.bundle.index import ranks_among
from engine.runtime import Word, WordAttention, Zoo
from engine.runtime.text import plain
from engine.writing import count, in_percent

Float = npt.NDArray[np.floating]

UNKNOWN = "(unknown)"
NOTHING = "(no words)"
_STRONGEST = 15


@dataclass(frozen=True, eq=False)
class Parts:
    """What each item of a history got, attribute by attribute; oldest item first."""

    places: tuple[int | None, ...]
    """Place in the history, 0 is the oldest; None for several items together."""
    titles: tuple[str, ...]
    attributes: tuple[str, ...]
    weights: npt.NDArray[np.float64]
    """[items, attributes]"""
    even: npt.NDArray[np.float64]
    """[items]: what the item would get if every word that is read got the same."""

    def __len__(self) -> int:
        return len(self.places)

    @property
    def totals(self) -> npt.NDArray[np.float64]:
        """[items]"""
        sums: npt.NDArray[np.float64] = self.weights.sum(axis=1)
        return sums

    @property
    def numbers(self) -> list[str]:
        """Place in the history as people count it, "" for several items together."""
        return ["" if place is None else str(place + 1) for place in self.places]

    def by_place(self) -> dict[int, float]:
        return {
            place: float(total)
            for place, total in zip(self.places, self.totals.tolist(), strict=True)
            if place is not None
        }

    def only(self, places: Sequence[int]) -> Parts:
        """Those of these places, in their order."""
        at = [self.places.index(place) for place in places]
        return self._rows(at)

    def strongest(self, many: int = _STRONGEST) -> Parts:
        """The strongest items in the order of time, and the rest together above them."""
        if len(self) <= many + 1:
            return self
        kept = np.sort(np.argsort(-self.totals, kind="stable")[:many])
        rest = np.setdiff1d(np.arange(len(self)), kept)
        strong = self._rows(kept.tolist())
        return replace(
            strong,
            places=(None, *strong.places),
            titles=(f"the other {count(len(rest), 'item')}", *strong.titles),
            weights=np.vstack([self.weights[rest].sum(axis=0), strong.weights]),
            even=np.append(self.even[rest].sum(), strong.even),
        )

    def table(self) -> pd.DataFrame:
        """One row per item: its weight, what it would be if all words got the same, and the weight of each attribute."""
        items = pd.DataFrame(
            {"position": self.numbers, "title": self.titles, "weight": self.totals, "words_alike": self.even}
        )
        columns = {f"in {name}": self.weights[:, at] for at, name in enumerate(self.attributes)}
        return pd.concat([items, pd.DataFrame(columns)], axis=1)

    def _rows(self, at: list[int]) -> Parts:
        return replace(
            self,
            places=tuple(self.places[row] for row in at),
            titles=tuple(self.titles[row] for row in at),
            weights=self.weights[at],
            even=self.even[at],
        )


def weigh(attention: WordAttention, layer: int | None, head: int | None) -> npt.NDArray[np.float64]:
    """The weight of each word, float64 [words]: of one layer and head, from 0, or the mean over them (None)."""
    weights = attention.weights.astype(np.float64)
    weights = weights.mean(axis=0) if layer is None else weights[layer]
    layer_weights: npt.NDArray[np.float64] = weights.mean(axis=0) if head is None else weights[head]
    return layer_weights


def read(attention: WordAttention) -> npt.NDArray[np.bool_]:
    """Which words the model reads, bool [words]. It begins with the newest item and stops where its tokens are used up: what
    comes after is 0 in every layer and head, which a softmax does not give to anything that is read."""
    places = np.array([word.position for word in attention.words])
    order = np.lexsort((np.arange(len(places)), -places))
    most = attention.weights.max(axis=(0, 1))
    some = np.flatnonzero(most[order] > 0)
    last = int(some[-1]) if len(some) else -1
    seen = np.zeros(len(places), bool)
    seen[order[: last + 1]] = True
    return seen


def parts(
    attention: WordAttention, weights: Float, titles: Mapping[int, str] | Sequence[str], attributes: Sequence[str]
) -> Parts:
    """weights: as of `weigh`; titles: by item number; attributes: in their order; those that no item has are left out."""
    used = tuple(name for name in attributes if any(word.attribute == name for word in attention.words))
    column = {name: at for at, name in enumerate(used)}
    places = sorted({word.position for word in attention.words})
    row = {place: at for at, place in enumerate(places)}
    rows = np.array([row[word.position] for word in attention.words])
    sums = np.zeros((len(places), len(used)))
    np.add.at(sums, (rows, np.array([column[word.attribute] for word in attention.words])), weights)
    seen = read(attention)
    alike = np.bincount(rows, seen, len(places)) / max(int(seen.sum()), 1) * float(weights.sum())
    items = {word.position: word.item for word in attention.words}
    return Parts(tuple(places), tuple(clean(titles[items[place]], 200) for place in places), used, sums, alike)


def word_text(word: Word) -> str:
    """A word as plain text; one that the tokenizer does not know is empty, and so is an item without words."""
    return clean(word.word, 60) or UNKNOWN


def table(frame: WordAttention, weights: Float, titles: Mapping[int, str] | Sequence[str]) -> pd.DataFrame:
    """One row per word, oldest item first: position, title, attribute, part (name or value), word, read, weight."""
    return pd.DataFrame(
        {
            "position": [str(word.position + 1) for word in frame.words],
            "title": [clean(titles[word.item], 200) for word in frame.words],
            "attribute": [word.attribute for word in frame.words],
            "part": ["name" if word.key else "value" for word in frame.words],
            "word": [word_text(word) for word in frame.words],
            "read": ["yes" if seen else "no" for seen in read(frame).tolist()],
            "weight": weights.astype(float),
        }
    )


def blocks(
    attention: WordAttention,
    weights: Float,
    shares: Parts,
    many: int,
    shortened: Collection[tuple[int, str]] = (),
    limit: int = 0,
) -> list[dict[str, Any]]:
    """The `many` strongest items with their words as `app.components.widgets.shaded_words` draws them, in the order of time.

    shortened: of `cut`, at `limit` tokens.
    """
    seen, top = read(attention), max(float(weights.max(initial=0)), 1e-12)
    kept = np.sort(np.argsort(-shares.totals, kind="stable")[:many])
    drawn = []
    for at in kept.tolist():
        numbers = [number for number, word in enumerate(attention.words) if word.position == shares.places[at]]
        lines: dict[str, dict[str, Any]] = {}
        for number in numbers:
            word, weight = attention.words[number], float(weights[number])
            line = lines.setdefault(
                word.attribute, {"attribute": word.attribute, "share": 0.0, "name": [], "value": [], "cut": None}
            )
            if (word.item, word.attribute) in shortened:
                line["cut"] = f"cut after {count(limit, 'token')}"
            line["share"] += weight
            if seen[number]:
                text = NOTHING if len(numbers) == 1 and not word.word else word_text(word)
                line["name" if word.key else "value"].append(
                    {"text": text, "share": weight, "strength": weight / top, "label": f"{text}: {weight:.2%}"}
                )
        drawn.append(
            {
                "number": shares.numbers[at],
                "title": shares.titles[at],
                "share": float(shares.totals[at]),
                "lines": list(lines.values()),
                "unread": sum(not seen[number] for number in numbers),
            }
        )
    return drawn


def cut(
    attention: WordAttention, texts: Mapping[int, Mapping[str, str]], pieces: Callable[[str], Sequence[int]], limit: int
) -> frozenset[tuple[int, str]]:
    """(item, attribute) where the model's limit of tokens leaves out the end of what the catalogue says.

    texts: item → attribute → what is said; pieces: for each token of a text which word it is of; limit: tokens of one attribute,
    its name among them. Where the model was told something else than the catalogue says, nothing is claimed.
    """
    read: dict[tuple[int, str], set[int]] = {}
    for number, word in enumerate(attention.words):
        if not word.key:
            read.setdefault((word.position, word.attribute), set()).add(number)
    items = {word.position: word.item for word in attention.words}
    lost = set()
    for (position, attribute), words in read.items():
        item = items[position]
        said_words = pieces(texts.get(item, {}).get(attribute, ""))
        left = max(0, limit - len(pieces(attribute)))
        if len(said_words) > left and len(set(said_words[:left])) == len(words):
            lost.add((item, attribute))
    return frozenset(lost)


# --- in words


def sentence(model: str, attention: WordAttention, weights: Float, shares: Parts) -> str:
    """Which item, which of its words, and which attributes got the most."""
    total = float(weights.sum())
    if total <= 0:
        return f"{md(model)} gave nothing to the words of this history."
    first = int(np.argmax(shares.totals))
    word = attention.words[int(np.argmax(weights))]
    place = shares.places.index(word.position)
    where = "" if place == first else f" of {quoted(shares.titles[place])}"
    called = f"the name of the attribute {md(word.attribute)}" if word.key else md(word.attribute)
    text = (
        f"{md(model)} gave the most to {quoted(shares.titles[first])} ({in_percent(shares.totals[first])} of its weight), and "
        f"of all words the most to {quoted(word_text(word))} ({called}{where}, {in_percent(weights.max())})."
    )
    if len(shares.attributes) > 1:
        sums = shares.weights.sum(axis=0)
        named = [f"{md(name)} {in_percent(sums[at])}" for at, name in enumerate(shares.attributes)]
        text += f" By attribute: {listed(named)}."
    return text


def note(attention: WordAttention, weights: Float, layer: int | None, head: int | None) -> str:
    """What the numbers are, as plain text."""
    layers, heads = attention.weights.shape[:2]
    taken = f"the mean over {count(layers, 'layer')}" if layer is None else f"layer {layer + 1} of {layers}"
    taken += f", mean over {count(heads, 'head')}" if head is None else f", head {head + 1} of {heads}"
    return (
        f"Attention of [CLS], whose state makes the prediction, to each word: {taken}. "
        f"{in_percent(max(0.0, 1 - float(weights.sum())))} goes to itself. Stroke: an item's weight if all words got the "
        "same. Attention is not an explanation."
    )


def left_out(attention: WordAttention, shares: Parts, drawn: int, limit: int, shortened: int = 0) -> str:
    """What the cards do not show, as plain text; "" where they show all. limit: tokens that the model reads; shortened: tokens
    that it reads of one attribute, where some were cut."""
    said = []
    if shortened:
        said.append(f"Cut: of one attribute it reads {count(shortened, 'token')}, the name among them.")
    unread = int((~read(attention)).sum())
    if unread:
        said.append(
            f"{count(unread, 'word')} of the oldest items lie beyond the {count(limit, 'token')} that it reads."
        )
    if len(shares) > drawn:
        said.append(
            f"Shown: the {drawn} items with the most weight of {count(len(shares), 'item')}; the table has all."
        )
    return " ".join(said)


@cached(100, by=of_model)
def word_attention(models: Zoo, model: str, history: tuple[int, ...]) -> WordAttention:
    """Which words the model looked at. Raises SeqscopeError where it reads none."""
    return models.bundles[model].word_attention(history)


@cached(100, by=of_model_and_tables)
def cut_words(models: Zoo, model: str, history: tuple[int, ...]) -> frozenset[tuple[int, str]]:
    """(item, attribute) of the history whose words the model reads only in part, because they are too many."""
    bundle = models.bundles[model]
    reads, tokenizer = bundle.manifest.text, bundle.reader.tokenizer
    assert reads is not None
    read_words = word_attention(models, model, history)
    items = sorted({word.item for word in read_words.words})
    rows = models.rows(items).to_pylist()
    texts = {item: text(row, reads.fields) for item, row in zip(items, rows, strict=True)}

    def pieces(text: str) -> list[int]:
        return [word or 0 for word in tokenizer.encode(text, add_special_tokens=False).word_ids]

    return cut(read_words, texts, pieces, reads.limit)


# --- occlusion: the target without some of its words


ASKED = 200
"""Items without something that one question may need."""
_NEAR = 1e-3  # between the vector of the catalogue's text and the one that the model ranks with
_SOME = 0.05  # of the largest effect: what is less is not worth a occlusion_sentence
_WORD = re.compile(r"[^\s,;|]+")


@dataclass(frozen=True)
class Without:
    """An item that lacks something."""

    attribute: str
    word: str
    """"" where the whole attribute is missing."""
    text: dict[str, str]
    """What is left."""


@dataclass(frozen=True, eq=False)
class OwnWords:
    """What an item's own words do."""

    score: float
    rank: float
    table: pd.DataFrame
    """attribute, word ("" for the whole attribute), effect, rank_without."""


def text(items: Mapping[str, Any], fields: Sequence[str]) -> dict[str, str]:
    """What the catalogue says of an item, by attribute. items: the columns of its row."""
    values = {name.replace("_", " ").strip(): plain(value) for name, value in items.items()}
    return {field: values[field] for field in fields if values.get(field)}


def without(attributes: Mapping[str, str], limit: int) -> Iterator[Without]:
    """Every attribute left out, and every word of those that have several. limit: words of one attribute, at most.

    An item's only attribute is not left out: there would be nothing to ask about.
    """
    for attribute, value in attributes.items():
        if len(attributes) > 1:
            yield Without(attribute, "", {name: said for name, said in attributes.items() if name != attribute})
        words = list(_WORD.finditer(value))
        if len(words) > 1:
            for word in words[:limit]:
                rest = _tidy(value[: word.start()] + value[word.end() :])
                yield Without(attribute, word[0], {**attributes, attribute: rest})


@cached(200, by=of_model_and_tables)
def measure(models: Zoo, model: str, history: tuple[int, ...], item: int) -> OwnWords | None:
    """None where the catalogue's words of the item are not those that the model ranks it by, or there is nothing to leave out."""
    bundle = models.bundles[model]
    reads = bundle.manifest.text
    if reads is None:
        return None
    attributes = text(models.items.slice(item, 1).to_pylist()[0], reads.fields)
    without_words = list(without(attributes, reads.limit))[:ASKED]
    if not without_words or np.abs(bundle.encode([attributes])[0] - bundle.index.rows[item]).max() > _NEAR:
        return None
    whole, *scores = bundle.score_new(history, [attributes, *(variant.text for variant in without_words)]).tolist()
    others = bundle.candidates(history).copy()
    others[item] = False
    frame = pd.DataFrame(
        {
            "attribute": [clean(variant.attribute, 60) for variant in without_words],
            "word": [clean(variant.word, 60) for variant in without_words],
            "effect": whole - np.array(scores, float),
            "rank_without": ranks_among(bundle.scores(history)[others], scores),
        }
    )
    return OwnWords(float(whole), float(bundle.ranks(history, [item])[0]), frame)


def strongest(table: pd.DataFrame, many: int) -> pd.DataFrame:
    """Whole attributes and the `many` words that change the most, as they stand in the item."""
    words = table[table["word"] != ""]
    kept = words["effect"].abs().sort_values(ascending=False, kind="stable").index[:many]
    return table[(table["word"] == "") | table.index.isin(kept)].reset_index(drop=True)


def occlusion_sentence(occlusion: OwnWords, item: str) -> str:
    """What of the item does the most for it, in words."""
    name = quoted(item)
    whole, words = (occlusion.table[(occlusion.table["word"] == "") == is_whole] for is_whole in (True, False))
    sentences, rank = [], whole_rank(occlusion.rank)
    for rows, kind in ((whole, "attributes"), (words, "single words")):
        if len(rows) and (best := rows.loc[rows["effect"].idxmax()])["effect"] > 0:
            place = (
                f"stay at rank {rank}, with a lower score"
                if best["rank_without"] == occlusion.rank
                else f"be at rank {whole_rank(best['rank_without'])} instead of {rank}"
            )
            sentences.append(
                f"Of its {kind}, **{_called(best)}** does the most for {name}: without that it would {place}."
            )
            name = "it"
    if not sentences:
        return f"No attribute or word of {name} raises its score: removing any one of them does not lower it."
    least = occlusion.table.loc[occlusion.table["effect"].idxmin()]
    if least["effect"] < -_SOME * occlusion.table["effect"].max():
        sentences.append(f"**{_called(least)}** holds it back the most.")
    return " ".join(sentences)


def _called(row: pd.Series) -> str:
    return f"{md(short(row['word'], 40))} ({md(row['attribute'])})" if row["word"] else md(row["attribute"])


def _tidy(value: str) -> str:
    """Without the comma and the blank that a missing word leaves behind."""
    line = re.sub(r"\s+(?=[,;|])", "", " ".join(value.split()))
    return re.sub(r"([,;|])(?:\s*[,;|])+", r"\1", line).strip(" ,;|")
