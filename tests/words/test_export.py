"""Encoders as folders that the app reads: the same answers as PyTorch's, without torch, and nothing taken on trust."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine import cli
from engine.bundle.errors import BundleError, QuestionError
from engine.errors import SeqscopeError
from engine.export import text as export
from engine.export.text import export_words, is_current
from engine.runtime.text import TextEncoder
from engine.text.encoder import Encoder
from tests.runtime.bundles import edit, flip, seal
from tests.words.tiny import ARABIC, ENGLISH, JAPANESE, KOREAN, encoder, write_items

TEXTS = [*KOREAN, *JAPANESE, *ARABIC, *ENGLISH, "", "word " * 500, "\ud800 half a character"]


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return encoder()


@pytest.fixture(scope="module")
def exported(tiny: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_words(tiny, tmp_path_factory.mktemp("words"))


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "tiny"))


@pytest.fixture
def written_before(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of a graph of seconds, the one that `exported` has of `tiny`."""
    monkeypatch.setattr(export, "_write_graph", lambda encoder, path: shutil.copy(exported / "encoder.onnx", path))


def test_answers_are_those_of_pytorch(exported: Path, tiny: Encoder) -> None:
    found = TextEncoder.open(exported)
    assert np.abs(found.embed(TEXTS[:-1]) - tiny.embed(TEXTS[:-1])).max() < 1e-4
    assert found.about.max_abs_difference < 1e-4
    assert (found.about.dim, found.about.max_length, found.about.digest) == (16, 12, tiny.digest)


def test_one_that_is_there_is_left_alone(tiny: Encoder, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_fill_encoder", None)
    assert is_current(tiny, folder)
    assert export_words(tiny, folder.parent) == folder
    assert not is_current(encoder(seed=1), folder)


def test_a_damaged_or_older_one_is_replaced(tiny: Encoder, folder: Path, written_before: None) -> None:
    (folder / "encoder.onnx").write_bytes(b"")
    export_words(tiny, folder.parent)
    assert is_current(tiny, folder)
    assert [path.name for path in folder.parent.iterdir()] == ["tiny"]


def test_a_graph_that_answers_otherwise_never_appears(written_before: None, tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match="differs from PyTorch"):
        export_words(encoder(seed=1), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command(
    tiny: Encoder,
    written_before: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("engine.text.embeddings.find", lambda *_, **__: tiny)
    data = write_items(tmp_path / "shop", {"title": [*KOREAN, None], "brand": ["가"] * 4 + [None]})
    command = ["embed", "--dataset", str(data), "--encoder", "tiny", "--device", "cpu"]
    assert cli.main([*command, "--export", str(tmp_path / "build"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["items"], facts["without_text"], facts["dim"], facts["missing_share"]) == (5, 1, 16, 0)
    assert facts["fields"] == ["title", "brand"] and not facts["cached"]
    found = TextEncoder.open(facts["export"]["path"]).embed([f"{KOREAN[1]}; brand: 가"])[0]
    assert np.abs(found - np.load(facts["path"])[1]).max() < 1e-4
    assert cli.main([*command, "--fields", "title:2"]) == 0
    assert "text: title:2; no text: 1 item" in capsys.readouterr().out
    assert cli.main(command) == 0
    assert "found in the cache" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "--dataset"),
        (["--export", "build", "--fields", "title"], "belong to a --dataset"),
        (["--encoder", "scratch", "--export", "build"], "name a dataset"),
    ],
)
def test_wrong_use_of_the_command(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["embed", *argv]) == 2
    assert says in capsys.readouterr().err


def test_row_i_is_text_i_whatever_shares_its_batch(exported: Path) -> None:
    found = TextEncoder.open(exported)
    together = found.embed(TEXTS * 12)
    assert together.shape == (len(TEXTS) * 12, 16) and together.dtype == np.float32
    alone = np.concatenate([found.embed([text]) for text in TEXTS])
    assert np.abs(together - np.tile(alone, (12, 1))).max() < 1e-5
    assert found.embed([]).shape == (0, 16)


@pytest.mark.parametrize("asked", ["one text", [None]])
def test_anything_but_a_list_of_texts_is_refused(exported: Path, asked: object) -> None:
    with pytest.raises(QuestionError):
        TextEncoder.open(exported).embed(asked)  # type: ignore[arg-type]


def written(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    seal(file.parent)


def of_another_vocabulary(folder: Path) -> None:
    raw = json.loads((folder / "tokenizer.json").read_text())
    for token in raw["added_tokens"]:
        token["id"] += 100_000
    raw["model"]["vocab"] = {token: number + 100_000 for token, number in raw["model"]["vocab"].items()}
    raw["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [100_001]
    written(folder / "tokenizer.json", json.dumps(raw).encode())


# name → the file that is named, a part of the reason, and the way to spoil the folder; what any file or graph of a bundle may be
# spoilt by: tests/runtime/test_hostile.py, tests/runtime/test_hostile_onnx.py
CASES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "a name that leads out": ("words.json", "name", lambda f: edit(f, name="../x")),
    "another file": (
        "words.json",
        "not tokenizer.json and encoder.onnx",
        lambda f: edit(f, files={"../../etc/passwd": {"sha256": "0" * 64, "bytes": 1}}),
    ),
    "another graph": ("encoder.onnx", "sha256", lambda f: flip(f / "encoder.onnx")),
    "another width": ("encoder.onnx", "vectors must be", lambda f: edit(f, dim=15)),
    "a tokenizer of another vocabulary": ("encoder.onnx", "the graph failed", of_another_vocabulary),
    "nonsense for a tokenizer": (
        "tokenizer.json", "not a tokenizer", lambda f: written(f / "tokenizer.json", b'{"model": {"type": "BPE"}}')
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_spoilt_folder_is_refused_by_file_and_reason(folder: Path, name: str) -> None:
    file, says, spoil = CASES[name]
    spoil(folder)
    with pytest.raises(BundleError) as refused:
        TextEncoder.open(folder).embed(["a text"])
    assert refused.value.file == file
    assert says in str(refused.value)
