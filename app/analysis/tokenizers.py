"""What the Semantic IDs page asks of tokenizers and models, computed once for all visitors."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from app.analysis import map_colouring, metrics, prefix_tree, semantic_ids
from app.analysis.cache import cached, of_digest, stamp
from app.analysis.prefix_tree import Colours, Tree, name
from app.analysis.semantic_ids import Bias, Popular, path, spelled
from app.text import clean
from engine.bundle import codes
from engine.bundle.codes import Depth, Ints, Usage
from engine.bundle.tokenizers import Alike, Teacher
from engine.cards import declarations
from engine.runtime import Bundle, Tokenization, Zoo, judge
from engine.writing import count, in_percent

POPULARITY = "popularity"


def _of_column(models: Zoo, items: pa.Table, tokenization: Tokenization, column: str) -> Hashable:
    return (stamp(models), tokenization.digest, column)


@cached(64, by=of_digest)
def usage(tokenization: Tokenization) -> list[codes.Usage]:
    """One entry per level of the tokenizer's own codes."""
    return codes.usage(tokenization.learned, tokenization.about.shape.own)


@cached(64, by=of_digest)
def groups(tokenization: Tokenization) -> list[npt.NDArray[np.int64]]:
    return semantic_ids.groups(tokenization.learned)


@cached(64, by=lambda tokenization, prefix: (tokenization.digest, prefix))
def tree(tokenization: Tokenization, prefix: tuple[int, ...]) -> prefix_tree.Tree:
    return prefix_tree.build(tokenization.learned, prefix)


@cached(
    64, by=lambda models, items, tokenization, column, prefix: (_of_column(models, items, tokenization, column), prefix)
)
def colours(
    models: Zoo, items: pa.Table, tokenization: Tokenization, column: str, prefix: tuple[int, ...]
) -> prefix_tree.Colours:
    """Of the nodes of `tree`, by a column of categories or by POPULARITY."""
    if column == POPULARITY:
        return prefix_tree.by_popularity(tree(tokenization, prefix), models.popularity)
    return prefix_tree.by_category(tree(tokenization, prefix), _coloured(models, items, column))


@cached(64, by=_of_column)
def purity(models: Zoo, items: pa.Table, tokenization: Tokenization, column: str) -> list[codes.Depth]:
    return codes.purity(tokenization.learned, labels(models, items, column).of)


@cached(32, by=lambda models, items, column: (stamp(models), column))
def labels(models: Zoo, items: pa.Table, column: str) -> semantic_ids.Labels:
    return semantic_ids.labels(items, column)


@cached(32, by=lambda models, items, column: (stamp(models), column))
def _coloured(models: Zoo, items: pa.Table, column: str) -> semantic_ids.Labels:
    return semantic_ids.coloured(items, column)


def disambiguating(tokenization: Tokenization, item: int) -> tuple[int, ...]:
    """What follows an item's codes in its semantic ID, only to tell it from items with the same codes; mostly nothing, or a
    number."""
    return path(tokenization.identifiers.codes, item)[len(path(tokenization.learned, item)) :]


def summary(tokenization: Tokenization) -> str:
    """What the tokenizer is: as it says it now, since an export keeps its words; of one that is not known here, as the export has
    it. Foreign text: escape it."""
    declared = declarations().tokenizers.get(tokenization.about.tokenizer)
    if declared is None:
        return tokenization.about.summary
    return declared.card.variant(tokenization.about.name).summary or declared.card.summary


@cached(8, by=lambda models, items: stamp(models))
def columns(models: Zoo, items: pa.Table) -> list[str]:
    """Columns of categories, the one that matters most first."""
    return [by_category.name for by_category in map_colouring.categorical(items)]


class Written(NamedTuple):
    """What a model wrote for people, and what they took."""

    taken: npt.NDArray[np.int64]
    """[items]: held-out events."""
    written: npt.NDArray[np.int64]
    """[items]: places in first k."""
    k: int
    people: int


@cached(16, by=of_digest)
def written(bundle: Bundle, k: int) -> Written | None:
    """None where the bundle was exported without its evaluation. k: the longest evaluated list of at most that many is taken, the
    shortest where there is none."""
    exposure, ranks = bundle.exposure_table(), bundle.ranks_table()
    if exposure is None or ranks is None:
        return None
    ranks = ranks.filter(pc.equal(ranks["protocol"], bundle.protocol))
    width = judge.beam_width(bundle.manifest.metrics, bundle.protocol)
    evaluated = exposure.filter(pc.equal(exposure["protocol"], bundle.protocol))["k"].unique().to_pylist()
    lengths = sorted(at for at in evaluated if judge.beyond_beam(at, width) is None)
    if not lengths or not len(ranks):
        return None
    chosen = max((length for length in lengths if length <= k), default=lengths[0])
    items = bundle.manifest.num_items
    taken = np.bincount(ranks["target"].to_numpy(), minlength=items)
    shown = metrics.exposure(exposure, bundle.protocol, chosen, items)
    assert shown is not None
    return Written(taken, shown, int(chosen), len(ranks))


# --- words and tables


_TITLES = 12  # titles of a group in a cell


class Line(NamedTuple):
    """A figure of the page's head: its name, what it means, and how it is told."""

    name: str
    meaning: str
    of: str


def shape_words(tokenization: Tokenization) -> str:
    """3 levels of 32 codes; a further number tells apart what collides."""
    shape = tokenization.about.shape
    levels = shape.own
    sizes = f"{levels[0]:,} codes" if len(set(levels)) == 1 else f"{min(levels):,} to {max(levels):,} codes"
    words = f"{count(len(levels), 'level')} of {sizes}"
    return f"{words}; {_POLICIES[tokenization.about.policy]}" if tokenization.about.policy in _POLICIES else words


_POLICIES = {
    "append": "a further number disambiguates items with the same codes",
    "needed": "items with the same codes get a further number",
    "sinkhorn": "items with the same codes got free last codes where possible",
    "keep": "items with the same codes stay tied",
}


def figures(tokenization: Tokenization, levels: Sequence[Usage], titles: Mapping[str, str]) -> list[Line]:
    """What is measured of one tokenizer as a whole; the same names and meanings in the same order for all. titles: of the models,
    by name."""
    for model in declarations().models.values():  # what judged or taught need not be exported
        titles = {variant.name: variant.title for variant in model.card.variants} | dict(titles)
    report = tokenization.about.figures
    lost = "–" if report.reconstruction is None else in_percent(report.reconstruction, 1)
    near = report.neighbours
    ranked, taught = report.ranking, tokenization.about.teacher
    return [
        Line(
            "Collision rate",
            "1 − unique IDs / items; as learned → in use",
            _change(report.before.excess, report.after.excess),
        ),
        Line(
            "Items in collision",
            "share of items whose ID is another one's as well; as learned → in use",
            _change(report.before.sharing, report.after.sharing),
        ),
        Line(
            "Largest collision",
            "most items with one ID; as learned → in use",
            f"{report.before.largest:,} → {report.after.largest:,}",
        ),
        Line("Reconstruction error", "share of the item vectors’ variance that codes lose", lost),
        Line(
            "Shared codes with nearest CF neighbour",
            "mean over levels, nearest by the vectors of the model named: by dot product · by cosine (by chance)",
            "–" if near is None else f"{titles.get(near.of, near.of)}: {_neighbours(near, len(levels))}",
        ),
        Line(
            "NDCG@10 with quantised item vectors",
            "the ranking of the model named with vectors rebuilt from codes (with its own)",
            "–" if ranked is None else f"{titles.get(ranked.of, ranked.of)}: {ranked.quantised:.3f} ({ranked.own:.3f})",
        ),
        Line(
            "Teacher",
            "the model whose item vectors the codes learned from, and its NDCG@10 in validation; a recipe may validate among 100 "
            "sampled items, where values are much higher",
            "–" if taught is None else _teacher(taught, titles),
        ),
    ]


def _neighbours(near: Alike, levels: int) -> str:
    shares = [in_percent(value / levels, 1) for value in (near.shared, near.shared_by_cosine, near.chance)]
    return f"{shares[0]} · {shares[1]} ({shares[2]})"


def levels_table(usages: Sequence[tuple[str, Tokenization, Sequence[Usage]]]) -> pd.DataFrame:
    """A row per level and tokenizer, level by level, so that tokenizers of other depth or codebook size can be compared; each
    with what random codes give. Shares in percent."""
    rows = []
    for title, tokenizer, levels in usages:
        shares = semantic_ids.alike(tokenizer.learned)
        chance = semantic_ids.alike_by_chance(len(tokenizer.learned), [level.size for level in levels])
        for at, level in enumerate(levels):
            rows.append(
                {
                    "Level": at + 1,
                    "Tokenizer": clean(title),
                    "Codes": level.size,
                    "Utilisation": 100 * level.used / max(level.size, 1),
                    "Normalised perplexity": 100 * level.normalised,
                    "Perplexity by chance": 100 * semantic_ids.normalised_by_chance(level.total, level.size),
                    "Gini": level.gini,
                    "Shared prefix": 100 * shares[at],
                    "Shared prefix by chance": 100 * chance[at],
                }
            )
    return pd.DataFrame(rows).sort_values("Level", kind="stable", ignore_index=True)


def digits_of_shares(shares: Iterable[float]) -> int:
    """Digits behind the point of a column of shares, in percent: 1, and 2 where these tell one from 100 that would read so."""
    high = [share for share in shares if 50 < share < 100]
    return 2 if any(round(share, 1) == 100 for share in high) and all(round(share, 2) < 100 for share in high) else 1


def _teacher(taught: Teacher, titles: Mapping[str, str]) -> str:
    well = f", validation NDCG@10 {taught.valid_ndcg:.3f}" if taught.valid_ndcg is not None else ""
    at = f" after {count(taught.best_epoch, 'epoch')}" if taught.best_epoch else ""
    return f"{titles.get(taught.run, taught.run)}{at}{well}"


def _change(before: float, after: float) -> str:
    return f"{in_percent(before, 1)} → {in_percent(after, 1)}"


def _stacked(tables: Iterable[tuple[str, Mapping[str, object]]]) -> pd.DataFrame:
    """Tables of tokenizers, by their titles, one below the other."""
    rows = [pd.DataFrame({"Tokenizer": clean(title), **columns}) for title, columns in tables]
    return pd.concat(rows, ignore_index=True)


def counts_table(usages: Sequence[tuple[str, Usage]]) -> pd.DataFrame:
    """Items per code, the most used first."""
    ordered = [(title, level, np.argsort(-level.counts, kind="stable")) for title, level in usages]
    return _stacked(
        (title, {"Rank": np.arange(1, level.size + 1), "Code": order, "Items": level.counts[order]})
        for title, level, order in ordered
    )


def lorenz_table(usages: Sequence[tuple[str, Usage]]) -> pd.DataFrame:
    curves = ((title, *level.lorenz()) for title, level in usages)
    return _stacked((title, {"Share of codes": x.round(4), "Share of items": y.round(4)}) for title, x, y in curves)


def tree_table(tree: Tree, colours: Colours) -> pd.DataFrame:
    rows = range(len(tree))
    return pd.DataFrame(
        {
            "Codes": [name(tree, node) for node in rows],
            "Depth": [len(tree.prefix[node]) for node in rows],
            "Items": [len(tree.items[node]) for node in rows],
            "In common": [clean(words, 80) for words in colours.words],
        }
    )


def purity_table(purities: Sequence[tuple[str, Sequence[Depth]]]) -> pd.DataFrame:
    rows = [
        {
            "Tokenizer": clean(title),
            "Codes in common": depth.depth,
            "Prefixes": depth.groups,
            "Items in groups": depth.items,
            "Purity": round(depth.purity, 4),
            "By chance": round(depth.chance, 4),
        }
        for title, depths in purities
        for depth in depths
    ]
    return pd.DataFrame(rows)


def popularity_table(popularities: Sequence[tuple[str, Popular]]) -> pd.DataFrame:
    return _stacked(
        (title, {"Code": codes.code, "Items": codes.items, "Training events per item": codes.events.round(1)})
        for title, codes in popularities
    )


def groups_table(
    tokenization: Tokenization, groups: Sequence[Ints], titles: Sequence[str], categories: Sequence[str] | None
) -> pd.DataFrame:
    """Items that share all codes. categories: of every item, None: the catalogue has none."""
    rows = []
    for items in groups:
        row: dict[str, object] = {
            "Codes": spelled(path(tokenization.learned, int(items[0]))),
            "Items": len(items),
            "Titles": "; ".join(clean(titles[item], 60) for item in items[:_TITLES])
            + (f" and {len(items) - _TITLES} more" if len(items) > _TITLES else ""),
        }
        if categories is not None:
            kinds = {categories[item] for item in items}
            row["Categories"] = "the same" if len(kinds) == 1 else f"{len(kinds)} different"
        rows.append(row)
    return pd.DataFrame(rows)


def plane_table(table: pa.Table, counts: Sequence[Usage]) -> pd.DataFrame:
    levels, codes = table["level"].to_numpy(), table["code"].to_numpy()
    return pd.DataFrame(
        {
            "Level": levels + 1,
            "Code": codes,
            "Cluster": table["cluster"].to_numpy() + 1,
            "Items": [int(counts[level].counts[code]) for level, code in zip(levels, codes, strict=True)],
            "x": table["x"].to_numpy(),
            "y": table["y"].to_numpy(),
        }
    )


def bias_table(bias: Bias) -> pd.DataFrame:
    return pd.DataFrame({"Code": bias.code, "Held out": bias.taken.round(5), "Generated": bias.written.round(5)})
