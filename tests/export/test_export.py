"""What an export refuses, and that nothing half done is ever seen."""

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

from engine.errors import SeqscopeError, UsageError
from engine.evaluation.evaluate import evaluate
from engine.export import bundle, graphs, vectors
from engine.export.bundle import export_run
from engine.export.staging import exported as staged_export
from engine.export.staging import staged, write_dataset_side
from engine.runtime import Zoo
from engine.training.materials import gather
from engine.training.run import build_model, open_run, train
from tests.models.contract import move
from tests.training.fixtures import RunOf
from tests.training.tiny import cycles, recipe, write_log


@pytest.fixture
def out(copied: Callable[..., Path]) -> Path:
    """Exports with one bundle, that of popularity, to be changed."""
    return copied("popularity")


def contents(bundle: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in bundle.iterdir()}


# --- a graph that differs


def test_a_graph_that_differs_is_refused(
    exported: Callable[[str], Path], run_of: RunOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph that the model has, but for the table of its items, which is not quite the model's."""
    graph = onnx.load(exported("fmc") / "fmc" / "encoder.onnx")
    table = next(tensor for tensor in graph.graph.initializer if tensor.dims and 150 <= tensor.dims[0] <= 152)
    table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table) + np.float32(0.01), table.name))
    monkeypatch.setattr(graphs, "write_encoder", lambda model, path: path.write_bytes(graph.SerializeToString()))
    with pytest.raises(SeqscopeError, match=r"differs from PyTorch.*not exported"):
        export_run(run_of("fmc"), tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_a_model_names_and_nothing_knows_is_said(
    run_of: RunOf, dataset: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, chosen, *_ = open_run(run_of("fmc"))
    monkeypatch.setattr(type(model), "exports", ("vectors", "sky"))
    with pytest.raises(SeqscopeError, match="fmc exports 'sky'"):
        export_run(run_of("fmc"), tmp_path)
    monkeypatch.setattr(type(model), "needs", ("sky",))
    with pytest.raises(SeqscopeError, match="fmc needs 'sky'"):
        gather(chosen, dataset, tmp_path)


@pytest.mark.parametrize(
    ("answer", "spoil"),
    [
        ("scores", lambda scores: scores + 0.01),
        ("scores", lambda scores: torch.where(torch.arange(150) == 149, torch.nan, scores)),
        ("scores", lambda scores: scores[:, :-1]),
        ("scores", lambda scores: scores.roll(1, dims=1)),
        ("query_with_attention", lambda answers: (answers[0], answers[1] + 0.001)),
        ("query_with_attention", lambda answers: (answers[0], answers[1] * torch.nan)),
    ],
)
def test_every_difference_is_seen(
    exported: RunOf, run_of: RunOf, dataset: Any, monkeypatch: pytest.MonkeyPatch, answer: str,
    spoil: Callable[[Any], Any],
) -> None:  # fmt: skip
    model, *_ = open_run(run_of("sasrec"))
    folder, cases = exported("sasrec") / "sasrec", dataset.cases("test")
    check = vectors.compare(folder, model, cases, 1)
    assert (check.histories, check.lengths) == (40, [1, 2, 7, 8, 11]) and check.max_abs_difference <= 1e-4
    honest = getattr(model, answer)
    monkeypatch.setattr(model, answer, lambda items: spoil(honest(items)))
    with pytest.raises(SeqscopeError, match="not exported"):
        vectors.compare(folder, model, cases, 1)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "sasrec",
            {
                "max_length": 2, "blocks": 0, "positions": "sinusoidal", "residual": False, "shared_items": False,
                "user_vector": True,
            },
        ),
        ("attrec", {"window": 1, "fold_in": 1}),
    ],
)  # fmt: skip
def test_unusual_models_have_graphs_too(
    dataset: Any, tmp_path: Path, name: str, settings: dict[str, Any], capfd: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:  # fmt: skip
    chosen = recipe(name, model=settings)
    model = build_model(chosen, dataset.num_items, 41, gather(chosen, dataset, tmp_path))
    move(model, 1)
    if hasattr(model, "refresh"):
        model.refresh()
    capfd.readouterr()
    recwarn.clear()
    graphs.write_encoder(model.eval(), tmp_path / "encoder.onnx")
    assert capfd.readouterr() == ("", "") and not list(recwarn)
    rows, bias = model.index()
    np.save(tmp_path / "index.npy", torch.cat([rows, bias[:, None]], 1).detach().numpy())
    assert vectors.compare(tmp_path, model, dataset.cases("test"), 0).max_abs_difference <= 1e-4
    # with vectors of 41 users, their mean is there, which is what newcomers get, and nobody's own
    tables = [numpy_helper.to_array(tensor) for tensor in onnx.load(tmp_path / "encoder.onnx").graph.initializer]
    assert not any(41 in table.shape for table in tables)
    if "user_vector" in settings:
        assert any(np.array_equal(table.ravel(), model.newcomer.numpy()) for table in tables)


def test_what_pytorch_cannot_export_is_said(tmp_path: Path) -> None:
    """PyTorch would unroll such a network over the length of the example."""
    network = torch.nn.RNN(2, 2, batch_first=True)
    inputs = {"vectors": (torch.ones(2, 6, 2), {0: "batch", 1: "length"})}
    with pytest.raises(SeqscopeError, match=r"RNN cannot be exported.*\.shape\[1\].*docs/extending\.md"):
        graphs.save(
            graphs.Function(network, lambda vectors: network(vectors)[0]), inputs, ["states"], tmp_path / "graph.onnx"
        )


def test_whole_numbers_are_not_clipped_without_a_maximum(tmp_path: Path) -> None:
    """OpenVINO 1.24 answers with the minimum alone."""
    network = torch.nn.Embedding(8, 2)
    inputs = {"items": (torch.arange(6)[None], {0: "batch", 1: "length"})}
    shifted = graphs.Function(network, lambda items: network((items - 2).clamp(min=0)))
    graphs.save(shifted, inputs, ["vectors"], tmp_path / "graph.onnx")
    model = onnx.load(tmp_path / "graph.onnx")
    assert [node.op_type for node in model.graph.node if node.op_type in ("Clip", "Max")] == ["Max"]
    (vectors,) = graphs.session(tmp_path / "graph.onnx").run(None, {"items": np.array([[0, 1, 2, 7]])})
    np.testing.assert_array_equal(vectors[0], network.weight.detach().numpy()[[0, 0, 0, 5]])


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


def test_an_export_replaces_nothing_but_an_export(run_of: RunOf, dataset: Any, tmp_path: Path) -> None:
    run = Path(shutil.copytree(run_of("popularity"), tmp_path / "runs" / "popularity"))
    with pytest.raises(SeqscopeError, match="popularity is no export"):
        export_run(run, tmp_path / "runs")
    data = Path(shutil.copytree(dataset.path, tmp_path / "data"))
    with pytest.raises(SeqscopeError, match="data is a dataset"):
        export_run(run, data)
    for folder, before in ((run, run_of("popularity")), (data, dataset.path)):
        assert {path.name: path.stat().st_size for path in folder.iterdir()} == {
            path.name: path.stat().st_size for path in before.iterdir()
        }
    assert list((tmp_path / "runs").iterdir()) == [run]


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
    ("option", "value"), [("name", "../up"), ("name", "Upper"), ("name", "x" * 65), ("title", "x" * 61), ("users", 0)]
)
def test_wrong_use(run_of: RunOf, tmp_path: Path, option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"--{option}"):
        export_run(run_of("popularity"), tmp_path / "out", **{option: value})
    assert not (tmp_path / "out").exists()


def test_a_folder_whose_name_is_no_name(run_of: RunOf, tmp_path: Path) -> None:
    run = Path(shutil.copytree(run_of("popularity"), tmp_path / "Ümläut"))
    with pytest.raises(UsageError, match="--name"):
        export_run(run, tmp_path / "out")
    folder = export_run(run, tmp_path / "out", name="most-taken", title="What most people took")
    assert folder == tmp_path / "out" / "most-taken"
    found = Zoo.open(tmp_path / "out").bundles["most-taken"].manifest
    assert (found.title, found.family) == ("What most people took", "popularity")


def test_an_export_folder_that_was_deleted_meanwhile_is_not_brought_back(dataset: Any, tmp_path: Path) -> None:
    out = tmp_path / "tiny"
    with pytest.raises(SeqscopeError), staged_export(out / "popularity", dataset, out, 10):
        shutil.rmtree(out)
    assert not out.exists()


@pytest.mark.parametrize("moved", ["nothing", "the old one", "both"])
def test_what_a_killed_export_left_is_cleared_by_the_next(tmp_path: Path, moved: str) -> None:
    """Killed while it wrote, between the two moves that put the folder in place, or after them."""
    bundle = tmp_path / "popularity"
    left = tmp_path / ".staging-1"
    places = {"nothing": (left, bundle), "the old one": (left, left / ".old"), "both": (tmp_path, left / ".old")}
    new, old = places[moved]
    for folder, words in ((new / "popularity", "new"), (old, "old")):
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(words)
    left.mkdir(exist_ok=True)
    with staged(tmp_path / "other"):
        during = list(tmp_path.glob(".staging-*"))
        with staged(tmp_path / "beside"):
            assert {*during} < {*tmp_path.glob(".staging-*")}  # of a process that lives
    assert not list(tmp_path.glob(".staging-*")) and {"other", "beside"} <= {path.name for path in tmp_path.iterdir()}
    assert (bundle / "manifest.json").read_text() == ("old" if moved == "nothing" else "new")


def test_so_many_people_are_offered(dataset: Any, tmp_path: Path) -> None:
    """The same ones again; all of them where there are fewer: tests/export/test_bundle.py."""
    tables = []
    for folder in (tmp_path / "one", tmp_path / "again"):
        folder.mkdir()
        write_dataset_side(dataset, folder, 7)
        tables.append(pq.read_table(folder / "users.parquet"))
    users = tables[0]["user"].to_pylist()
    assert len(users) == 7 and users == sorted(set(users)) and tables[1].equals(tables[0])


def test_a_place_that_cannot_be_written(run_of: RunOf, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SeqscopeError, match="file"):
        export_run(run_of("popularity"), tmp_path / "file")
