"""The committed studies of the sample and of the films: they belong to the committed bundles, and say what their own ranks say.

They take hours to make, so nothing here makes them again; what is tested is that a file cannot claim what it does not hold.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.data.dataset import Dataset
from engine.registry import MODELS
from engine.runtime import Zoo
from engine.runtime.bundle import Catalogue
from engine.runtime.studies import Outcome, read
from engine.studies.plan import PLANS, called, load
from engine.studies.run import resolved
from engine.training.recipe import from_dict

MADE = Path(__file__).parents[2] / "exports" / "sample" / "studies"
NAMES = sorted(path.stem for path in MADE.glob("*.json"))
FILES = sorted(MADE.parents[1].glob("*/studies/*.json"))


@pytest.fixture(scope="module")
def zoo(root: Path) -> Zoo:
    return Zoo.open(root / "exports" / "sample")


def test_all_belong_to_the_log(zoo: Zoo, root: Path) -> None:
    assert not zoo.studies.refused
    assert sorted(zoo.studies.found) == NAMES
    fingerprint = Dataset(root / "data" / "sample").info.fingerprint
    people = zoo.info.counts["test"]
    for study in zoo.studies.found.values():
        assert study.fingerprint == fingerprint
        assert study.people in (None, people)


def test_a_variant_that_studies_share_is_the_same_run(zoo: Zoo) -> None:
    """LETTER as it is stands in every sweep of its settings."""
    found: dict[str, list[tuple[str, Outcome]]] = {}
    for name, study in zoo.studies.found.items():
        for variant in study.variants:
            for one in variant.outcomes:
                key = json.dumps([step.recipe for step in one.steps], sort_keys=True)
                found.setdefault(key, []).append((name, one))
    shared = [ones for ones in found.values() if len(ones) > 1]
    assert {"alpha", "beta", "clusters"} in [{name for name, _ in ones} for ones in shared]
    for ones in shared:
        for _, one in ones:
            assert (one.figures, one.ranks) == (ones[0][1].figures, ones[0][1].ranks)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_a_result_is_that_of_its_plan(path: Path, root: Path) -> None:
    name = path.parts[-3]
    dataset = Dataset(root / "data" / name)
    study = read(path, Catalogue(name, dataset.info.fingerprint, dataset.num_items))
    plan = load(PLANS / name / f"{path.stem}.toml")
    planned = resolved(plan, dataset, path.parent)
    assert (study.title, study.about, study.order, study.settings) == (plan.title, plan.about, plan.order, plan.set)
    assert (study.published, study.trained_users) == (planned.published, plan.trained_users)
    assert study.baseline == planned.baseline
    assert all([one.seed for one in variant.outcomes] == plan.seeds for variant in study.variants)
    if plan.sweep is not None:
        assert [variant.value for variant in study.variants] == plan.sweep.values
    else:
        assert [(one.name, one.title, one.settings, one.differs) for one in study.variants] == [
            (one.name, one.title, one.set, one.differs) for one in plan.variants
        ]
        chains = [[called(run) for run in one.runs or plan.runs] for one in plan.variants]
        assert [[step.run for step in one.outcomes[0].steps] for one in study.variants] == chains
    for variant in study.variants:
        for one in variant.outcomes:
            for step in one.steps:
                # what was added to recipes later and holds its default is in no record
                full = from_dict(step.recipe, "step").to_dict() if step.recipe["family"] in MODELS else step.recipe
                settings = [*study.settings.get(step.run, []), *variant.settings.get(step.run, [])]
                for setting, value in {entry.partition("=")[0]: entry.partition("=")[2] for entry in settings}.items():
                    table, _, key = setting.partition(".")
                    made = full[table][key]
                    if key in ("identifiers", "start", "teacher") and value:
                        assert made.startswith(f"{value}-")  # the run of this chain, by the name of its folder
                    else:
                        assert value in (str(made).lower(), str(made)) or float(value) == made
