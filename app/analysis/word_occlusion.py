"""What an item's own words do for its score: the model is asked again about an item that lacks an attribute or a word of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from app.analysis.cache import cached, of_model
from app.text import clean, md, short
from engine.runtime import Zoo

ASKED = 200
"""Items without something that one question may need."""
_NEAR = 1e-3  # between the vector of the catalogue's text and the one that the model ranks with
_SOME = 0.05  # of the largest effect: what is less is not worth a sentence
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
    found = {name.replace("_", " ").strip(): _plain(value) for name, value in items.items()}
    return {field: found[field] for field in fields if found.get(field)}


def without(own: Mapping[str, str], limit: int) -> Iterator[Without]:
    """Every attribute left out, and every word of those that have several. limit: words of one attribute, at most.

    An item's only attribute is not left out: there would be nothing to ask about.
    """
    for attribute, value in own.items():
        if len(own) > 1:
            yield Without(attribute, "", {name: said for name, said in own.items() if name != attribute})
        words = list(_WORD.finditer(value))
        if len(words) > 1:
            for word in words[:limit]:
                rest = _tidy(value[: word.start()] + value[word.end() :])
                yield Without(attribute, word[0], {**own, attribute: rest})


@cached(200, by=of_model)
def measure(models: Zoo, model: str, history: tuple[int, ...], item: int) -> OwnWords | None:
    """None where the catalogue's words of the item are not those that the model ranks it by, or there is nothing to leave out."""
    bundle = models.bundles[model]
    reads = bundle.manifest.text
    if reads is None:
        return None
    own = text(models.items.slice(item, 1).to_pylist()[0], reads.fields)
    asked = list(without(own, reads.limit))[:ASKED]
    if not asked or np.abs(bundle.encode([own])[0] - bundle.index.rows[item]).max() > _NEAR:
        return None
    whole, *scores = bundle.score_new(history, [own, *(one.text for one in asked)]).tolist()
    others = np.ones(len(models), bool)
    others[list(history)] = False
    others[item] = False
    ranked = np.sort(bundle.scores(history)[others])
    above = len(ranked) - np.searchsorted(ranked, scores, side="right")
    level = len(ranked) - above - np.searchsorted(ranked, scores, side="left")
    frame = pd.DataFrame(
        {
            "attribute": [clean(one.attribute, 60) for one in asked],
            "word": [clean(one.word, 60) for one in asked],
            "effect": whole - np.array(scores, float),
            "rank_without": 1 + above + level / 2,
        }
    )
    return OwnWords(float(whole), float(bundle.ranks(history, [item])[0]), frame)


def strongest(table: pd.DataFrame, many: int) -> pd.DataFrame:
    """Whole attributes and the `many` words that change the most, as they stand in the item."""
    words = table[table["word"] != ""]
    kept = words["effect"].abs().sort_values(ascending=False, kind="stable").index[:many]
    return table[(table["word"] == "") | table.index.isin(kept)].reset_index(drop=True)


def sentence(found: OwnWords, item: str) -> str:
    """What of the item does the most for it, in words."""
    name = f"**{md(short(item, 60))}**"
    whole, words = (found.table[(found.table["word"] == "") == is_whole] for is_whole in (True, False))
    said = []
    for rows, what in ((whole, "attributes"), (words, "single words")):
        if len(rows) and (best := rows.loc[rows["effect"].idxmax()])["effect"] > 0:
            place = (
                f"without that it would stay at rank {found.rank:,.0f}, with a lower score"
                if best["rank_without"] == found.rank
                else f"without that it would be at rank {best['rank_without']:,.0f} instead of {found.rank:,.0f}"
            )
            said.append(f"Of its {what}, **{_called(best)}** does the most for {name}: {place}.")
            name = "it"
    if not said:
        return f"Nothing of what is said of {name} speaks for it: without any one part, its score would be no lower."
    least = found.table.loc[found.table["effect"].idxmin()]
    if least["effect"] < -_SOME * found.table["effect"].max():
        said.append(f"**{_called(least)}** holds it back the most.")
    return " ".join(said)


def _called(row: pd.Series) -> str:
    return f"{md(short(row['word'], 40))} ({md(row['attribute'])})" if row["word"] else md(row["attribute"])


def _plain(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(filter(None, map(_plain, value)))
    return " ".join(str(value).split())


def _tidy(value: str) -> str:
    """Without the comma and the blank that a missing word leaves behind."""
    line = re.sub(r"\s+(?=[,;|])", "", " ".join(value.split()))
    return re.sub(r"([,;|])(?:\s*[,;|])+", r"\1", line).strip(" ,;|")
