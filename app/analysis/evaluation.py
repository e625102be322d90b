"""The figures of Metrics and the verdict, computed once and kept: by the content of the bundles, a new export is judged anew."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from app.analysis import floor, metrics
from app.analysis.cache import cached, of_content
from app.store.attributes import numbers, tidied
from app.text import clean, grouped, listed, md, together
from engine.bundle.manifest import Manifest
from engine.bundle.tables import is_list, is_number
from engine.runtime import STILL_IMPROVING, Bundle, Zoo, judge
from engine.runtime import protocols as naming
from engine.tabular.columns import RESERVED
from engine.writing import count

NUMBERS = {
    "popularity-3": "Popularity of the held-out item, thirds",
    "popularity-10": "Popularity of the held-out item, tenths",
}
COLD = "cold"
REPEATED = "repeated"
_PARTS = {
    REPEATED: "Whether the held-out item repeats one of the history",
    COLD: "Whether the held-out item occurs in training",
}


@cached(20, by=of_content)
def protocols(models: Zoo, names: tuple[str, ...] | None = None) -> list[str]:
    """Every protocol that some of the models was evaluated under, full rankings first. names: None: all."""
    return metrics.protocols({name: models.bundles[name].ranks_table() for name in names or models.bundles})


def references(models: Zoo, protocol: str) -> tuple[pd.DataFrame, str]:
    """Figures from elsewhere that the dataset names for a protocol, beside those of the same methods here; and who measured them
    over which held-out items, in a sentence. Columns: Method, Here (the model beside it), and of each metric "NDCG@10, elsewhere"
    and "NDCG@10, here", NaN where no bundle has it. Empty where the dataset names none."""
    whole = naming.parse(protocol)
    named = [
        each for each in models.info.references if dataclasses.replace(naming.parse(each.protocol), part="") == whole
    ]
    rows = []
    for entry in named:
        bundle = models.bundles.get(entry.model)
        here = {} if bundle is None else bundle.manifest.metrics.get(entry.protocol, {})
        pairs = [
            ((f"{name}, elsewhere", value), (f"{name}, here", here.get(name))) for name, value in entry.metrics.items()
        ]
        rows.append({"Method": clean(entry.title), "Here": _as_here(bundle)} | dict(itertools.chain(*pairs)))
    parts = {naming.parse(entry.protocol).part for entry in named}
    words = [entry.source for entry in named]
    words += [f"both columns over {naming.PARTS[part]} alone" for part in sorted(parts - {""})]
    return pd.DataFrame(rows), f"Elsewhere: {', '.join(dict.fromkeys(words))}."


def _as_here(bundle: Bundle | None) -> str:
    """Title and dimensions: those of elsewhere may be others."""
    if bundle is None:
        return "–"
    sizes = bundle.manifest.training.recipe.get("model")
    dim = sizes.get("dim") if isinstance(sizes, dict) else None
    return clean(bundle.manifest.title) + (f", {dim} dimensions" if isinstance(dim, int) else "")


@cached(20, by=of_content)
def people(models: Zoo, protocol: str, names: tuple[str, ...] | None = None) -> tuple[dict[str, judge.Ranks], int]:
    """(the ranks of every row that has them (`metrics.ranked`), over the same users in the same order, the floor first; how many
    people some row lacks). names: of the models; None: all."""
    tables = {name: models.bundles[name].ranks_table() for name in names or models.bundles}
    measured = {name: models.bundles[name].manifest.metrics for name in tables}
    ranks = metrics.ranked(tables, measured, protocol)
    return judge.common({row: ranks[row] for row in floor.plainest_first(ranks, families(models, ranks))})


@cached(100, by=of_content, spinner="Drawing users anew, 2,000 times …")
def standing(models: Zoo, protocol: str, k: int) -> pd.DataFrame:
    """`metrics.standing` of all metrics at k."""
    return metrics.standing(people(models, protocol)[0], [judge.key(name, k) for name in metrics.metrics_of(protocol)])


def families(models: Zoo, rows: Iterable[str]) -> dict[str, str]:
    """Row → the family of its model."""
    return {row: models.bundles[metrics.model_of(row)].manifest.family for row in rows}


@cached(200, by=of_content)
def against(models: Zoo, protocol: str, baseline: str, metric: str) -> pd.DataFrame:
    return metrics.against(people(models, protocol)[0], baseline, metric)


@cached(100, by=of_content)
def beyond(models: Zoo, protocol: str, k: int) -> pd.DataFrame:
    tables = {name: bundle.exposure_table() for name, bundle in models.bundles.items()}
    return metrics.beyond(tables, people(models, protocol)[0], protocol, k, models.popularity)


@cached(200, by=of_content, spinner="Looking at each group …")
def slices(models: Zoo, protocol: str, by: str, metric: str) -> pd.DataFrame:
    """by: one of `sliceable`."""
    ranks = people(models, protocol)[0]
    return means_by_slice(ranks, _slicing(models, next(iter(ranks.values())), by), metric)


def sliceable(models: Zoo, protocol: str | None = None) -> dict[str, str]:
    """What people can be grouped by → in words: whether the held-out item repeats one of the history, and whether it is in
    anybody's training, where people of this protocol were asked for both kinds; its popularity and attributes; the length of the
    history. Where repeats count, they come first."""
    attributes = [name for name in models.items.column_names if name not in RESERVED]
    parts = {by: words for by, words in _PARTS.items() if _has_both(models, protocol, by)}
    both = NUMBERS | parts if naming.history_excluded(models.info.repeats) else parts | NUMBERS
    return {
        **both,
        "length": "Length of the history, fifths",
        **{f"attribute:{name}": f"{name.replace('_', ' ').capitalize()} of the held-out item" for name in attributes},
    }


def _has_both(models: Zoo, protocol: str | None, by: str) -> bool:
    if by == REPEATED and models.info.sets:
        return False
    ranks_of = {} if protocol is None else people(models, protocol)[0]
    return any(len(_slicing(models, ranks, by)) > 1 for ranks in [*ranks_of.values()][:1])


def _slicing(models: Zoo, ranks: judge.Ranks, by: str) -> Groups:
    if by in NUMBERS:
        return by_number(models.popularity[ranks.target], int(by.rpartition("-")[2]), "event", "events")
    if by == COLD:
        cold = models.popularity[ranks.target] == 0
        return _of_somebody({"unseen in training": cold, "seen in training": ~cold})
    if by == REPEATED:
        return by_repeat(ranks, models.users)
    if by == "length":
        return by_number(ranks.length, 5, "item", "items")
    return by_attribute(_attribute(models, by), ranks.target)


@cached(200, by=of_content)
def in_no_slice(models: Zoo, protocol: str, by: str) -> int:
    """How many held-out items have no value to be grouped by."""
    ranks = next(iter(people(models, protocol)[0].values()))
    return int((~np.any([*_slicing(models, ranks, by).values()], axis=0)).sum())


def overlap(models: Zoo, by: str) -> bool:
    """Whether a user may be in several slices, because the held-out item may have several values."""
    return by.startswith("attribute:") and is_list(_attribute(models, by).type)


def _attribute(models: Zoo, by: str) -> pa.ChunkedArray:
    """As pages have it: texts that are lists as lists."""
    name = by.partition(":")[2]
    return tidied(models.items.select([name]))[name]


# --- slices of people

MAX_SLICES = 12


Groups = dict[str, npt.NDArray[np.bool_]]
"""People, grouped: label → a mask over them. A person may be in several groups (of a list), or in none."""


def by_number(values: npt.NDArray[np.number], parts: int, singular: str, plural: str) -> Groups:
    """Groups of about equal size, in the order of the number; equal numbers stay together. NaN is in none."""
    numbers = values.astype(np.float64)
    valid = numbers[np.isfinite(numbers)]
    if not len(valid):
        return {}
    edges = np.unique(np.quantile(valid, np.linspace(0, 1, parts + 1)[1:-1], method="lower"))
    place = np.searchsorted(edges, numbers)  # an edge is the largest number of its group
    masks = [(place == part) & np.isfinite(numbers) for part in range(len(edges) + 1)]
    masks = [mask for mask in masks if mask.any()]
    ends = [(float(numbers[mask].min()), float(numbers[mask].max())) for mask in masks]
    labels: list[str] = []
    for digits in (6, 9, 12, 17):  # as many as tell the groups apart
        spans = [" – ".join(grouped(end, digits) for end in dict.fromkeys(pair)) for pair in ends]
        labels = [
            f"{span} {singular if pair == (1, 1) else plural}".strip() for span, pair in zip(spans, ends, strict=True)
        ]
        if len(set(labels)) == len(labels):
            break
    return dict(zip(labels, masks, strict=True))


def by_repeat(ranks: judge.Ranks, users: pa.Table) -> Groups:
    """By whether the held-out item repeats one of the user's history; users: as of `Zoo.users`. Those who are not in it, as their
    histories are not exported, are in no group."""
    history = users["history"].combine_chunks()
    row = pc.list_parent_indices(history).to_numpy()
    again = row[history.flatten().to_numpy() == users["target"].to_numpy()[row]]
    known = users["user"].to_numpy()
    repeated = np.isin(ranks.user, known[again])
    return _of_somebody({
        "repeats an item of the history": repeated, "is new to the user": np.isin(ranks.user, known) & ~repeated,
    })  # fmt: skip


def _of_somebody(groups: Groups) -> Groups:
    return {label: mask for label, mask in groups.items() if mask.any()}


def by_year(values: npt.NDArray[np.number], parts: int) -> Groups:
    """As `by_number`, for numbers that name something (years): without thousands separators."""
    return {label.replace(",", ""): mask for label, mask in by_number(values, parts, "", "").items()}


def by_attribute(column: pa.ChunkedArray, targets: npt.NDArray[np.integer]) -> Groups:
    """Groups by an attribute of the held-out item: fifths of a number that has many values, else its values."""
    if is_number(column.type):
        values = numbers(column)[targets]
        if len(np.unique(values[np.isfinite(values)])) > MAX_SLICES:
            return by_year(values, 5)
    return by_value(column, targets)


def by_value(column: pa.ChunkedArray, targets: npt.NDArray[np.integer], most: int = MAX_SLICES) -> Groups:
    """Groups by a category of the held-out item, or by each entry of a list; the largest, then the others together."""
    values = column.take(pa.array(targets)).to_pylist()
    entries = [value if isinstance(value, list) else [value] for value in values]
    people: dict[str, list[int]] = {}
    for row, values_of in enumerate(entries):
        there = (str(entry) for entry in values_of if entry not in (None, "") and entry == entry)  # no NaN
        for entry in dict.fromkeys(there):
            people.setdefault(entry, []).append(row)
    order = sorted(people, key=lambda entry: (-len(people[entry]), entry))
    kept = order if len(order) <= most else order[: most - 1]
    groups: Groups = {}

    def add(label: str, rows: list[int]) -> None:
        mask = groups[_free(label, groups)] = np.zeros(len(targets), bool)
        mask[rows] = True

    for entry in kept:
        add(clean(entry, 60), people[entry])
    if rest := order[len(kept) :]:
        add(f"any of {count(len(rest), 'other')}", [row for entry in rest for row in people[entry]])
    return groups


def _free(name: str, taken: Mapping[str, object]) -> str:
    """Two values may look alike once cleaned."""
    label, copies = name or "(empty)", 2
    while label in taken:
        label, copies = f"{name} ({copies})", copies + 1
    return label


def means_by_slice(people: Mapping[str, judge.Ranks], groups: Groups, metric: str) -> pd.DataFrame:
    """slice, model, n, mean, low, high, few (fewer than 30 people: says little)."""
    rows = []
    for name, ranks in people.items():
        if ranks.beyond_beam(metric):
            continue
        for label, mask in groups.items():
            values = ranks.take(np.flatnonzero(mask)).values(metric)
            estimate = judge.interval(values, seed=metrics.SEED, samples=metrics.SAMPLES)
            n = len(values)
            rows.append((label, name, n, estimate.mean, estimate.low, estimate.high, n < metrics.FEW))
    return pd.DataFrame(rows, columns=["slice", "model", "n", "mean", "low", "high", "few"])


def validated_by_users(models: Zoo, names: Iterable[str]) -> list[str]:
    """Of the models, those whose validation took the vectors of training users (engine.training.run.validation)."""
    chosen = []
    for name in names:
        about = models.bundles[name].manifest
        training = about.training.recipe.get("training")
        folded = isinstance(training, dict) and training.get("valid_fold_in") is True
        if any(naming.parse(protocol).trained_users for protocol in about.metrics) and not folded:
            chosen.append(name)
    return chosen


def validated_among(models: Zoo, names: Iterable[str]) -> dict[int, list[str]]:
    """How many sampled items validation ranked held-out ones among → the models; none of full ranking."""
    chosen: dict[int, list[str]] = {}
    for name in names:
        training = models.bundles[name].manifest.training.recipe.get("training")
        protocol = training.get("valid_protocol") if isinstance(training, dict) else None
        if isinstance(protocol, str) and (sampled := naming.parse(protocol).sampled):
            chosen.setdefault(sampled, []).append(name)
    return chosen


# --- is training worth it


@cached(100, by=of_content, spinner="Weighing training against counting …")
def verdict(models: Zoo, protocol: str, metric: str) -> judge.Verdict | None:
    """Of all models of the dataset, over the people whom each was asked for; None where none has a figure."""
    rows = people(models, protocol)[0]
    if not rows:
        return None
    return judge.verdict(
        contenders(models, rows), metric, models.popularity, memorised(models, next(iter(rows.values()))),
        seed=metrics.SEED, samples=metrics.SAMPLES,
    )  # fmt: skip


def in_markdown(models: Zoo, verdict: judge.Verdict) -> str:
    """The verdict in sentences; a zero-shot model was trained on another catalogue, which they say."""
    manifests = {name: bundle.manifest for name, bundle in models.bundles.items()}
    elsewhere = {name: about.zero_shot.title for name, about in manifests.items() if about.zero_shot is not None}
    return judge.sentences(verdict, lambda title: f"**{md(title)}**", elsewhere)


def compute_ahead(models: Zoo) -> None:
    """What Metrics opens with, and its list of studies: two seconds that nobody then waits for."""
    for protocol in protocols(models)[:1]:
        k = metrics.usual_cutoff(len(models), protocol)
        metric = judge.key(metrics.metrics_of(protocol)[0], k)
        verdict(models, protocol, metric)
        table = standing(models, protocol, k)
        means = table[table["metric"] == metric].set_index("model")["mean"].to_dict()
        if (counted := floor.best(means, families(models, means))) is not None:
            against(models, protocol, counted[0], metric)
    _ = models.studies


@cached(100, by=of_content)
def over_seeds(models: Zoo, protocol: str) -> str:
    """What intervals do not cover, and which models have rankings of further seeds. Not escaped."""
    of_models = contenders(models, people(models, protocol)[0])
    several = [
        (clean(model.title), f"{len(model.ranks)} seeds")
        for model in of_models
        if len(model.ranks) > 1 and not metrics.more_of(model.name)
    ]
    if not several:
        return metrics.ONE_SEED
    more = listed([f"{titles} ({number})" for titles, number in together(several)])
    return f"{metrics.ONE_SEED} The verdict takes means over all seeds with rankings: {more}."


def contenders(models: Zoo, people: dict[str, judge.Ranks]) -> list[judge.Contender]:
    """Rows of one table; those of models that differ in their seed alone are one. Models that were told times are not among them,
    since those that need no training read none. people: row → ranks, of the same users."""
    titles = metrics.titled({name: bundle.manifest.title for name, bundle in models.bundles.items()}, people)
    trainings: dict[tuple[str, ...], list[str]] = {}
    for row in people:
        about, more = models.bundles[metrics.model_of(row)].manifest, metrics.more_of(row)
        if more != metrics.TIMES:
            trainings.setdefault((about.family, _but_for_seed(about), more), []).append(row)
    return [_contender(models, rows, people, titles[rows[0]]) for rows in trainings.values()]


def _but_for_seed(about: Manifest) -> str:
    """What bundles have in common that differ in their seed alone; the name of one whose recipe states no seed."""
    recipe, source = about.training.recipe, about.zero_shot
    training = recipe.get("training")
    if not floor.needs_training(about.family) or not isinstance(training, dict) or "seed" not in training:
        return about.name
    return judge.without_seed(recipe) + ("" if source is None else source.fingerprint)


def _contender(models: Zoo, rows: list[str], people: dict[str, judge.Ranks], title: str) -> judge.Contender:
    bundles = [models.bundles[metrics.model_of(row)] for row in rows]
    about = [bundle.manifest for bundle in bundles]
    return judge.Contender(
        name=rows[0],
        title=title,
        learns=floor.needs_training(about[0].family),
        ranks=tuple(ranks for _, ranks in sorted(_by_seed(models, rows, people).items())),
        seconds=float(np.mean([manifest.training.seconds for manifest in about])),
        parameters=about[0].training.parameters,
        milliseconds=about[0].check.milliseconds,
        improving=any(bundle.unsettled == STILL_IMPROVING for bundle in bundles),
    )


def _by_seed(models: Zoo, rows: list[str], people: dict[str, judge.Ranks]) -> dict[int, judge.Ranks]:
    """Seed → ranks: of bundles that differ in it alone, and of the trainings whose ranks they carry beside their own."""
    by_seed: dict[int, judge.Ranks] = {}
    for row in rows:  # of copies the first, after which they are called
        by_seed.setdefault(models.bundles[metrics.model_of(row)].manifest.training.seed, people[row])
    for row in rows:
        bundle, own_ranks = models.bundles[metrics.model_of(row)], people[row]
        table = bundle.seeds_table()
        if table is None or not floor.needs_training(bundle.manifest.family):
            continue
        protocol = metrics.variant(own_ranks.protocol, metrics.more_of(row))
        for seed in table["seed"].unique().to_pylist():
            other = judge.ranks(table.filter(pc.equal(table["seed"], seed)), protocol, own_ranks.width)
            same, _ = judge.common({row: own_ranks} if other is None else {row: own_ranks, "": other})
            if len(same) == 2 and len(same[""]) == len(own_ranks):
                by_seed.setdefault(seed, same[""])
    return by_seed


def memorised(models: Zoo, ranks: judge.Ranks) -> npt.NDArray[np.int8] | None:
    """Whether each held-out item follows from counts of the training log; None where the export does not say so of every one."""
    if models.held_out is None:
        return None
    return ranks.lookup(*(models.held_out[name].to_numpy() for name in ("user", "target", "memorised")))
