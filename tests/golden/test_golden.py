"""What was written before the house was rebuilt opens after, and means the same: bundles, runs, a store, addresses, a report."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from app import home, work
from app.jobs.runner import Runner
from app.store.database import Store
from app.store.server import open_store
from engine.cli import main
from engine.runtime import Zoo
from engine.tokenizers.run import open_tokenizer
from engine.training.run import open_run
from tests.app.own import own_home
from tests.golden import ARCHIVE, KEPT_ANSWERS, KEPT_METRICS, KEPT_STATES, OF_FORMAT_6, OWNER, VISITOR, unpack
from tests.golden.addresses import ADDRESSES
from tests.golden.answers import HISTORY, answers, decoded, printed
from tests.jobs.conftest import _here
from tests.training.fixtures import one_thread
from tests.waiting import wait

__all__ = ["one_thread"]

MODELS = (
    "sasrec", "bert4rec", "attrec", "lightgcn", "ngcf", "mult-vae", "recformer", "text-neighbours", "markov", "popularity",
    "tiger", "p5", "lc-rec", "lora",
)  # fmt: skip
INTERRUPTED = ("sasrec", "attrec", "recformer", "tiger", "lora")
"""Those whose checkpoints go on here, of all optimisers and kinds of networks; the archive holds more."""
TOKENIZERS = ("rqvae", "letter")
ODD = ("a~b", "a b&c=d#e", "ключ")
"""Ids of items that are no plain ones."""


def command(name: str, out: str) -> list[str]:
    """What trains, or fits, the recipe of that name into runs/<out>."""
    words = [name, "--recipe", f"recipes/{name}.toml", "--dataset", "data/golden", "--out", f"runs/{out}"]
    return ["tokenize" if name in TOKENIZERS else "train", *words, "--device", "cpu"]


def param(name: str) -> Any:
    """A language model takes longer than all others."""
    return pytest.param(name, marks=[pytest.mark.long] if name == "lora" else [])


def installed(name: str) -> None:
    """Skips what reads a language model where nothing is installed that can."""
    if name == "lora":
        pytest.importorskip("transformers", reason="transformers: `make install-dev`")
        pytest.importorskip("peft", reason="peft: `make install-dev`")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    unpack(ARCHIVE, folder)
    return folder


@pytest.fixture
def here(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the archive, from which its commands ran."""
    monkeypatch.chdir(unpacked)
    return unpacked


@pytest.fixture(scope="module")
def zoo(unpacked: Path) -> Zoo:
    return Zoo.open(unpacked / "exports" / "golden", warm=True)


# --- bundles


def test_every_bundle_opens_and_answers_as_it_did(zoo: Zoo) -> None:
    assert not zoo.refused and not zoo.studies.refused
    assert set(zoo.bundles) == set(MODELS) - {"lora"}
    agree(zoo, KEPT_ANSWERS)


def test_weights_between_items_that_are_not_packed_are_read(unpacked: Path, tmp_path: Path) -> None:
    unpack(OF_FORMAT_6["archive"], tmp_path)
    for file in ("dataset.json", "items.parquet", "users.parquet"):
        shutil.copy(unpacked / "exports" / "golden" / file, tmp_path / "golden")
    zoo = Zoo.open(tmp_path / "golden", warm=True)
    assert not zoo.refused and {bundle.manifest.schema_version for bundle in zoo.bundles.values()} == {6}
    agree(zoo, OF_FORMAT_6["answers"])
    for bundle in zoo.bundles.values():
        parts = bundle.contributions([1, 3, 9, 5, 21], 17)
        assert parts.score == pytest.approx(bundle.scores([1, 3, 9, 5, 21])[17], rel=1e-5)


def agree(zoo: Zoo, kept: Path) -> None:
    now = answers(zoo)
    with np.load(kept, allow_pickle=False) as then:
        assert set(then) == set(now)
        for name in then:
            if then[name].dtype.kind == "f":
                np.testing.assert_allclose(now[name], then[name], atol=1e-4, rtol=1e-4, err_msg=name)
            else:
                np.testing.assert_array_equal(now[name], then[name], err_msg=name)


@pytest.mark.parametrize("dataset", ["films", "sample"])
def test_metrics_of_committed_exports_are_what_they_were(root: Path, dataset: str) -> None:
    """To the last digit that is printed; whoever commits other exports makes the file anew with make.py."""
    then = json.loads(KEPT_METRICS.read_text("utf-8"))[dataset]
    assert printed(Zoo.open(root / "exports" / dataset)) == then


def test_a_report_holds(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = (here / "report").glob("*.json")
    assert main(["report", "--verify", str(file), "--exports", "exports"]) == 0
    assert "list of SASRec" in capsys.readouterr().out


@pytest.mark.parametrize("number", range(len(ADDRESSES)))
def test_an_address_means_what_it_meant(unpacked: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(unpacked / "exports"))
    then = json.loads(KEPT_STATES.read_text("utf-8"))[number]
    if "beam" in then["own"] and then["own"].pop("slow", None):  # of a section of Compare that is gone
        then["address"] = then["address"].replace("&slow=asked", "")
    assert decoded(*ADDRESSES[number]) == then


# --- runs


@pytest.mark.parametrize("name", [param(name) for name in MODELS])
def test_a_finished_run_opens_and_is_not_done_again(here: Path, name: str) -> None:
    installed(name)
    model, recipe, _, _ = open_run(here / "runs" / name)
    assert recipe.name == name
    before = (here / "runs" / name / "best.safetensors").read_bytes()
    assert main(command(name, name)) == 0
    if name != "markov":  # which keeps the same counts in another form since, and answers alike
        assert (here / "runs" / name / "best.safetensors").read_bytes() == before
    then = np.load(KEPT_ANSWERS, allow_pickle=False)
    if f"{name}/scores 0" in then:  # the lora has no bundle
        with torch.no_grad():
            scores = model.scores(torch.tensor([[9]]))[0].numpy()
        np.testing.assert_allclose(scores, then[f"{name}/scores 0"], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", [param(name) for name in INTERRUPTED])
def test_an_interrupted_training_ends_as_the_one_that_was_not(here: Path, name: str) -> None:
    installed(name)
    cut = shutil.copytree(here / "runs" / f"{name}-cut", here / "runs" / f"{name}-again", dirs_exist_ok=True)
    assert main(command(name, cut.name)) == 0
    _, _, record, _ = open_run(cut)
    _, _, whole, _ = open_run(here / "runs" / name)
    losses = [[entry["loss"] for entry in one["curve"]] for one in (record, whole)]
    np.testing.assert_allclose(*losses, rtol=1e-3)  # another processor adds in another order
    shutil.rmtree(cut)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_tokenizer_goes_on_to_the_same_codes(here: Path, name: str) -> None:
    cut = shutil.copytree(here / "runs" / f"{name}-cut", here / "runs" / f"{name}-again", dirs_exist_ok=True)
    assert main(command(name, cut.name)) == 0
    again, whole = (load_file(open_folder / "tokenizer.safetensors") for open_folder in (cut, here / "runs" / name))
    assert again.keys() == whole.keys()
    assert all(torch.allclose(again[key], whole[key], atol=5e-3) for key in whole)  # see above
    assert open_tokenizer(cut)[2].name == name
    shutil.rmtree(cut)


# --- the store


@pytest.fixture
def store(unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    shutil.copytree(unpacked / "home", tmp_path / "home")
    monkeypatch.setattr(Runner, "_command", _here)
    with own_home(tmp_path / "home", monkeypatch):
        yield open_store()


def test_the_store_keeps_what_people_saved(store: Store, unpacked: Path, tmp_path: Path) -> None:
    (dataset,) = store.datasets.of(OWNER)
    assert (dataset.title, dataset.state, dataset.rows_items) == ("Things", "ready", 130)
    saved = {history.name: history.items for history in store.histories.of(OWNER)}
    assert saved == {"Odd ones": ODD, "Wie früher": HISTORY}
    assert [history.items for history in store.histories.of(VISITOR)] == [("alien-1979", "aliens-1986")]
    assert store.comparisons.of(OWNER)[0].address.startswith("/?v=1")
    (report,) = store.reports.of(OWNER)
    file, exports = tmp_path / "report.json", home.here().dataset(OWNER, dataset.id).exports
    file.write_text(json.dumps(store.reports.get(OWNER, report.id).document))
    assert main(["report", "--verify", str(file), "--exports", str(exports)]) == 0


def test_the_queue_goes_on_with_what_waited(store: Store) -> None:
    (dataset,) = store.datasets.of(OWNER)
    works = work.of(OWNER, dataset.id)
    states = {one.row.kind: one.row.state for one in works if one.over}
    assert states == {"train": "done", "batch": "failed"}
    (waiting,) = (one for one in works if not one.over)
    assert waiting.row.spec["models"] == ["markov"] and waiting.job is not None
    Runner(home.here().job(waiting.row.id)).run()  # in this process
    wait(lambda: store.file.ask("select state from job where id = ?", [waiting.row.id]) == [("done",)])
    zoo = Zoo.open(home.here().dataset(OWNER, dataset.id).exports, warm=True)
    assert not zoo.refused and set(zoo.bundles) == {"popularity", "markov"}


def test_an_upload_can_be_read_again(store: Store) -> None:
    """Its bytes, with the reading that its owner chose, give the clean files that are there."""
    from app.uploads import files
    from app.uploads.limits import UploadLimits

    (dataset,) = store.datasets.of(OWNER)
    folder = home.here().dataset(OWNER, dataset.id).path
    readings = files.readings(folder)
    assert set(readings) == {"catalogue", "log"}
    checked = files.check(folder, readings, UploadLimits.of_environment())
    assert (checked.items, checked.events, checked.fingerprint) == (
        dataset.rows_items,
        dataset.rows_events,
        dataset.fingerprint,
    )
