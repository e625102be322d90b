"""`seqscope report`: makes, verifies and answers for many; exit codes; no Streamlit, no torch."""

import json
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.limits import MAX_HISTORY, MAX_K
from app.reports import document
from engine.cli import main
from tests.runtime.bundles import seal
from tests.runtime.test_hostile_onnx import unknown_operator


def made(hostile: Path, folder: Path, *more: str) -> Path:
    words = ["report", str(hostile), "--history", "toy-9", "toy-12", "--to", str(folder), "--forms", "json"]
    assert main([*words, *more]) == 0
    (path,) = folder.glob("*.json")
    return path


def test_options_and_the_address_that_says_them_give_one_report(hostile: Path, tmp_path: Path) -> None:
    options = ["--models", "alpha", "beta", "-k", "3", "--parts", "lists", "history", "--edited", "toy-9"]
    link = ["--title", "Mine", "--link", "https://app.example.org/tools/map"]
    first = document.load(made(hostile, tmp_path / "a", *options, *link))
    assert [one.name for one in first.models] == ["alpha", "beta"] and first.asked.parts == ["history", "lists"]
    assert first.asked.k == 3 and first.asked.edited == ["toy-9"] and first.title == "Mine"
    address = first.address or ""
    assert address.startswith("https://app.example.org/tools/report?v=1&ds=hostile&h=toy-9")

    words = ["report", "--address", address, "--exports", str(hostile.parent), "--to", str(tmp_path / "b")]
    assert main([*words, "--forms", "json"]) == 0
    second = document.load(next((tmp_path / "b").glob("*.json")))
    assert second.lists == first.lists and second.asked == first.asked and second.address == address

    assert main([*words[:-1], str(tmp_path / "c"), "--forms", "json", "--history", "toy-12"]) == 0
    third = document.load(next((tmp_path / "c").glob("*.json")))
    assert third.asked.history == ["toy-12"] and third.asked.edited is None, "an edit is one of its own history"


def test_an_address_without_a_dataset_means_the_one_that_the_app_opens(hostile: Path, tmp_path: Path) -> None:
    words = ["report", "--address", "http://localhost/?k=2", "--exports", str(tmp_path), "--parts", "lists", "history"]
    for embedded in ("sample", "films"):
        shutil.copytree(hostile, tmp_path / embedded)
        out = tmp_path / f"of {embedded}"
        assert main([*words, "--to", str(out), "--forms", "json"]) == 0
        assert f"ds={embedded}" in (document.load(next(out.glob("*.json"))).address or "")


def test_a_model_that_cannot_be_run_takes_no_other_along(copied: Path, tmp_path: Path) -> None:
    (copied / "alpha" / "encoder.onnx").write_bytes(unknown_operator().SerializeToString())
    seal(copied / "alpha")
    report = document.load(made(copied, tmp_path))
    assert report.lists is not None and "alpha" not in {listing.model for listing in report.lists}
    assert any("alpha/encoder.onnx: ONNX Runtime cannot load the graph" in note for note in report.notes)


def test_verify(hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made(hostile, tmp_path)
    assert main(["report", "--verify", str(path), "--exports", str(hostile.parent)]) == 0
    said = capsys.readouterr()
    assert "holds          list of Alpha: the same 10 items in the same order" in said.out and not said.err
    assert main(["report", "--verify", str(path), str(hostile)]) == 0

    raw = json.loads(path.read_text("utf-8"))
    raw["lists"][0]["items"].reverse()
    path.write_text(json.dumps(raw), "utf-8")
    capsys.readouterr()
    assert main(["report", "--verify", str(path), "--exports", str(hostile.parent)]) == 1
    said = capsys.readouterr()
    assert "DOES NOT HOLD  list of Alpha: place 1 was" in said.out
    assert said.err.startswith(f"seqscope: {path}: ") and "seal" in said.err and said.err.count("\n") == 1


def test_verify_says_what_cannot_be_asked_or_read(
    hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made(hostile, tmp_path, "--parts", "lists", "metrics")
    assert main(["report", "--verify", str(path), str(hostile)]) == 1
    said = capsys.readouterr()
    assert "not asked      lists: " in said.out and "DOES NOT" not in said.out
    assert said.err.startswith(f"seqscope: {path}: not all")
    (tmp_path / "r.json").write_text("{")
    for name in ("r.json", "nope.json"):
        assert main(["report", "--verify", str(tmp_path / name), str(hostile)]) == 1
        said = capsys.readouterr()
        assert name in said.err and said.err.count("\n") == 1 and not said.out


def test_verify_finds_what_a_visitor_brought(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without being told where; and its prepared data, of the same fingerprint, are no zoo."""
    path = made(hostile, tmp_path / "r")
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "owners" / ("b" + "0" * 32) / "datasets" / "x"
    shutil.copytree(hostile, folder / "exports")
    (folder / "data").mkdir()
    shutil.copy(hostile / "dataset.json", folder / "data")
    assert main(["report", "--verify", str(path)]) == 0
    assert f"{folder / 'exports'}: fingerprint" in capsys.readouterr().out
    assert main(["report", "--verify", str(path), "--exports", str(folder)]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["report"],
        ["report", "zoo"],
        ["report", "batch", "zoo", "h.csv"],
        ["report", "a", "b", "--to", "x"],
        ["report", "--verify", "r.json", "a", "b"],
        ["report", "zoo", "--to", "x", "--parts", "nope"],
        ["report", "batch", "zoo", "h.csv", "--to", "x.csv", "--memory", "10"],
    ],
)
def test_wrong_use(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("seqscope: ")


def test_conflicting_options(hostile: Path, tmp_path: Path) -> None:
    assert main(["report", str(hostile), "--history", "toy-9", "--user", "u1", "--to", str(tmp_path)]) == 2
    too_many = ["-k", str(MAX_K + 1)], ["--history", *["toy-9"] * (MAX_HISTORY + 1)], ["--title", "x" * 201]
    for more_than_a_report_takes in too_many:
        assert main(["report", str(hostile), *more_than_a_report_takes, "--to", str(tmp_path)]) == 2
    for link in ("http://[bad", "localhost:8501", "javascript:alert(1)"):
        assert main(["report", str(hostile), "--link", link, "--to", str(tmp_path)]) == 2


@pytest.mark.parametrize("words", [["--history", "toy-9"], ["--parts", "lists"], ["--slow"], ["--user", ""]])
def test_a_batch_refuses_what_says_something_of_a_report_alone(
    words: list[str], hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "batch", str(hostile), "people", "--to", str(tmp_path / "o.csv"), *words]) == 2
    assert f"{words[0]} is of a report alone" in capsys.readouterr().err
    assert main(["report", str(hostile), "--to", str(tmp_path / "o"), "--user-column", "u"]) == 2
    assert "--user-column is of a batch alone" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_replaced_where_that_is_said(
    hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = made(hostile, tmp_path / "r"), tmp_path / "o.csv"
    out.touch()
    path.write_text("", "utf-8")
    for words in (
        ["report", str(hostile), "--history", "toy-9", "--to", str(tmp_path / "r")],
        ["report", "batch", str(hostile), "people", "--models", "alpha", "--to", str(out)],
    ):
        assert main(words) == 1 and "exists already" in capsys.readouterr().err
        assert not path.stat().st_size or not out.stat().st_size
        assert main([*words, "--overwrite"]) == 0
    assert path.stat().st_size and out.stat().st_size


def test_schema(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--schema"]) == 0
    committed = (root / "docs" / "report.schema.json").read_text("utf-8")
    assert capsys.readouterr().out == committed, "renew it: seqscope report --schema > docs/report.schema.json"


def test_batch(hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "lists.csv"
    words = ["report", "batch", str(hostile), "people", "--to", str(out), "-k", "2", "--models", "alpha", "popular"]
    assert main(words) == 0
    assert "4 histories, 16 rows" in capsys.readouterr().out
    assert len(out.read_text("utf-8-sig").splitlines()) == 17


def test_a_batch_whose_account_may_have_less_memory_than_it_is_given_goes_on(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(kind: int, limits: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    words = ["report", "batch", str(hostile), "people", "--to", str(tmp_path / "o.csv"), "--models", "alpha"]
    assert main([*words, "--memory", "10000"]) == 0


def test_a_batch_that_is_ended_says_how_to_go_on(hostile: Path, tmp_path: Path, root: Path) -> None:
    """SIGTERM, as a job's cancel sends it: nothing half is left, and the parts are kept."""
    code = (
        "import time, sys; from engine.runtime.bundle import Bundle; from engine.cli import main\n"
        "real = Bundle.recommend_many\n"
        "Bundle.recommend_many = lambda *a, **k: (print('asked', flush=True), time.sleep(30))\n"
        f"sys.exit(main(['report', 'batch', {str(hostile)!r}, 'people', '--to', {str(tmp_path / 'o.csv')!r}]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "The same command goes on" in errors and "Traceback" not in errors
    assert not (tmp_path / "o.csv").exists() and (tmp_path / ".o.csv.parts" / "plan.json").is_file()
