"""`seqscope tokenize`: the run folder, the record of where things come from, interruptions, and what is refused."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from engine.cli import main
from engine.data.dataset import Dataset
from engine.data.identifiers import Identifiers
from engine.data.split import SplitOptions
from engine.errors import SeqscopeError, UsageError
from engine.evaluation import metrics
from engine.evaluation.ranks import full_ranks
from engine.runtime import Zoo
from engine.tokenizers import teacher
from engine.tokenizers.base import Material, tokenizers
from engine.tokenizers.recipe import from_dict, load
from engine.tokenizers.report import Judge
from engine.tokenizers.run import gather, open_tokenizer
from engine.training import checkpoint
from engine.training.recipe import RECIPES
from engine.training.recipe import load as load_model
from engine.training.run import open_run, train
from tests.training.tiny import cycles, recipe, same, write_log

SMALL = ["tokenizer.codes=8", "tokenizer.levels=2", "tokenizer.dim=4", "tokenizer.hidden=[8]", "training.batch_size=16"]


def command(name: str, dataset: Dataset, out: Path, *words: str, settings: list[str] | None = None) -> list[str]:
    sets = [word for text in (SMALL if settings is None else settings) for word in ("--set", text)]
    return ["tokenize", name, "--dataset", str(dataset.path), "--out", str(out), "--device", "cpu", *sets, *words]


def test_a_run_holds_what_the_formats_say(
    dataset: Dataset, vectors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rqvae"
    words = ["--vectors", str(vectors), "--set", "training.epochs=3"]
    assert main(command("rqvae", dataset, out, *words)) == 0
    assert "perplexity" in capsys.readouterr().out
    tokenizer, identifiers, recipe, record = open_tokenizer(out)
    assert (record["kind"], record["fingerprint"], record["epochs"]) == ("tokenizer", dataset.info.fingerprint, 3)
    assert record["recipe"]["tokenizer"]["hidden"] == [8]
    assert recipe.tokenizer.hidden == (8,)
    assert identifiers.about["vectors"]["dim"] == 6
    assert identifiers.names == ("level 1", "level 2", "number")
    assert len(np.unique(identifiers.codes, axis=0)) == dataset.num_items
    material, _ = gather(recipe, dataset, out, "cpu", np.load(vectors))
    assert np.array_equal(tokenizer.identify(material), identifiers.codes[:, :2])
    assert np.array_equal(np.load(out / "latents.npy"), tokenizer.latents(material))
    report = json.loads((out / "report.json").read_text("utf-8"))
    assert report["before"]["different"] < report["after"]["different"] == dataset.num_items
    # the same command again finds everything done, another one is told apart
    before = (out / "identifiers.parquet").stat().st_mtime_ns
    assert main(command("rqvae", dataset, out, *words)) == 0
    assert (out / "identifiers.parquet").stat().st_mtime_ns == before
    (out / "report.json").write_text("[]")
    assert main(command("rqvae", dataset, out, *words)) == 0
    assert json.loads((out / "report.json").read_text("utf-8")) == report
    record = json.loads((out / "run.json").read_text("utf-8"))
    assert main(command("rqvae", dataset, out, *words, "--set", "training.seed=2")) == 1
    assert "other settings" in capsys.readouterr().err
    assert main(command("rqvae", dataset, out, *words, "--restart-other")) == 0
    assert json.loads((out / "run.json").read_text("utf-8")) == record
    assert main(command("rqvae", dataset, out, *words, "--set", "training.seed=2", "--restart-other")) == 0
    assert main(command("rqvae", dataset, out, *words, "--set", "training.seed=3", "--restart")) == 0


def test_an_interrupted_run_ends_as_one_that_was_not(
    dataset: Dataset, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--vectors", str(vectors), "--set", "training.epochs=10", "--set", "training.checkpoint_seconds=0"]
    whole, cut, save = tmp_path / "whole", tmp_path / "cut", checkpoint.save

    def stop(*given: Any) -> None:
        save(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", stop)
        assert main(command("rqvae", dataset, cut, *words)) == 130
    assert (cut / "checkpoint.safetensors").exists() and not (cut / "run.json").exists()
    # none goes on with other settings
    assert main(command("rqvae", dataset, cut, *words, "--set", "training.seed=2")) == 1
    for folder in (cut, whole):
        assert main(command("rqvae", dataset, folder, *words)) == 0
    assert same(whole / "tokenizer.safetensors", cut / "tokenizer.safetensors")
    assert Identifiers.read(whole).digest() == Identifiers.read(cut).digest()


def test_letter_learns_from_a_run_and_says_from_which(
    dataset: Dataset, vectors: Path, run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    run = run_of("sasrec")
    settings = [*SMALL, f"tokenizer.teacher={run}", "tokenizer.clusters=2", "training.epochs=2"]
    assert main(command("letter", dataset, tmp_path / "letter", "--vectors", str(vectors), settings=settings)) == 0
    about = Identifiers.read(tmp_path / "letter").about["teacher"]
    record = json.loads((run / "run.json").read_text("utf-8"))
    assert (about["fingerprint"], about["recipe"], about["commit"]) == tuple(
        record[name] for name in ("fingerprint", "recipe", "commit")
    )
    assert len(about["digest"]) == 64
    assert 0 < about["kept"] <= 1
    report = json.loads((tmp_path / "letter" / "report.json").read_text("utf-8"))
    assert set(report["ranking"]) == {"of", "own", "quantised", "latents", "validation"}
    # and so does what is exported
    assert main(["export", str(tmp_path / "letter"), "--to", str(tmp_path / "exports")]) == 0
    said = Zoo.open(tmp_path / "exports").tokenizations["letter"].about
    assert said.teacher is not None and said.figures.ranking is not None
    assert said.teacher.model_dump() == {name: about[name] for name in type(said.teacher).model_fields}
    assert said.figures.ranking.model_dump() == {name: report["ranking"][name] for name in ("of", "own", "quantised")}


def test_letter_without_its_collaborative_term_needs_no_teacher(
    dataset: Dataset, vectors: Path, tmp_path: Path
) -> None:
    settings = [*SMALL, "tokenizer.alpha=0", "tokenizer.clusters=2", "training.epochs=1"]
    assert main(command("letter", dataset, tmp_path / "letter", "--vectors", str(vectors), settings=settings)) == 0
    assert "teacher" not in Identifiers.read(tmp_path / "letter").about
    assert main(["export", str(tmp_path / "letter"), "--to", str(tmp_path / "exports")]) == 0


def test_where_several_items_of_a_user_are_held_out_nobody_judges(tmp_path: Path) -> None:
    """A judge ranks one. The teacher is none that was asked for."""
    log = write_log(tmp_path / "data", cycles(40, 30), 30, split=SplitOptions(kind="users"), time_unit="second")
    train(recipe("sasrec", training={"epochs": 1}), log, tmp_path / "sasrec", device="cpu")
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32))
    settings = [*SMALL, "tokenizer.teacher=sasrec", "tokenizer.clusters=2", "training.epochs=2"]
    words = ["--vectors", str(tmp_path / "vectors.npy")]
    assert main(command("letter", log, tmp_path / "letter", *words, settings=settings)) == 0
    assert "ranking" not in json.loads((tmp_path / "letter" / "report.json").read_text("utf-8"))
    assert main(["export", str(tmp_path / "letter"), "--to", str(tmp_path / "exports")]) == 0


def test_the_teachers_rows_are_the_items(dataset: Dataset, run_of: Callable[[str], Path]) -> None:
    """Padding stands behind the items in our tables: nothing is off by one."""
    rows, model, _ = teacher.table(run_of("sasrec"), dataset)
    assert len(rows) == dataset.num_items
    assert model.pad == dataset.num_items
    assert np.array_equal(rows, model.table.detach().numpy()[: dataset.num_items])
    rows, model, _ = teacher.table(run_of("lightgcn"), dataset)
    assert np.array_equal(rows, model.eval().index().rows.numpy())


@pytest.mark.parametrize("family", ["popularity", "bert4rec", "attrec"])
def test_who_scores_by_more_than_a_dot_product_teaches_nobody(
    family: str, dataset: Dataset, run_of: Callable[[str], Path]
) -> None:
    with pytest.raises(SeqscopeError, match=f"a run of {family}; .* dot product"):
        teacher.table(run_of(family), dataset)


def test_fewer_dimensions_keep_dot_products() -> None:
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(50, 3)) @ rng.normal(size=(3, 8)) + 0.01 * rng.normal(size=(50, 8))).astype(np.float32)
    short, axes, kept = teacher.fitted(vectors, 3)
    assert np.allclose(short @ short.T, vectors @ vectors.T, atol=0.1)
    assert np.allclose(short, vectors @ axes, atol=1e-5)
    assert kept > 0.99
    assert np.linalg.norm(teacher.fitted(vectors, 8, 2.0)[0], axis=1).mean() == pytest.approx(2)
    assert np.allclose(np.linalg.norm(teacher.fitted(vectors, 4, 3.0, unit=True)[0], axis=1), 3, atol=1e-4)
    with pytest.raises(ValueError, match="8 dimensions"):
        teacher.fitted(vectors, 9)


@pytest.mark.parametrize("family", ["sasrec", "lightgcn"])
def test_the_judge_ranks_as_the_run_does(family: str, dataset: Dataset, run_of: Callable[[str], Path]) -> None:
    """And among the items of validation, so that settings can be chosen without those of the test."""
    judge, (model, *_) = Judge.of(run_of(family), dataset), open_run(run_of(family))
    measured = json.loads((run_of(family) / "metrics.json").read_text("utf-8"))
    assert judge.rank(judge.vectors) == pytest.approx(measured["full"]["NDCG@10"], abs=1e-4)
    valid = metrics.accuracy(full_ranks(model, dataset.cases("valid")).ranks)["NDCG@10"]
    assert judge.rank(judge.vectors, "valid") == pytest.approx(valid, abs=1e-4) != measured["full"]["NDCG@10"]
    assert judge.rank(np.zeros_like(judge.vectors)) < judge.rank(judge.vectors)


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in sorted(RECIPES.glob("*/*.toml"))
        if tomllib.loads(path.read_text("utf-8")).get("family") in tokenizers()
    ],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_recipes_of_tokenizers_are_sound(path: Path) -> None:
    recipe = load(path.stem, path.parent.name, None, [])
    assert recipe.name == path.stem
    assert from_dict({**recipe.to_dict()}, "again") == recipe


LETTERS = [path for path in sorted(RECIPES.glob("*/*.toml")) if 'family = "letter"' in path.read_text("utf-8")]


@pytest.mark.parametrize("path", LETTERS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_letter_learns_from_short_vectors_of_a_teacher_trained_with_negatives(path: Path) -> None:
    """At a mean length of 5 and equal for all (α .1), the term made codes worse than none (benchmarks/README.md)."""
    settings = load(path.stem, path.parent.name, None, []).tokenizer
    assert not settings.unit and 0 < settings.scale <= 0.3 and settings.alpha >= 0.3
    assert load_model(settings.teacher, path.parent.name, None, []).objective.loss == "bce"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "tokenizer.nothing=1"], "no setting nothing"),
        (["--set", "tokenizer.levels=0"], "out of range"),
        (["--set", "tokenizer.hidden=8"], "not a list"),
        (["--set", "optimiser.average=0.9"], "not averaged"),
        (["--set", "model.dim=8"], "write it as table.key=value"),
    ],
)
def test_wrong_use(
    words: list[str], message: str, dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command("rqvae", dataset, tmp_path / "out", *words)) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"), [([], "run of a model"), (["--restart"], "not a run of a tokenizer")], ids=["", "restart"]
)
def test_a_models_run_is_not_replaced(
    dataset: Dataset, run_of: Callable[[str], Path], capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(command("random", dataset, run_of("sasrec"), *words, settings=[])) == 1
    assert message in capsys.readouterr().err
    assert (run_of("sasrec") / "run.json").exists()


def test_vectors_without_numbers_are_refused(dataset: Dataset) -> None:
    items = pq.read_table(dataset.path / "items.parquet")
    with pytest.raises(ValueError, match="must be float32"):
        Material(items, vectors=np.empty((len(items), 0), np.float32))


def test_a_tokenizers_run_is_no_models(dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command("random", dataset, tmp_path / "random", settings=[])) == 0
    with pytest.raises(UsageError, match="not a tokenizer"):
        from_dict({"family": "sasrec"}, "here")
    assert main(["evaluate", str(tmp_path / "random")]) == 1
    assert "a run of a tokenizer, not of a model" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--restart"]], ids=["", "restart"])
def test_no_model_is_trained_over_a_tokenizers_run(
    dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    again = command("random", dataset, tmp_path / "random", settings=[])
    assert main(again) == 0
    capsys.readouterr()
    train = ["train", "popularity", "--dataset", str(dataset.path), "--out", str(tmp_path / "random")]
    assert main([*train, *words]) == 1
    assert "run of a tokenizer" in capsys.readouterr().err
    assert main(again) == 0
