"""What is refused leaves nothing behind, and takes nothing away: every command that writes."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine import files
from engine.cli import main
from engine.files import claimed

LOG = "user,item,time\n" + "".join(f"{u},{i},{100 * u + i}\n" for u in range(1, 7) for i in range(1, 7))
ITEMS = "item,title\n" + "".join(f"{i},Film {i}\n" for i in range(1, 7))
PLAN = """
title = "A study"
about = "Of this test."
runs = ["popularity"]
seeds = [1]
baseline = "a"
variants = [{ name = "a", title = "A" }, { name = "b", title = "B", set.popularity = ["training.seed=2"] }]
"""

REFUSED = {
    "train, wrong start": ("train", "recformer", "--dataset", "data/log", "--set", "model.start=nowhere"),
    "train, unknown key": ("train", "sasrec", "--dataset", "data/log", "--set", "model.nothing=1"),
    "train, bad value": ("train", "sasrec", "--dataset", "data/log", "--set", "model.heads=3"),
    "train, no log": ("train", "sasrec", "--dataset", "data/catalogue"),
    "train, no such column": (
        "train", "recformer-pretrained", "--dataset", "data/log", "--set", 'model.fields=["nothing"]',
    ),
    "train, no identifiers": ("train", "tiger", "--dataset", "data/log", "--out", "elsewhere/tiger"),
    "train, nothing to finish": ("train", "sasrec", "--dataset", "data/log", "--finish"),
    "train, nothing to finish, with words": ("train", "recformer-pretrained", "--dataset", "data/log", "--finish"),
    "train, another run": ("train", "markov", "--dataset", "data/log", "--out", "runs/log/popularity"),
    "train, empty path": ("train", "popularity", "--dataset", "data/log", "--out", ""),
    "train, into the dataset": ("train", "popularity", "--dataset", "data/log", "--out", "data/log"),
    "train, into another dataset": ("train", "popularity", "--dataset", "data/log", "--out", "data/bare", "--restart"),
    "train, among datasets": ("train", "popularity", "--dataset", "data/log", "--out", "data"),
    "tokenize, among runs": ("tokenize", "random", "--dataset", "data/log", "--out", "runs/log", "--restart"),
    "tokenize, into the dataset": ("tokenize", "random", "--dataset", "data/log", "--out", "data/log", "--restart"),
    "tokenize, from a file": ("tokenize", "--from", "log.csv", "--dataset", "data/log"),
    "export, into a run": ("export", "runs/log/random", "--to", "runs/log/random"),
    "export, empty path": ("export", "runs/log/random", "--to", ""),
    "train, restart refused": (
        "train", "sasrec", "--dataset", "data/catalogue", "--out", "runs/log/popularity", "--restart",
    ),
    "train, estimate": ("train", "recformer", "--dataset", "data/log", "--set", "model.start=nowhere", "--estimate"),
    "tokenize, unknown recipe": ("tokenize", "nothing", "--dataset", "data/log"),
    "tokenize, no teacher": ("tokenize", "letter", "--dataset", "data/log"),
    "tokenize, no log": ("tokenize", "p5-cid", "--dataset", "data/catalogue"),
    "tokenize, wrong vectors": ("tokenize", "rqvae", "--dataset", "data/log", "--vectors", "data/vectors.npy"),
    "tokenize, no such run": ("tokenize", "--from", "runs/nothing", "--dataset", "data/log"),
    "tokenize, restart refused": (
        "tokenize", "letter", "--dataset", "data/log", "--out", "runs/log/random", "--restart",
    ),
    "train, finish what is thrown away": (
        "train", "popularity", "--dataset", "data/log", "--finish", "--restart",
    ),
    "evaluate, no run": ("evaluate", "runs/nothing"),
    "evaluate, other data": ("evaluate", "runs/log/popularity", "--dataset", "data/catalogue"),
    "evaluate, no generator": ("evaluate", "runs/log/popularity", "--beam", "50"),
    "export, not evaluated": ("export", "runs/log/popularity", "--to", "exports/new"),
    "export, bad name": ("export", "runs/log/random", "--to", "exports/new", "--name", "A B"),
    "export, other data": ("export", "runs/log/random", "--to", "exports/new", "--dataset", "data/catalogue"),
    "export, title of two lines": ("export", "runs/log/random", "--to", "exports/new", "--title", "A\nB"),
    "data import, title of two lines": ("data", "import", "log.csv", "--out", "made/here", "--title", "A\nB"),
    "embed, bad name": ("embed", "--dataset", "data/log", "--encoder", "minilm", "--to", "exports/new", "--name", "A B"),
    "embed, unknown column": ("embed", "--dataset", "data/log", "--fields", "nothing", "--export", "made/words"),
    "study, unknown": ("study", "nothing", "--dataset", "data/log", "--to", "exports/new"),
    "study, no tokenizer": ("study", "temperature", "--dataset", "data/log", "--to", "exports/new"),
    "study, folder of export folders": ("study", "plan.toml", "--dataset", "data/log", "--to", "exports"),
    "export, folder of export folders": ("export", "runs/log/random", "--to", "exports"),
    "zero-shot, no bundle": ("zero-shot", "exports/nothing", "--dataset", "data/log", "--to", "exports/new"),
    "zero-shot, bad name": (
        "zero-shot", "{sample}/recformer", "--dataset", "data/log", "--to", "exports/new", "--name", "A B",
    ),
    "zero-shot, items by number": ("zero-shot", "{sample}/sasrec", "--dataset", "data/log", "--to", "exports/new"),
    "data import, report over a file": ("data", "import", "log.csv", "--out", "made/here", "--report", "items.csv"),
    "catalogue, no file": ("catalogue", "import", "nothing.csv", "--out", "made/here"),
    "catalogue, no id": ("catalogue", "import", "data/log.txt", "--out", "made/here"),
    "data import, no user": ("data", "import", "items.csv", "--out", "made/here"),
    "data import, one user": ("data", "import", "one.csv", "--out", "made/here"),
    "data fetch, unknown": ("data", "fetch", "nothing", "--to", "made/here"),
    "sample films, no table": ("sample", "films", "--from", "nothing", "--out", "made/films"),
    "sample build, no viewers": ("sample", "build", "--viewers", "0", "--out", "made/sample"),
    "sample build, few films": ("sample", "build", "--films", "few.jsonl", "--out", "made/sample"),
    "sample procedural, too few": (
        "sample", "procedural", "--items", "0", "--events", "9", "--out", "made/large",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data/ with a log, a catalogue, and items without words; a run of a model and one of a tokenizer."""
    folder = tmp_path_factory.mktemp("workplace")
    (folder / "log.csv").write_text(LOG)
    (folder / "one.csv").write_text("user,item\n1,1\n1,2\n1,3\n")
    (folder / "items.csv").write_text(ITEMS)
    (folder / "few.jsonl").touch()
    (folder / "plain").touch()
    (folder / "plan.toml").write_text(PLAN)
    (folder / "exports" / "other").mkdir(parents=True)
    (folder / "exports" / "other" / "dataset.json").write_text("{}")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for words in (
            ("data", "import", "log.csv", "--items", "items.csv", "--out", "data/log"),
            ("data", "import", "log.csv", "--out", "data/bare"),
            ("catalogue", "import", "items.csv", "--out", "data/catalogue"),
            ("train", "popularity", "--dataset", "data/log"),
            ("tokenize", "random", "--dataset", "data/log"),
        ):
            assert main(list(words)) == 0
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.fixture
def unchanged(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test runs in the workplace and leaves it as it was."""
    monkeypatch.chdir(workplace)
    before = contents(workplace)
    yield
    assert contents(workplace) == before


@pytest.fixture
def called(root: Path) -> Callable[..., int]:
    """The command line; {sample} in its words are the sample's bundles."""
    return lambda words, **names: main([word.format(sample=root / "exports" / "sample", **names) for word in words])


@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("unchanged")
def test_nothing_is_left_behind(words: tuple[str, ...], called: Callable[..., int]) -> None:
    assert called(words) in (1, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "sasrec", "--dataset", "exports/data"), "exports/data has no log (interactions.parquet is missing)"),
        (("evaluate", "moved/popularity"), "made of data/moved, which is not there"),
        (("export", "moved/random", "--to", "exports/new"), "made of data/moved, which is not there"),
    ],
)
def test_data_that_is_not_there_is_told_from_data_that_is_damaged(
    words: tuple[str, ...],
    message: str,
    workplace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exports" / "data").mkdir(parents=True)
    shutil.copy(workplace / "data" / "log" / "dataset.json", tmp_path / "exports" / "data")
    shutil.copytree(workplace / "runs" / "log", tmp_path / "moved")
    for name in ("popularity", "random"):
        record = tmp_path / "moved" / name / "run.json"
        record.write_text(record.read_text("utf-8").replace('"data/log"', '"data/moved"'), "utf-8")
    assert main(list(words)) == 1
    assert message in capsys.readouterr().err


PIPES = {
    "data import": ("data", "import", "pipe", "--out", "data/new"),
    "data import, items": ("data", "import", "log.csv", "--items", "pipe", "--out", "data/new"),
    "data import, of a format": ("data", "import", "pipe", "--source", "ml-1m", "--out", "data/new"),
    "catalogue import": ("catalogue", "import", "pipe", "--out", "data/new"),
    "train, recipe": ("train", "pipe.toml", "--dataset", "data/log"),
    "tokenize, vectors": ("tokenize", "rqvae", "--dataset", "data/log", "--vectors", "pipe"),
    "export, semantic IDs": ("export", "pipe.json", "--dataset", "data/log", "--to", "exports/new"),
    "study, plan": ("study", "pipe.toml", "--dataset", "data/log", "--to", "exports/new"),
    "report, verify": ("report", "--verify", "pipe.json", "{sample}"),
    "report, batch": ("report", "batch", "{sample}", "pipe", "--to", "made.csv"),
    "store restore": ("store", "restore", "pipe"),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("words", PIPES.values(), ids=PIPES)
def test_nobody_waits_at_a_pipe(
    words: tuple[str, ...],
    workplace: Path,
    called: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQSCOPE_HOME", str(tmp_path / "home"))
    for name in ("log.csv", "data"):
        (tmp_path / name).symlink_to(workplace / name)
    for name in ("pipe", "pipe.toml", "pipe.json"):
        os.mkfifo(tmp_path / name)
    assert called(words) in (1, 2)
    assert "pipe" in capsys.readouterr().err


FILES = {
    "data import": ("data", "import", "log.csv", "--out", "{file}"),
    "data fetch": ("data", "fetch", "ml-100k", "--accept-licence", "--to", "{file}"),
    "train": ("train", "popularity", "--dataset", "data/log", "--out", "{file}"),
    "tokenize": ("tokenize", "random", "--dataset", "data/log", "--out", "{file}"),
    "export": ("export", "runs/log/random", "--to", "{file}"),
    "baselines": ("baselines", "--dataset", "data/log", "--to", "{file}"),
    "baselines, runs": ("baselines", "--dataset", "data/log", "--runs", "{file}", "--to", "exports/new"),
    "embed": ("embed", "--dataset", "data/log", "--to", "{file}"),
    "embed, cache": ("embed", "--dataset", "data/log", "--cache", "{file}"),
    "study": ("study", "plan.toml", "--dataset", "data/log", "--to", "{file}"),
    "study, runs": ("study", "plan.toml", "--dataset", "data/log", "--runs", "{file}", "--to", "exports/new"),
    "report": ("report", "{sample}", "--to", "{file}"),
    "zero-shot": ("zero-shot", "{sample}/recformer", "--dataset", "data/log", "--to", "{file}"),
}


@pytest.mark.parametrize("file", ["plain", "plain/within"])
@pytest.mark.parametrize("words", FILES.values(), ids=FILES)
@pytest.mark.usefixtures("unchanged")
def test_a_file_in_the_place_of_a_folder_is_named_before_anything_is_done(
    words: tuple[str, ...], file: str, called: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(words, file=file) == 1
    assert capsys.readouterr().err.splitlines()[-1:] == [
        "seqscope: plain is a file, and a folder is needed there. Name another folder."
    ]


@pytest.mark.parametrize(
    ("written", "left"),
    [((), "run.json"), (("checkpoint",), "checkpoint"), ((".checkpoint.ab12.part",), "run.json")],
    ids=["nothing", "a file", "half of a file"],
)
def test_of_a_replacement_that_was_killed_the_old_or_the_new_is_left(
    written: tuple[str, ...], left: str, tmp_path: Path
) -> None:
    run, killed = tmp_path / "run", tmp_path / "killed"
    run.mkdir()
    (run / "run.json").touch()
    with claimed(run, ["run.json"]):
        for name in written:
            (run / name).touch()
        shutil.copytree(run, killed)
    assert files.contents(killed) == {left}
    with claimed(killed):
        assert {path.name for path in killed.iterdir()} == {left, ".lock"}


def test_what_people_keep_beside_stays_and_takes_nothing_away(tmp_path: Path) -> None:
    run, killed, there = tmp_path / "run", tmp_path / "killed", {"run.json", "best", "notes.txt", "plots"}
    (run / "plots").mkdir(parents=True)
    for name in ("run.json", "best", "notes.txt"):
        (run / name).touch()
    with pytest.raises(ZeroDivisionError), claimed(run, ["run.json", "best"]):
        shutil.copytree(run, killed)
        raise ZeroDivisionError
    assert files.contents(killed) == there
    with claimed(killed):
        pass
    for folder in (run, killed):
        assert {path.name for path in folder.iterdir()} == {*there, ".lock"}
    with claimed(run, ["run.json", "best"]):
        (run / "run.json").touch()
    assert {path.name for path in run.iterdir()} == {"run.json", "notes.txt", "plots", ".lock"}


def test_whoever_is_killed_while_old_files_are_moved_away_or_back_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, run, rename = {"best", "run.json"}, tmp_path / "run", Path.rename
    run.mkdir()
    for name in old:
        (run / name).touch()
    killed: list[Path] = []

    def move(path: Path, target: Path) -> Path:
        killed.append(Path(shutil.copytree(run, tmp_path / f"killed-{len(killed)}")))
        return rename(path, target)

    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(Path, "rename", move)
        with claimed(run, old):
            raise ZeroDivisionError
    assert len(killed) >= 4
    for left in killed:
        assert files.contents(left) == old
        with claimed(left):
            assert {path.name for path in left.iterdir()} == {*old, ".lock"}
