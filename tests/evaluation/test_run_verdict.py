"""The verdict on runs that lie side by side, and where the command line says it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from engine.cli import main
from engine.data.dataset import Dataset
from engine.evaluation.evaluate import evaluate
from engine.evaluation.run_verdict import of_runs, other_seeds
from engine.evaluation.verdict import Contender, group_rows, sentences
from engine.export.bundle import export_run
from engine.files import alone
from engine.runtime import Zoo
from engine.training.run import open_run, train
from tests.training.tiny import clusters, recipe, write_log


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one dataset: two that need no training, evaluated, and two seeds of one that learns."""
    folder = tmp_path_factory.mktemp("runs")
    dataset = write_log(folder / "data", clusters(80), 60)
    recipes = {"popularity": recipe("popularity"), "markov": recipe("markov")}
    recipes |= {name: recipe("fmc", training={"seed": seed}) for seed, name in enumerate(("one", "two"), 1)}
    for name, of_run in recipes.items():
        train(of_run, dataset, folder / "runs" / name, device="cpu")
        evaluate(open_run(folder / "runs" / name)[0], dataset, folder / "runs" / name)
    return folder


def test_runs_of_the_same_data_are_judged_together(trained: Path, tmp_path: Path) -> None:
    dataset = Dataset(trained / "data")
    runs = list((trained / "runs").iterdir())
    found = of_runs([*runs, tmp_path, trained / "nowhere"], dataset, "full", "NDCG@10")
    assert found is not None and found.neural is not None and found.untrained is not None
    assert (found.neural.name, found.neural.seeds, found.neural.among, found.untrained.among) == ("one", 2, 1, 2)
    assert found.untrained.seconds > 0 and found.untrained.milliseconds and found.neural.milliseconds
    assert {"next", "near"} & {group.kind for group in found.groups}
    copy = Path(shutil.copytree(trained / "runs" / "one", tmp_path / "copy"))
    again = of_runs([*runs, copy], dataset, "full", "NDCG@10")
    assert again is not None and again.neural is not None and again.neural.seeds == 2  # it is no other training
    other = tmp_path / "other"
    shutil.copytree(trained / "runs" / "one", other)
    record = json.loads((other / "run.json").read_text("utf-8"))
    (other / "run.json").write_text(json.dumps(record | {"fingerprint": "0" * 64}), "utf-8")
    assert of_runs([other], dataset, "full", "NDCG@10") is None
    assert of_runs(runs, dataset, "full, refit", "NDCG@10") is None  # fitted on other events: never with these


def test_seeds_stand_in_their_order_whatever_their_folders_are_called(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of more than two of them in another order differ in their last bits, and samples of users with them."""
    judged: list[Contender] = []
    monkeypatch.setattr("engine.evaluation.run_verdict.verdict", lambda contenders, *_: judged.extend(contenders))
    for number, (first, second) in enumerate((("one", "two"), ("two", "one"))):
        for name, run in (("a", first), ("b", second)):
            shutil.copytree(trained / "runs" / run, tmp_path / str(number) / name)
        of_runs((tmp_path / str(number)).iterdir(), Dataset(trained / "data"), "full", "NDCG@10")
    for ours, theirs in zip(judged[0].ranks, judged[1].ranks, strict=True):
        assert ours.rank.tolist() == theirs.rank.tolist()
    assert judged[0].ranks[0].rank.tolist() != judged[0].ranks[1].rank.tolist()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("metrics.json", "[]"),
        ("metrics.json", '{"full": 3}'),
        ("metrics.json", '{"full": {"HR@1": NaN}}'),
        ("metrics.json", "[" * 100_000),
        ("ranks.parquet", None),
        ("cost.json", "[]"),
        ("cost.json", '{"milliseconds": "x"}'),
        ("run.json", '"seconds": "long"'),
        ("run.json", '"parameters": null'),
        ("run.json", '"recipe": {"family": []}'),
    ],
)
def test_a_damaged_run_beside_others_is_left_out(trained: Path, tmp_path: Path, file: str, content: str | None) -> None:
    damaged = Path(shutil.copytree(trained / "runs" / "markov", tmp_path / "damaged")) / file
    damaged.unlink()
    if content is None:
        damaged.mkdir()
    elif file == "run.json":  # one entry is another
        record = (trained / "runs" / "markov" / file).read_text("utf-8").rstrip().removesuffix("}")
        damaged.write_text(f"{record}, {content}}}", "utf-8")
    else:
        damaged.write_text(content, "utf-8")
    judged = of_runs([trained / "runs" / "popularity", damaged.parent], Dataset(trained / "data"), "full", "NDCG@10")
    assert judged is not None and judged.untrained is not None and judged.untrained.among == 1 + (file == "cost.json")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("metrics.json", '{"full": {"HR@1": null}}'), ("exposure.parquet", "PAR1"), ("ranks.parquet", ""),
        ("run.json", "[" * 100_000), ("run.json", "{}"),
    ],
)  # fmt: skip
def test_an_export_of_a_damaged_run_is_refused(
    trained: Path, tmp_path: Path, file: str, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(trained / "runs" / "markov", tmp_path / "damaged"))
    (run / file).write_text(content, "utf-8")
    assert main(["export", str(run), "--to", str(tmp_path / "exports")]) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("seqscope: "))
    assert str(run) in line and file in line and ("seqscope evaluate" in line or "--restart" in line)
    assert not (tmp_path / "exports").exists()


def test_nobody_evaluates_where_another_process_writes(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(trained / "runs" / "markov", tmp_path / "run"))
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    with alone(run):
        assert main(["evaluate", str(run)]) == 1
    assert f"another process is writing to {run}" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    assert main(["evaluate", str(run)]) == 0


def test_an_export_carries_the_ranks_of_other_seeds(trained: Path, tmp_path: Path) -> None:
    runs = trained / "runs"
    bundle = Zoo.open(export_run(runs / "one", tmp_path / "out").parent).bundles["one"]
    table, ranks = bundle.seeds_table(), pq.read_table(runs / "two" / "ranks.parquet")
    assert table is not None and set(table["seed"].to_pylist()) == {2}
    assert table["rank"].to_pylist() == ranks["rank"].to_pylist()
    assert other_seeds(runs / "markov") is None


def test_figures_of_another_dataset_stand_in_a_folder_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    titles = [f"Item {number}" for number in range(60)]
    known, other = (
        write_log(tmp_path / name, clusters(users), 60, titles=titles, name=name)
        for name, users in (("known", 20), ("other", 21))
    )
    run = tmp_path / "run"
    train(recipe("zesrec", training={"epochs": 1}), known, run, device="cpu")
    capsys.readouterr()
    assert main(["evaluate", str(run), "--dataset", str(other.path), "--protocol", "u100"]) == 1
    refusal = capsys.readouterr().err
    assert f"u100: of the 60 items of {other.path} somebody's history leaves" in refusal
    assert "evaluate 100%" not in refusal  # before anything is ranked
    assert not (run / "elsewhere").exists()
    for _ in range(2):
        assert main(["evaluate", str(run), "--dataset", str(other.path)]) == 0
    assert "full" in json.loads((run / "elsewhere" / "other" / "metrics.json").read_text("utf-8"))
    assert not (run / "metrics.json").exists()


def test_a_run_that_was_deleted_meanwhile_is_not_brought_back(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(trained / "runs" / "popularity", tmp_path / "popularity")

    def opened_late(*given: Any, **more: Any) -> Any:
        opened = open_run(*given, **more)
        shutil.rmtree(run)
        return opened

    monkeypatch.setattr("engine.training.run.open_run", opened_late)
    assert main(["evaluate", str(run)]) == 1
    assert not run.exists()


def test_the_command_says_what_held_out_items_are_and_then_the_verdict(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = Path(shutil.copytree(trained / "data", tmp_path / "data"))
    about = json.loads((dataset / "dataset.json").read_text("utf-8"))
    about["counts"]["test"], about["held_out"] = 1, {"ties": 1, "repeats": 0}
    (dataset / "dataset.json").write_text(json.dumps(about), "utf-8")
    words = ["evaluate", str(trained / "runs" / "popularity"), "--dataset", str(dataset)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    found = of_runs((trained / "runs").iterdir(), Dataset(dataset), "full", "NDCG@10")
    assert found is not None and f"\n{sentences(found)}\nslice " in printed
    assert ": 1 test user, split " in printed
    assert 0 < printed.index("shares its time") < printed.index(sentences(found))
    assert all(row[0] in printed and row[3] in printed for row in group_rows(found))
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"]["difference"] == found.difference and "shares its time" in said["held_out"][0]
