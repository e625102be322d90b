"""`seqscope doctor`: what is found, what is missing, and the exit code that follows from it."""

import json
import stat
from pathlib import Path

import pytest

from engine import cli
from engine.commands import doctor
from engine.data.dataset import DatasetInfo
from engine.runtime import EMBEDDED


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    return tmp_path / "nothing here"


def ability(report: doctor.Diagnosis, name: str) -> doctor.Ability:
    return next(found for found in report.abilities if found.name == name)


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """As on a machine where these packages are not installed."""
    version = doctor.version
    monkeypatch.setattr(doctor, "version", lambda package: None if package in names else version(package))


INFO = DatasetInfo(
    name="tiny", title="Tiny", source="made up", licence="none", simulated=True,
    counts={"users": 12, "items": 1345, "events": 60, "train": 40, "valid": 10, "test": 10},
    lengths={}, sparsity=0.5, time={}, split={}, options={}, left_out={},
    fingerprint="0" * 64, created="2026-01-01T00:00:00Z", created_by="a test",
)  # fmt: skip


def test_a_machine_with_everything_trains_but_has_nothing_to_serve_without_bundles(empty: Path) -> None:
    report = doctor.examine(empty, empty, None)
    assert all(ability(report, name).works for name in ("Train", "Import logs", "Export bundles"))
    assert report.torch["version"].startswith("2.")
    assert report.inference["onnxruntime"]
    assert not ability(report, "Serve the app").works
    assert "no bundle in" in ability(report, "Serve the app").note
    assert not report.healthy


def test_missing_packages_are_named_with_the_cure(monkeypatch: pytest.MonkeyPatch, empty: Path) -> None:
    without(monkeypatch, "streamlit", "plotly", "onnxruntime")
    report = doctor.examine(empty, empty, None)
    assert report.packages["streamlit"] is None
    assert ability(report, "Train").works, "training must not ask for the app's packages"
    note = ability(report, "Serve the app").note
    assert "not installed: streamlit, plotly, onnxruntime-gpu" in note
    assert "make install" in note


def test_a_bare_training_machine_is_described_not_crashed_on(monkeypatch: pytest.MonkeyPatch, empty: Path) -> None:
    real = doctor.importlib.import_module

    def only_torch(name: str) -> object:
        if name.startswith("engine.runtime"):
            raise ModuleNotFoundError("No module named 'onnxruntime'")
        return real(name)

    monkeypatch.setattr(doctor.importlib, "import_module", only_torch)
    without(monkeypatch, *(set(doctor.APP) - {"pyarrow"}))
    report = doctor.examine(empty, empty, None)
    assert "onnxruntime" in report.inference["error"]
    assert ability(report, "Train").works
    assert not report.healthy


def test_torch_that_does_not_load_is_a_reason_of_its_own(monkeypatch: pytest.MonkeyPatch, empty: Path) -> None:
    monkeypatch.setattr(doctor, "describe_torch", lambda: {"error": "cannot be imported: libcudart.so.13"})
    assert ability(doctor.examine(empty, empty, None), "Train").note == "torch cannot be imported: libcudart.so.13"


def test_datasets_are_listed_and_damaged_ones_are_named(tmp_path: Path) -> None:
    for name in ("broken", "whole"):
        (tmp_path / name).mkdir()
    (tmp_path / "whole" / "dataset.json").write_text(INFO.to_json())
    (tmp_path / "broken" / "dataset.json").write_text("{")
    (tmp_path / "no dataset").mkdir()
    broken, whole = doctor.describe_datasets(tmp_path)
    assert whole == {"name": "whole", "users": 12, "items": 1345, "events": 60}
    assert "not valid JSON" in broken["fault"]


def test_a_bundle_that_does_not_open_is_reported_with_its_reason(tmp_path: Path, empty: Path) -> None:
    (tmp_path / "tiny" / "sasrec").mkdir(parents=True)
    (tmp_path / "tiny" / "dataset.json").write_text("{}")
    report = doctor.examine(tmp_path, empty, None)
    (entry,) = report.data["exports"]
    assert entry["name"] == "tiny"
    assert entry["models"] == []
    assert entry["faults"]
    assert ability(report, "Serve the app").note == entry["faults"][0]


def test_the_embedded_datasets_open(root: Path, empty: Path) -> None:
    report = doctor.examine(root / "exports", root / "data", None)
    assert "sample" in {entry["name"] for entry in report.data["exports"]}
    assert not [fault for entry in report.data["exports"] for fault in entry["faults"] if entry["name"] in EMBEDDED]
    assert report.healthy


def test_the_browser_is_the_named_one_or_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty: Path) -> None:
    browser = tmp_path / "my browser"
    browser.write_text("#!/bin/sh\n")
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    assert doctor.find_chromium({"SEQSCOPE_CHROMIUM": str(browser)}) == str(browser)
    monkeypatch.setenv("SEQSCOPE_CHROMIUM", "/no/such/browser")  # a wrong name is not papered over
    tests = ability(doctor.examine(empty, empty, None), "Browser tests")
    assert not tests.works and not tests.needed
    assert "apt-get install chromium" in tests.note


def test_public_logs_lie_where_the_variable_says_or_beside_the_repository(tmp_path: Path, empty: Path) -> None:
    assert doctor.find_public_data(tmp_path / "repo", {}) is None
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert doctor.find_public_data(tmp_path / "repo", {}) == tmp_path.resolve() / "shared" / "data"
    assert doctor.find_public_data(tmp_path / "repo", {"SEQSCOPE_DATA": "/logs"}) == Path("/logs")
    assert doctor.describe_public(empty) == {"folder": str(empty), "logs": None}


class TestCommand:
    def test_json_says_what_the_exit_code_says(self, empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
        code = cli.main(["doctor", "--json", "--exports", str(empty), "--data", str(empty)])
        report = json.loads(capsys.readouterr().out)
        assert code == 1
        assert report["healthy"] is False
        assert {entry["name"] for entry in report["abilities"]} >= {"Train", "Serve the app", "Browser tests"}
        assert report["machine"]["cores"].isdigit()

    def test_text_has_every_section(
        self, tmp_path: Path, empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "tiny").mkdir()
        (tmp_path / "tiny" / "dataset.json").write_text(INFO.to_json())
        gpu = {"name": "Some GPU", "memory": "80.0 GiB", "capability": "9.0", "bf16": True}
        facts = {"version": "2.13.0", "cuda": "13.0", "threads": 8, "devices": [gpu]}
        monkeypatch.setattr(doctor, "describe_torch", lambda: facts)
        assert cli.main(["doctor", "--exports", str(empty), "--data", str(tmp_path)]) == 1
        out = capsys.readouterr().out
        for title in ("Machine", "PyTorch", "Inference", "Packages", "Data", "What works here"):
            assert f"\n{title}\n" in out
        assert "12 users, 1,345 items, 60 events" in out
        assert "✗ Serve the app" in out
        assert "Some GPU, 80.0 GiB, capability 9.0, bf16" in out
        assert "✓ Train            on Some GPU (80.0 GiB)" in out
