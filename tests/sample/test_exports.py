"""The committed bundles of the sample: they open, they belong to the committed log, and they found what was planted in it.

Everything here is computed from what is in exports/sample, so it fails where somebody commits bundles that learned nothing.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from engine.data.dataset import Dataset
from engine.evaluation import metrics
from engine.evaluation.significance import paired
from engine.registry import MODELS
from engine.runtime import EMBEDDED, Bundle, Zoo
from engine.runtime.bundle import Catalogue
from engine.runtime.studies import Outcome, read
from engine.studies.plan import PLANS, called, load
from engine.studies.run import resolved
from engine.tokenizers.recipe import from_dict as read_tokenizer
from engine.tokenizers.recipe import load as load_tokenizer
from engine.training.recipe import Recipe, from_dict
from engine.training.recipe import from_dict as read_model
from engine.training.recipe import load as load_model

LIMIT = 30_000_000
LEARNED = ("sasrec", "bert4rec", "attrec", "recformer", "tiger", "letter-tiger", "lc-rec")


@pytest.fixture(scope="module")
def zoo(root: Path) -> Zoo:
    return Zoo.open(root / "exports" / "sample", warm=True)


def ranks(bundle: Bundle) -> np.ndarray:
    table = bundle.ranks_table()
    assert table is not None
    full = table.filter(pc.equal(table["protocol"].cast("string"), "full")).sort_by("user")
    return full["rank"].to_numpy().astype(np.float64)


def test_all_bundles_open_and_belong_to_the_log(zoo: Zoo, root: Path) -> None:
    assert not zoo.refused
    assert {*LEARNED, "markov", "popularity"} <= zoo.bundles.keys()
    assert {"rqvae", "letter", "lc-rec-rqvae", "residual-kmeans"} <= zoo.tokenizations.keys()
    assert zoo.info.simulated
    assert zoo.info.fingerprint == Dataset(root / "data" / "sample").info.fingerprint


@pytest.mark.parametrize("dataset", EMBEDDED)
def test_what_is_committed_was_made_by_the_recipes_that_are(root: Path, dataset: str) -> None:
    """But for titles and how steps were computed. Who changes a recipe of an embedded dataset has to make its exports again."""

    def settings(recipe: Recipe) -> Recipe:
        return replace(recipe, title="", training=replace(recipe.training, precision="auto", compile=False))

    zoo = Zoo.open(root / "exports" / dataset)
    for name, bundle in zoo.bundles.items():
        made_by = read_model(bundle.manifest.training.recipe, name)
        assert settings(made_by) == settings(load_model(name, dataset, None, [])), name
    for name, tokenization in zoo.tokenizations.items():
        fitted_by = read_tokenizer(tokenization.about.recipe, name)
        assert replace(fitted_by, title="") == replace(load_tokenizer(name, dataset, None, []), title=""), name


def test_every_space_has_a_map_that_is_better_than_chance(zoo: Zoo) -> None:
    """The words', the latents' and the codes'; of residual k-means what it quantises are the words' own vectors."""
    assert set(zoo.spaces) == {"minilm"} and zoo.spaces["minilm"].about.without == 0
    made = [zoo.spaces["minilm"].about.projection]
    made += [zoo.bundles[name].manifest.projection for name in ("sasrec", "bert4rec", "attrec")]
    for name, one in zoo.tokenizations.items():
        assert one.codebooks_map() is not None
        made += [one.about.codebooks_map, *([one.about.latents_map] if name != "residual-kmeans" else [])]
    assert len(made) == 11 and all(how is not None and how.trustworthiness > 0.6 for how in made)  # chance is one half


def test_films_of_like_words_are_of_like_genres(zoo: Zoo) -> None:
    """Neighbours in the words and in the latents made of them share a genre far more often than films drawn at random."""
    genres = [set(found.split(", ")) for found in zoo.items["genres"].to_pylist()]
    rng = np.random.default_rng(0)
    asked = rng.choice(len(zoo), 200, replace=False).tolist()

    def shared(item: int, others: list[int]) -> float:
        return float(np.mean([bool(genres[item] & genres[other]) for other in others]))

    chance = np.mean([shared(item, rng.choice(len(zoo), 8).tolist()) for item in asked])
    for space in (zoo.spaces["minilm"], zoo.tokenizations["rqvae"], zoo.tokenizations["letter"]):
        near = np.mean([shared(item, space.neighbours(item, 8).items.tolist()) for item in asked])
        assert near > chance + 0.2, f"{space.name}: {near:.2f}, by chance {chance:.2f}"


def test_the_folder_stays_small(root: Path) -> None:
    assert sum(path.stat().st_size for path in (root / "exports" / "sample").rglob("*") if path.is_file()) <= LIMIT


@pytest.mark.parametrize(
    ("model", "floor"),
    [
        ("markov", "popularity"),
        ("attrec", "popularity"),
        *((model, "markov") for model in LEARNED if model != "attrec"),
    ],
)
def test_models_of_sequences_beat_the_markov_chain_and_that_beats_popularity(zoo: Zoo, model: str, floor: str) -> None:
    own, other = (metrics.ndcg(ranks(zoo.bundles[name]), 10) for name in (model, floor))
    assert paired(own, other).low > 0 and own.mean() > 1.3 * other.mean()


def test_the_next_film_of_a_series_is_found(zoo: Zoo) -> None:
    """Somebody who has just watched the first parts of a series is most often recommended the next one first."""
    series, order = zoo.items["franchise"].to_pylist(), zoo.items["franchise_order"].to_pylist()
    parts: dict[str, dict[int, int]] = {}
    for item, (name, place) in enumerate(zip(series, order, strict=True)):
        if name is not None:
            parts.setdefault(name, {})[int(place)] = item
    long = [films for films in parts.values() if len(films) >= 4]
    assert len(long) >= 10
    found = []
    for films in long:
        history = [films[1], films[2]]
        top = zoo.bundles["sasrec"].recommend_one(history, 3).items
        found.append(films[3] in top)
    assert np.mean(found) >= 0.8


def test_no_file_names_the_machine_it_was_made_on(root: Path) -> None:
    for path in (root / "exports" / "sample").rglob("*"):
        if path.suffix in (".onnx", ".json"):
            assert not re.search(rb"(/home/|/root/|/tmp/|/work/|site-packages)", path.read_bytes()), path.name


# --- the committed studies, which take hours to make: no file claims what it does not hold


MADE = Path(__file__).parents[2] / "exports" / "sample" / "studies"
NAMES = sorted(path.stem for path in MADE.glob("*.json"))
FILES = sorted(MADE.parents[1].glob("*/studies/*.json"))


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
    runs: dict[str, list[tuple[str, Outcome]]] = {}
    for name, study in zoo.studies.found.items():
        for variant in study.variants:
            for one in variant.outcomes:
                key = json.dumps([step.recipe for step in one.steps], sort_keys=True)
                runs.setdefault(key, []).append((name, one))
    shared = [ones for ones in runs.values() if len(ones) > 1]
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
