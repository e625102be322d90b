"""A plan, carried out: every run once, in a folder of its own, then each variant judged on the same users.

A run's folder is named after its recipe and a digest of everything that it is made from, so that variants (and studies) share
what they have in common, and a study that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine import __version__
from engine.data.dataset import Cases, Dataset
from engine.errors import SeqscopeError, UsageError
from engine.evaluation.evaluate import evaluate
from engine.evaluation.protocols import SETS, main, of_people, parse
from engine.evaluation.record import PROVENANCE, fault, read_record
from engine.evaluation.significance import interval
from engine.evaluation.tables import read_metrics
from engine.files import load_json, read_json, replacing
from engine.machine import now
from engine.runtime import studies
from engine.runtime.studies import LIMIT, Axis, Figure, Outcome, Published, Study, StudyStep
from engine.studies.plan import Plan, PlannedVariant, called, value_name
from engine.tokenizers import recipe as tokenizer_recipes
from engine.tokenizers.base import tokenizers
from engine.tokenizers.recipe import TokenizerRecipe
from engine.tokenizers.run import read_report, tokenize
from engine.training import recipe as models
from engine.training.recipe import Recipe, read
from engine.training.run import open_run, train

REFERENCES = (("model", "identifiers"), ("model", "start"), ("tokenizer", "teacher"))
"""Settings that name another run."""


def carry_out(
    plan: Plan,
    dataset: Dataset,
    runs: Path,
    *,
    device: str = "auto",
    command: str = "",
    say: Callable[[str], None] = lambda words: None,
) -> Study:
    """Makes every run of `plan` that is not made yet, in `runs`, and says what was found."""
    variants, baseline, chains, published = resolved(plan, dataset, runs)
    results: list[studies.StudyVariant] = []
    for number, variant in enumerate(variants, 1):
        outcomes = []
        for seed in plan.seeds:
            say(f"{plan.name}: {variant.title} ({number} of {len(variants)}), seed {seed}")
            outcomes.append(_outcome(chains[variant.name, seed], seed, dataset, device, plan.trained_users))
        results.append(
            studies.StudyVariant(
                name=variant.name,
                title=variant.title,
                value=variant.value,
                settings=variant.set,
                outcomes=outcomes,
                differs=variant.differs,
            )
        )
    ranks, sets = results[0].outcomes[0].ranks, parse(results[0].outcomes[0].protocol).sets
    later = published or plan.trained_users or any(variant.differs for variant in variants)
    return Study(
        schema_version=3 if sets else 2 if later else 1,
        name=plan.name,
        title=plan.title,
        about=plan.about,
        order=plan.order,
        dataset=dataset.info.name,
        fingerprint=dataset.info.fingerprint,
        people=None if ranks is None else len(ranks),
        settings=plan.set,
        axis=None if plan.sweep is None else Axis(**plan.sweep.model_dump(include={"title", "run", "setting"})),
        baseline=baseline,
        variants=results,
        trained_users=plan.trained_users,
        published=published,
        command=command,
        created=now(),
        created_by=f"seqscope {__version__}",
    )


# --- what is to be run


class Resolved(NamedTuple):
    """A plan on a dataset: its variants, the baseline's name, the runs of each variant's name and seed, and figures of papers."""

    variants: list[PlannedVariant]
    baseline: str
    chains: dict[tuple[str, int], list[Run]]
    published: list[Published]


def resolved(plan: Plan, dataset: Dataset, runs: Path) -> Resolved:
    """Raises UsageError where something is wrong with settings or figures, before anything is trained."""
    variants = _variants(plan, dataset)
    baseline = plan.baseline or next(v.name for v in variants if v.value == _default(plan, dataset))
    chains = {(v.name, seed): _chain(plan, v, seed, dataset, runs) for v in variants for seed in plan.seeds}
    if any(len({chains[v.name, seed][-1].folder for seed in plan.seeds}) < len(plan.seeds) for v in variants):
        raise UsageError(
            f"{plan.name}: training.seed is set, so its seeds train the same run; leave it or the seeds out"
        )
    protocol = _base(dataset) if chains[baseline, plan.seeds[0]][-1].verb == "train" else None
    return Resolved(variants, baseline, chains, _published(plan, variants, baseline, protocol))


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a chain, resolved."""

    recipe: Recipe | TokenizerRecipe
    file: str | None
    """Where the recipe is a file of its own."""
    folder: Path
    settings: list[str]
    judge: Path | None
    """Of a tokenizer: the SASRec run that its figures are taken against."""

    @property
    def verb(self) -> str:
        return "tokenize" if isinstance(self.recipe, TokenizerRecipe) else "train"


def _variants(plan: Plan, dataset: Dataset) -> list[PlannedVariant]:
    sweep = plan.sweep
    if sweep is None:
        return plan.variants
    default = _default(plan, dataset)
    if default not in sweep.values:
        raise UsageError(
            f"{plan.name}: the recipe has {sweep.setting} {default!r}, which is not among the values of the sweep; "
            "add it, the others are compared with it"
        )
    return [
        PlannedVariant(
            name=value_name(value),
            title=f"{value:g}",
            value=float(value),
            set={sweep.run: [f"{sweep.setting}={value!r}"]},
        )
        for value in sweep.values
    ]


def _default(plan: Plan, dataset: Dataset) -> float:
    assert plan.sweep is not None
    run = next(run for run in plan.runs if called(run) == plan.sweep.run)
    settings = plan.set.get(plan.sweep.run, [])
    recipe = _recipe(run, dataset, settings)
    table, _, key = plan.sweep.setting.partition(".")
    value = getattr(getattr(recipe, table, None), key, None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        if value is None:  # no such setting, perhaps: the recipe says which there are
            _recipe(run, dataset, [*settings, f"{plan.sweep.setting}={plan.sweep.values[0]!r}"])
        raise UsageError(f"{plan.name}: {plan.sweep.setting} of {plan.sweep.run} is no number to sweep along")
    return value


def _base(dataset: Dataset) -> str:
    """What variants are ranked under, as outcomes name it."""
    return SETS.get(dataset.info.split["kind"], "full")


def _published(plan: Plan, variants: list[PlannedVariant], baseline: str, protocol: str | None) -> list[Published]:
    """With figures by variant. Raises UsageError where one belongs to nothing here. protocol: as of `Published.fault`."""
    entries = []
    for entry in plan.published:
        if plan.sweep is not None:
            entry = entry.model_copy(update={"figures": {value_name(key): x for key, x in entry.figures.items()}})
        fault = entry.fault([variant.name for variant in variants], baseline, protocol)
        if fault:
            raise UsageError(f"{plan.name}: published, {entry.source}: {fault}")
        entries.append(entry)
    return entries


def _recipe(run: str, dataset: Dataset, settings: list[str]) -> Recipe | TokenizerRecipe:
    name, file = called(run), _file(run)
    raw = read(name, dataset.info.name, file, [], ("model",))
    kind = tokenizer_recipes if raw.get("family") in tokenizers() else models
    recipe: Recipe | TokenizerRecipe = kind.load(name, dataset.info.name, file, settings)
    return recipe


def _file(run: str) -> str | None:
    return run if called(run) != run else None


def _chain(plan: Plan, variant: PlannedVariant, seed: int, dataset: Dataset, runs: Path) -> list[Run]:
    chain: list[Run] = []
    made: dict[str, str] = {}  # recipe → the name of its folder
    judge = None
    for given in variant.runs or plan.runs:
        name = called(given)
        settings = [f"training.seed={seed}", *plan.set.get(name, []), *variant.set.get(name, [])]
        settings = list(
            {setting.partition("=")[0]: setting for setting in settings}.values()
        )  # the last of a key holds
        recipe = _recipe(given, dataset, settings)
        for table, key in REFERENCES:
            named = getattr(getattr(recipe, table, None), key, None)
            if named in made:
                settings = [setting for setting in settings if not setting.startswith(f"{table}.{key}=")]
                settings.append(f"{table}.{key}={made[named]}")
        recipe = _recipe(given, dataset, settings)
        # settings that were added later leave the runs of before where they are
        about = recipe.identity() if isinstance(recipe, Recipe) else recipe.to_dict()
        digest = hashlib.sha256((json.dumps(about, sort_keys=True) + dataset.info.fingerprint).encode())
        made[name] = f"{name}-{digest.hexdigest()[:10]}"
        run = Run(
            recipe, _file(given), runs / made[name], settings, judge if isinstance(recipe, TokenizerRecipe) else None
        )
        judge = run.folder if recipe.family == "sasrec" else judge
        chain.append(run)
    return chain


# --- what is found


def _outcome(chain: list[Run], seed: int, dataset: Dataset, device: str, trained_users: bool) -> Outcome:
    steps = [_made(run, dataset, device) for run in chain]
    figures: dict[str, Figure] = {}
    ranks: list[float] | list[list[float]] | None = None
    protocol = "full"
    if chain[-1].verb == "train":
        protocol, cases = _base(dataset), dataset.cases("test")
        values = _ranks(chain[-1].folder, dataset, cases, trained_users)
        steps[-1] = steps[-1].model_copy(
            update={"commands": [*steps[-1].commands, f"seqscope evaluate {chain[-1].folder}"]}
        )
        by_item = np.where(values <= studies.KEPT, values, 0).tolist()
        ends = cases.held_out.offsets.tolist()
        ranks = [by_item[start:end] for start, end in itertools.pairwise(ends)] if parse(protocol).sets else by_item
        for name in of_people(protocol):
            confidence = interval(studies.judge.per_user(name, values, protocol, cases.owner))
            figures[name] = Figure(mean=confidence.mean, low=confidence.low, high=confidence.high)
    for run in reversed(chain):
        if run.verb == "tokenize":
            figures |= {name: Figure(mean=mean) for name, mean in _identifiers(run.folder).items()}
            break
    return Outcome(seed=seed, steps=steps, figures=figures, ranks=ranks, protocol=protocol)


def _made(run: Run, dataset: Dataset, device: str) -> StudyStep:
    """Runs it where that has not been done."""
    path = run.folder / "run.json"
    if not _finished(run):
        if isinstance(run.recipe, TokenizerRecipe):
            tokenize(run.recipe, dataset, run.folder, device=device, judge=run.judge)
        else:
            train(run.recipe, dataset, run.folder, device=device)
    record = load_json(path)
    words = ["seqscope", run.verb, run.recipe.name, "--dataset", str(dataset.path)]
    words += ["--recipe", run.file] if run.file else []
    for setting in run.settings:
        words += ["--set", setting]
    words += ["--judge", str(run.judge)] if run.judge else []
    return StudyStep(
        run=run.recipe.name,
        commands=[shlex.join([*words, "--out", str(run.folder)])],
        recipe=json.loads(json.dumps(record["recipe"])),
        commit=record.get("commit"),
        device=record["device"],
        seconds=record["seconds"],
        epochs=record.get("epochs"),
    )


def _finished(run: Run) -> bool:
    """Whether it is there, whole, and a tokenizer judged by the run that its chain has for that: another chain may share it."""
    if isinstance(run.recipe, TokenizerRecipe):
        report = read_report(run.folder) if not fault(read_json(run.folder / "run.json"), PROVENANCE) else {}
        return bool(report) and (run.judge is None or report.get("neighbours", {}).get("of") == run.judge.name)
    try:
        read_record(run.folder)
    except (OSError, SeqscopeError):
        return False
    return True


def _ranks(folder: Path, dataset: Dataset, cases: Cases, trained_users: bool) -> np.ndarray:
    """float64 [held-out items]: full ranking of the test items, in the order of `cases`; with `trained_users` by people's own
    vectors, where the model has any."""
    if not read_metrics(folder):
        model, _, _, _ = open_run(folder, dataset.path)
        evaluate(model, dataset, folder)
    table = pq.read_table(folder / "ranks.parquet")
    protocol = main(dataset.info.repeats, dataset.info.split["kind"])
    names = table["protocol"].cast("string")
    by_vector = str(dataclasses.replace(parse(protocol), trained_users=True))
    if trained_users and by_vector in names.unique().to_pylist():
        protocol = by_vector
    table = table.filter(pc.equal(names, protocol))
    if not np.array_equal(table["user"].to_numpy(), cases.users[cases.owner]):
        raise UsageError(f"{folder}/ranks.parquet is of other users than {dataset.path}; remove the folder")
    # the file holds float32; ranks of one held-out item are halves, so nothing is lost up to the first million
    return table["rank"].to_numpy().astype(np.float64)


def _identifiers(folder: Path) -> dict[str, float]:
    """The figures of a tokenizer's report that `studies.MEASURES` knows."""
    report = read_report(folder)
    levels, near = report["levels"], report.get("neighbours", {})
    values = {
        "perplexity": levels[0]["perplexity"],
        "evenness": float(np.mean([level["perplexity_share"] for level in levels])),
        "excess": report["before"]["excess"],
        "sharing": report["before"]["sharing"],
        "lost": report["reconstruction"],
        "similarity": near.get("shared_by_cosine"),
        "similarity_dot": near.get("shared"),
        "expressed": report.get("ranking", {}).get("quantised"),
    }
    return {name: float(value) for name, value in values.items() if value is not None}


def write_study(study: Study, folder: Path) -> Path:
    """Into `folder`, a dataset's studies/. The ranks of a run stand on one line."""
    raw = study.model_dump(mode="json")
    lines: dict[str, str] = {}
    for variant in raw["variants"]:
        for outcome in variant["outcomes"]:
            if outcome["ranks"] is not None:
                key = f"\u0000{len(lines)}\u0000"  # no text of a study has a control character at either end
                numbers = json.dumps(outcome["ranks"], separators=(",", ":"))
                lines[json.dumps(key)] = numbers.replace(".0,", ",").replace(".0]", "]")  # most are whole
                outcome["ranks"] = key
    text = json.dumps(raw, indent=1, ensure_ascii=False, allow_nan=False)
    for key, line in lines.items():
        text = text.replace(key, line, 1)
    size = len(text.encode())
    if size > LIMIT:
        raise SeqscopeError(f"{study.name}: {size:,} bytes, more than the {LIMIT:,} of one study")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{study.name}.json"
    with replacing(path) as staged:
        staged.write_text(text + "\n", "utf-8")
    return path
