"""What an export refuses, and that nothing half done is ever seen."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow.parquet as pq
import pytest
import torch
from onnx import numpy_helper
from torch import nn

from engine.errors import SeqscopeError, UsageError
from engine.evaluation.evaluate import evaluate
from engine.export import bundle, graphs, vectors
from engine.export.bundle import export_run
from engine.export.staging import exported, write_dataset_side
from engine.models import Recommender
from engine.registry import MODELS
from engine.runtime import Zoo
from engine.training.materials import gather
from engine.training.run import build_model, open_run, train
from tests.models.contract import USERS, build, move, small
from tests.training.fixtures import RunOf
from tests.training.tiny import cycles, recipe, write_log


@pytest.fixture
def out(copied: Callable[..., Path]) -> Path:
    """Exports with one bundle, that of popularity, to be changed."""
    return copied("popularity")


def contents(bundle: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in bundle.iterdir()}


def spoiled() -> Callable[[Recommender, Path], None]:
    """An exporter that writes a graph which is not quite the model's."""
    honest = graphs.write_encoder

    def write(model: Recommender, path: Path) -> None:
        honest(model, path)
        graph = onnx.load(path)
        table = next(t for t in graph.graph.initializer if tuple(t.dims)[:1] in ((151,), (152,), (150,)))
        values = numpy_helper.to_array(table).copy()
        values[:150] += 0.01
        table.CopyFrom(numpy_helper.from_array(values, table.name))
        path.write_bytes(graph.SerializeToString())

    return write


def test_whose_vectors_a_model_was_trained_with_stays_with_it(tmp_path: Path) -> None:
    """SASRec with vectors of users: its graph has their mean, which is what newcomers get, and nobody's own."""
    model = build("sasrec", user_vector=True)
    graphs.write_encoder(model, tmp_path / "encoder.onnx")
    graph = onnx.load(tmp_path / "encoder.onnx").graph
    tables = [numpy_helper.to_array(table) for table in graph.initializer]
    assert not any(USERS in table.shape for table in tables)
    assert any(np.array_equal(table.ravel(), model.newcomer.numpy()) for table in tables)


# --- a graph that differs


def test_a_graph_that_differs_is_refused(run_of: RunOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "write_encoder", spoiled())
    with pytest.raises(SeqscopeError, match=r"differs from PyTorch.*not exported"):
        export_run(run_of("fmc"), tmp_path)
    assert not list(tmp_path.iterdir())


class Wrong(nn.Module):
    """A model whose graph and whose answers can be told apart: `query` is spoiled after its graph was written."""

    def __init__(self, model: Recommender, query: Callable[[torch.Tensor], torch.Tensor], weights: Any = None) -> None:
        super().__init__()
        self.model, self.changed, self.weights = model, query, weights

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)

    def scores(self, items: torch.Tensor) -> torch.Tensor:
        return self.changed(self.model.scores(items))

    def query_with_attention(self, items: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        query, weights = self.model.query_with_attention(items)
        return query, weights if self.weights is None else self.weights(weights)


def test_every_difference_is_seen(exports: Path, run_of: RunOf, dataset: Any) -> None:
    model, *_ = open_run(run_of("sasrec"))
    folder, cases = exports / "sasrec", dataset.cases("test")
    count, used, worst = vectors.compare(folder, model, cases, 1)
    assert (count, used) == (8 * len(used), vectors.lengths(8))
    assert worst <= 1e-4
    wrong: list[Any] = [
        Wrong(model, lambda scores: scores + 0.01),
        Wrong(model, lambda scores: scores * torch.nan),
        Wrong(model, lambda scores: torch.where(torch.arange(150) == 149, torch.nan, scores)),
        Wrong(model, lambda scores: scores[:, :-1]),
        Wrong(model, lambda scores: scores.roll(1, dims=1)),
        Wrong(model, lambda scores: scores, lambda weights: weights + 0.001),
        Wrong(model, lambda scores: scores, lambda weights: weights.transpose(-1, -2)),
        Wrong(model, lambda scores: scores, lambda weights: weights * torch.nan),
    ]
    for other in wrong:
        with pytest.raises(SeqscopeError, match="not exported"):
            vectors.compare(folder, other, cases, 1)


def test_lengths_that_are_tried() -> None:
    assert vectors.lengths(50) == [1, 2, 49, 50, 53]
    assert vectors.lengths(1) == [1, 2, 4]
    assert vectors.lengths(2) == [1, 2, 5]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("sasrec", {"max_length": 1}),
        ("sasrec", {"max_length": 2, "blocks": 0, "positions": "sinusoidal", "residual": False, "shared_items": False}),
        ("attrec", {"window": 1, "fold_in": 1}),
        ("recformer", {"attention": "full"}),
    ],
)
def test_unusual_models_have_graphs_too(dataset: Any, tmp_path: Path, name: str, settings: dict[str, Any]) -> None:
    chosen = recipe(name, model=settings)
    model = build_model(chosen, dataset.num_items, 3, gather(chosen, dataset, tmp_path))
    move(model, 1)
    if hasattr(model, "refresh"):
        model.refresh()
    graphs.write_encoder(model.eval(), tmp_path / "encoder.onnx")
    rows, bias = model.index()
    np.save(tmp_path / "index.npy", torch.cat([rows, bias[:, None]], 1).detach().numpy())
    _, _, worst = vectors.compare(tmp_path, model, dataset.cases("test"), 0)
    assert worst <= 1e-4


def test_the_exporter_is_quiet(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    model = MODELS["popularity"](small("popularity"), 23, 3, torch.Generator())
    graphs.write_encoder(model, tmp_path / "encoder.onnx")
    assert capfd.readouterr() == ("", "")
    assert not list(recwarn)


# --- half done


KILLED = """
import os, signal, sys
from pathlib import Path
from engine.export import bundle
bundle.Bundle.warm = lambda self: os.kill(os.getpid(), signal.SIGKILL)
bundle.export_run(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.timeout(900)
def test_a_killed_export_is_not_seen(root: Path, run_of: RunOf, out: Path) -> None:
    before = (out / "popularity" / "manifest.json").read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, str(run_of("popularity")), str(out)], cwd=root, check=False)
    assert done.returncode == -9
    zoo = Zoo.open(out, warm=True)
    assert (list(zoo.bundles), zoo.refused) == (["popularity"], [])
    assert (out / "popularity" / "manifest.json").read_bytes() == before
    assert [path for path in out.iterdir() if path.name.startswith(".")]  # what was under way when it was killed
    export_run(run_of("popularity"), out)
    assert (out / "popularity" / "manifest.json").read_bytes() != before  # its date


def interrupted(monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    monkeypatch.setattr(bundle.Bundle, "warm", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))


def cannot_take_its_place(monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if target == out / "popularity" and self.name == "popularity":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)


@pytest.mark.parametrize("fault", [interrupted, cannot_take_its_place])
def test_a_failed_export_leaves_the_old_bundle(
    run_of: RunOf, out: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch, Path], None]
) -> None:
    before = contents(out / "popularity")
    fault(monkeypatch, out)
    with pytest.raises((KeyboardInterrupt, OSError, SeqscopeError), match=r"^$|No space"):
        export_run(run_of("popularity"), out)
    assert contents(out / "popularity") == before
    if fault is interrupted:
        assert not [path for path in out.iterdir() if path.name.startswith(".")]


# --- what does not belong together


def test_bundles_of_other_data_are_not_mixed(out: Path, tmp_path: Path) -> None:
    other = write_log(tmp_path / "data", cycles(20, 30), 30)
    train(recipe("markov"), other, tmp_path / "markov", device="cpu")
    evaluate(open_run(tmp_path / "markov")[0], other, tmp_path / "markov")
    with pytest.raises(SeqscopeError, match=r"holds bundles \(popularity\) of other data"):
        export_run(tmp_path / "markov", out)
    assert [path.name for path in out.iterdir() if path.is_dir()] == ["popularity"]
    # without bundles the folder's dataset is simply replaced
    shutil.rmtree(out / "popularity")
    export_run(tmp_path / "markov", out)
    assert list(Zoo.open(out).bundles) == ["markov"]


def test_bundles_without_their_dataset_are_other_data_too(out: Path, tmp_path: Path) -> None:
    (out / "dataset.json").unlink()
    other = write_log(tmp_path / "data", cycles(20, 30), 30)
    with pytest.raises(SeqscopeError, match="other data"):
        write_dataset_side(other, out, 10)


def test_a_run_that_was_not_evaluated(run_of: RunOf, tmp_path: Path) -> None:
    run = tmp_path / "popularity"
    for missing in ("ranks.parquet", "exposure.parquet", "metrics.json"):
        shutil.copytree(run_of("popularity"), run)
        (run / missing).unlink()
        with pytest.raises(SeqscopeError, match=r"not evaluated.*seqscope evaluate"):
            export_run(run, tmp_path / "out")
        shutil.rmtree(run)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("name", name) for name in ("../up", "Upper", "a b", "-x", ".hidden", "x" * 65)),
        ("title", "x" * 61),
        ("users", 0),
        ("users", -1),
    ],
)
def test_wrong_use(run_of: RunOf, tmp_path: Path, option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"--{option}"):
        export_run(run_of("popularity"), tmp_path / "out", **{option: value})
    assert not (tmp_path / "out").exists()


def test_a_folder_whose_name_is_no_name(run_of: RunOf, tmp_path: Path) -> None:
    run = Path(shutil.copytree(run_of("popularity"), tmp_path / "Ümläut"))
    with pytest.raises(UsageError, match="--name"):
        export_run(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("title", "shown"), [("What most people took", "What most people took"), ("", "Popularity")])
def test_a_name_and_a_title(run_of: RunOf, tmp_path: Path, title: str, shown: str) -> None:
    folder = export_run(run_of("popularity"), tmp_path / "out", name="most-taken", title=title)
    assert folder == tmp_path / "out" / "most-taken"
    found = Zoo.open(tmp_path / "out").bundles["most-taken"].manifest
    assert (found.title, found.family) == (shown, "popularity")


def test_an_export_folder_that_was_deleted_meanwhile_is_not_brought_back(dataset: Any, tmp_path: Path) -> None:
    out = tmp_path / "tiny"
    with pytest.raises(SeqscopeError), exported(out / "popularity", dataset, out, 10):
        shutil.rmtree(out)
    assert not out.exists()


@pytest.mark.parametrize("users", [7, 10_000])
def test_so_many_people_are_offered(dataset: Any, tmp_path: Path, users: int) -> None:
    write_dataset_side(dataset, tmp_path, users)
    table = pq.read_table(tmp_path / "users.parquet")
    assert table.num_rows == min(users, len(dataset.cases("test")))
    assert table["user"].to_pylist() == sorted(set(table["user"].to_pylist()))
    again = tmp_path / "again"
    again.mkdir()
    write_dataset_side(dataset, again, users)
    assert pq.read_table(again / "users.parquet").equals(table)


def test_a_place_that_cannot_be_written(run_of: RunOf, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SeqscopeError, match="file"):
        export_run(run_of("popularity"), tmp_path / "file")
