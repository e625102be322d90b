"""Recipes: all that are shipped can be read, and whatever is wrong with one is refused by name."""

import dataclasses
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from engine.errors import UsageError
from engine.registry import MODELS
from engine.tokenizers import recipe as tokenizer_recipe
from engine.training.recipe import RECIPES, from_dict, load
from engine.training.run import build_model

FAMILIES = {path: tomllib.loads(path.read_text("utf-8"))["family"] for path in sorted(RECIPES.glob("*/*.toml"))}
SHIPPED = [path for path, family in FAMILIES.items() if family in MODELS]  # the others are tokenizers'


# --- what is shipped


@pytest.mark.parametrize("dataset", sorted({path.parent.name for path in SHIPPED}))
def test_a_shipped_recipe_can_be_used(dataset: str) -> None:
    for path in SHIPPED:
        if path.parent.name != dataset:
            continue
        family = FAMILIES[path]
        found = load(family, dataset, f"{dataset}/{path.stem}", [])
        assert (found.name, found.family) == (path.stem, family)
        assert found.title or path.stem == family, path  # two recipes of one model are told apart
        assert len(found.title) <= 60, path
        assert load(path.stem, dataset, None, []) == found  # a recipe's name is as good a word as the model's
        assert from_dict(json.loads(json.dumps(found.identity())), "run.json") == found  # as the record of a run has it
        if not MODELS[family].needs:
            assert build_model(found, 30, 3).max_length >= 1


def test_a_setting_that_was_added_tells_trainings_apart_only_where_it_is_used() -> None:
    before = load("sasrec", "ml-1m", None, [])
    assert "step" not in before.identity()["objective"]  # records of before say the same of a training
    assert load("sasrec", "ml-1m", None, ["objective.step=0.5"]).identity()["objective"]["step"] == 0.5
    assert load("bert4rec", "ml-1m", None, []).identity()["objective"]["step"] == 0.5  # it was there from the start


def test_a_dataset_has_recipes_of_its_own() -> None:
    assert load("sasrec", "ml-1m", None, []).model.max_length == 200
    assert load("sasrec", "elsewhere", None, []).model.max_length == 50


def test_a_recipe_has_names_and_paths(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('family = "sasrec"\n[model]\ndim = 24\n', "utf-8")
    found = load("sasrec", "ml-1m", str(mine), [])
    assert (found.name, found.model.dim) == ("mine", 24)
    for name in ("sasrec-ce", "ml-1m/sasrec-ce", "ml-1m/sasrec-ce.toml"):
        assert load("sasrec", "ml-1m", name, []) == load(name, "ml-1m", None, [])
        assert load(name, "ml-1m", None, []).objective.loss == "cross-entropy"
    assert load(str(mine), "ml-1m", None, []) == found
    mine.write_text('family = "sasrec"\ntitle = "Größe"\n', "cp1252")
    with pytest.raises(UsageError, match=r"mine\.toml is not in UTF-8"):
        load(str(mine), "ml-1m", None, [])


def test_a_recipe_of_the_other_kind_says_which_command_takes_it() -> None:
    with pytest.raises(UsageError, match="for `seqscope tokenize`"):
        load("rqvae", "ml-1m", None, [])
    with pytest.raises(UsageError, match="for `seqscope train`"):
        tokenizer_recipe.load("sasrec", "ml-1m", None, [])


# --- overrides


def test_overrides() -> None:
    words = ["model.dim=32", "model.positions=none", "training.seed = 7", "optimiser.lr=1", "training.compile=true"]
    found = load("sasrec", "ml-1m", None, words)
    assert (found.model.dim, found.model.positions, found.training.seed) == (32, "none", 7)
    assert found.training.compile is True
    assert found.optimiser.lr == 1.0
    assert isinstance(found.optimiser.lr, float)
    assert found.model.max_length == 200  # the rest is the recipe's


def test_of_a_setting_that_is_given_twice_the_later_one_counts_and_a_line_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert load("sasrec", "ml-1m", None, ["model.dim=32", "model.dim = 16", "training.seed=2"]).model.dim == 16
    assert capsys.readouterr().err == "--set model.dim is given more than once; the later one counts: 16\n"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("model.dim", "model.dim"),
        ("title=Mine", "title=Mine"),
        ("=3", "=3"),
        ("model.width=3", "width"),
        ("model.dim=3.5", "model.dim"),
        ("model.dim=true", "model.dim"),
        ("model.residual=1", "model.residual"),
        ("model.positions=[1]", "model.positions"),
        ("optimiser.lr=fast", "optimiser.lr"),
    ],
)
def test_a_bad_override_is_named(override: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        load("sasrec", "ml-1m", None, [override])


IMPOSSIBLE: dict[str, dict[str, list[Any]]] = {
    "sasrec": {
        "model.heads": [0, 3], "model.dropout": [-0.1, 1.0, "nan"], "model.max_length": [0, 10_001],
        "model.blocks": [1_000_000_000], "model.dim": [100_000_000],
        "optimiser.lr": [0, "nan", "inf"], "optimiser.beta1": [1.0], "training.epochs": [0], "training.valid_users": [-1],
    },
    "bert4rec": {"model.heads": [3], "model.max_length": [1], "objective.mask_share": [0, 1.1], "objective.step": [-0.1]},
    "attrec": {"model.omega": [-0.1, 1.1], "model.init_std": [0], "objective.dropout": [1.0]},
    "lightgcn": {"objective.sampling": ["items"]},
    "ngcf": {"model.message_dropout": [1.0], "model.variant": ["published"]},
    "mult-vae": {"objective.beta": [-0.1, "inf"]},
    "markov": {"model.alpha": [-0.5]},
    "counting": {"model.decay": [1.5]},
    "ease": {"model.regularisation": [0]},
}  # fmt: skip
"""Of each family, settings with values that no training could use: at the ends of ranges, and beyond what a model can be."""


@pytest.mark.parametrize(
    ("family", "key", "value"),
    [(family, key, value) for family, keys in IMPOSSIBLE.items() for key, values in keys.items() for value in values],
)
def test_a_value_that_nothing_could_be_trained_with_is_refused_by_name(family: str, key: str, value: Any) -> None:
    with pytest.raises(UsageError, match=key.partition(".")[2]):
        build_model(load(family, "none", None, [f"{key}={value}"]), 30, 3)


GENERATORS = {
    "encoder-decoder": "default/tiger",
    "decoder-only": "default/lc-rec",
    "language-model": "default/lc-rec-lora",
}
"""Models whose recipes are called otherwise."""


def test_every_number_has_limits() -> None:
    """Of the default recipe of every model. A setting that is added is covered too: what is far out of any range is refused."""
    for family in MODELS:
        of = GENERATORS.get(family)
        recipe = load(family, "none", of, [])
        for table in ("model", "objective", "optimiser", "training"):
            for field in dataclasses.fields(getattr(recipe, table)):
                if field.type in ("int", "float"):
                    with pytest.raises(UsageError, match=field.name):
                        load(family, "none", of, [f"{table}.{field.name}=-1000000"])


def test_values_at_the_edge_can_be_used() -> None:
    words = ["model.blocks=0", "model.dropout=0", "training.patience=0", "training.seed=0", "optimiser.clip_norm=0"]
    build_model(load("sasrec", "none", None, words), 30, 3)
    load("bert4rec", "none", None, ["objective.mask_share=1", "objective.last_only=1", "objective.step=1"])


def test_a_setting_that_is_no_more_may_say_what_is_so_now() -> None:
    """Runs of before hold all settings of their day."""
    raw = {"family": "mult-vae", "model": {"dim": 8, "variational": True}}
    assert from_dict(raw, "run.json").model.dim == 8
    with pytest.raises(UsageError, match="variational"):
        from_dict(raw | {"model": {"variational": False}}, "run.json")


# --- files


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("family = ", "bad.toml"),
        ("", "family"),
        ('family = "attrec"', "attrec"),
        ('family = "sasrec"\nmodel = 3', "model"),
        ('family = "sasrec"\ntitle = 3', "title"),
        ('family = "sasrec"\n[modell]\ndim = 3', "modell"),
        ('family = "sasrec"\n[training]\nepochs = 2024-01-01', "training.epochs"),
        ("\udcff", "bad.toml"),  # no text
    ],
)
def test_a_bad_file_is_refused_by_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text, "utf-8", "surrogateescape")
    for overrides in ([], ["model.heads=1", "training.seed=2"]):
        with pytest.raises(UsageError, match=re.escape(said)):
            load("sasrec", "ml-1m", str(path), overrides)


@pytest.mark.parametrize("name", ["nothing", "ml-1m/nothing", "/nowhere/x.toml", ""])
def test_a_recipe_that_does_not_exist_shows_those_that_do(name: str) -> None:
    with pytest.raises(UsageError, match="ml-1m/sasrec-ce"):
        load("sasrec", "ml-1m", name, [])


@pytest.mark.parametrize(
    ("name", "meant"), [("sasrc", "sasrec or esasrec"), ("sasrec-ce", "beauty/sasrec-ce or ml-1m/sasrec-ce")]
)
def test_what_may_be_meant_is_a_name_that_there_is_for_the_dataset(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"did you mean {meant}?")):
        load(name, "mine", None, [])
