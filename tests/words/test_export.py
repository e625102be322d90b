"""Encoders as folders that the app reads: the same answers as PyTorch's, without torch, and nothing taken on trust."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from engine.bundle.errors import BundleError, QuestionError
from engine.errors import SeqscopeError
from engine.export import text as export
from engine.export.text import export_words, is_current
from engine.runtime.text import TextEncoder
from engine.text.embeddings import find
from engine.text.encoder import Encoder
from tests.words.tiny import ARABIC, ENGLISH, JAPANESE, KOREAN, encoder

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


class TestExport:
    def test_three_files_and_nothing_else(self, exported: Path) -> None:
        assert sorted(path.name for path in exported.iterdir()) == ["encoder.onnx", "tokenizer.json", "words.json"]
        assert [path.name for path in exported.parent.iterdir()] == ["tiny"]

    def test_answers_are_those_of_pytorch(self, exported: Path, tiny: Encoder) -> None:
        found = TextEncoder.open(exported)
        assert np.abs(found.embed(TEXTS[:-1]) - tiny.embed(TEXTS[:-1])).max() < 1e-4
        assert found.about.max_abs_difference < 1e-4
        assert (found.about.dim, found.about.max_length, found.about.digest) == (16, 12, tiny.digest)

    def test_minilm(self, minilm: Encoder, tmp_path: Path) -> None:
        found = TextEncoder.open(export_words(minilm, tmp_path))
        assert np.abs(found.embed(TEXTS[:-1]) - minilm.embed(TEXTS[:-1])).max() < 1e-4

    def test_one_that_is_there_is_left_alone(
        self, tiny: Encoder, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(export, "_fill_encoder", None)
        assert is_current(tiny, folder)
        assert export_words(tiny, folder.parent) == folder
        assert not is_current(encoder(seed=1), folder)

    def test_a_damaged_or_older_one_is_replaced(self, tiny: Encoder, folder: Path) -> None:
        (folder / "encoder.onnx").write_bytes(b"")
        export_words(tiny, folder.parent)
        assert is_current(tiny, folder)
        assert [path.name for path in folder.parent.iterdir()] == ["tiny"]

    def test_a_graph_that_answers_otherwise_never_appears(
        self, tiny: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(TextEncoder, "embed", lambda self, texts: np.zeros((len(texts), 16), np.float32))
        with pytest.raises(SeqscopeError, match="differs from PyTorch"):
            export_words(tiny, tmp_path / "out")
        assert not (tmp_path / "out").exists()


class TestRuntime:
    def test_row_i_is_text_i_whatever_shares_its_batch(self, exported: Path) -> None:
        found = TextEncoder.open(exported)
        together = found.embed(TEXTS * 12)
        assert together.shape == (len(TEXTS) * 12, 16) and together.dtype == np.float32
        alone = np.concatenate([found.embed([text]) for text in TEXTS])
        assert np.abs(together - np.tile(alone, (12, 1))).max() < 1e-5

    def test_no_texts_have_no_vectors(self, exported: Path) -> None:
        assert TextEncoder.open(exported).embed([]).shape == (0, 16)

    @pytest.mark.parametrize("asked", ["one text", [None], [1], [["a"]]])
    def test_anything_but_a_list_of_texts_is_refused(self, exported: Path, asked: object) -> None:
        with pytest.raises(QuestionError):
            TextEncoder.open(exported).embed(asked)  # type: ignore[arg-type]

    def test_threads_may_share_it(self, exported: Path) -> None:
        found = TextEncoder.open(exported)
        answers: list[np.ndarray] = []
        threads = [threading.Thread(target=lambda: answers.append(found.embed(KOREAN))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 4 and all(np.array_equal(answer, answers[0]) for answer in answers)

    def test_torch_is_not_needed(self, exported: Path, root: Path) -> None:
        program = f"""
            import sys
            for name in ("torch", "transformers", "sentence_transformers", "huggingface_hub", "onnx"):
                sys.modules[name] = None
            from engine.runtime.text import TextEncoder
            found = TextEncoder.open({str(exported)!r}).embed({KOREAN!r})
            print(found.shape, bool((abs((found**2).sum(1) - 1) < 1e-4).all()))
        """
        command = [sys.executable, "-c", textwrap.dedent(program)]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "(4, 16) True", done.stderr


CASES: dict[str, tuple[str, str, Callable[[Path], None]]] = {}


def case(file: str, says: str) -> Callable[[Callable[[Path], None]], None]:
    def register(spoil: Callable[[Path], None]) -> None:
        CASES[spoil.__name__] = (file, says, spoil)

    return register


def edit(folder: Path, **changes: object) -> None:
    raw = json.loads((folder / "words.json").read_text())
    (folder / "words.json").write_text(json.dumps(raw | changes))


def seal(folder: Path) -> None:
    """words.json vouches for what is there now."""
    files = {
        name: {
            "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(),
            "bytes": (folder / name).stat().st_size,
        }
        for name in ("tokenizer.json", "encoder.onnx")
    }
    edit(folder, files=files)


def graph(folder: Path, shape: list[object], dim: int, kind: int = TensorProto.FLOAT, name: str = "tokens") -> None:
    """A graph of this signature that answers with ones."""
    nodes = [
        helper.make_node("Shape", [name], ["s"], end=1),
        helper.make_node("Concat", ["s", "d"], ["both"], axis=0),
        helper.make_node("Expand", ["one", "both"], ["vectors"]),
    ]
    weights = [
        helper.make_tensor("d", TensorProto.INT64, [1], [dim]),
        helper.make_tensor("one", kind, [1], [1]),
    ]
    made = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(name, TensorProto.INT64, shape)],
        [helper.make_tensor_value_info("vectors", kind, ["b", "d"])], weights,
    )  # fmt: skip
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, folder / "encoder.onnx")
    seal(folder)


@case("words.json", "missing")
def no_description(folder: Path) -> None:
    (folder / "words.json").unlink()


@case("words.json", "not valid JSON")
def no_json(folder: Path) -> None:
    (folder / "words.json").write_text("{")


@case("words.json", "dim")
def a_width_of_nothing(folder: Path) -> None:
    edit(folder, dim=0)


@case("words.json", "extra")
def an_unknown_entry(folder: Path) -> None:
    edit(folder, extra=1)


@case("words.json", "written by a newer Seqscope (format 2, this one reads 1)")
def another_version(folder: Path) -> None:
    edit(folder, schema_version=2)


@case("words.json", "name")
def a_name_that_leads_out(folder: Path) -> None:
    edit(folder, name="../x")


@case("words.json", "not tokenizer.json and encoder.onnx")
def another_file(folder: Path) -> None:
    edit(folder, files={"../../etc/passwd": {"sha256": "0" * 64, "bytes": 1}})


@case("encoder.onnx", "missing")
def no_graph(folder: Path) -> None:
    (folder / "encoder.onnx").unlink()


@case("encoder.onnx", "a link")
def a_linked_graph(folder: Path) -> None:
    (folder / "encoder.onnx").rename(folder.parent / "elsewhere.onnx")
    (folder / "encoder.onnx").symlink_to(folder.parent / "elsewhere.onnx")


@case("encoder.onnx", "sha256")
def another_graph(folder: Path) -> None:
    content = bytearray((folder / "encoder.onnx").read_bytes())
    content[-1] ^= 1
    (folder / "encoder.onnx").write_bytes(content)


@case("encoder.onnx", "not an ONNX model")
def no_onnx(folder: Path) -> None:
    (folder / "encoder.onnx").write_bytes(b"")
    seal(folder)


@case("encoder.onnx", "inputs must be called tokens")
def another_input(folder: Path) -> None:
    graph(folder, ["b", "l"], 16, name="items")


@case("encoder.onnx", "must take")
def a_fixed_length(folder: Path) -> None:
    graph(folder, ["b", 5], 16)


@case("encoder.onnx", "must be float32")
def another_type(folder: Path) -> None:
    graph(folder, ["b", "l"], 16, TensorProto.DOUBLE)


@case("encoder.onnx", "was promised")
def another_width(folder: Path) -> None:
    graph(folder, ["b", "l"], 15)


@case("encoder.onnx", "the graph failed")
def a_tokenizer_of_another_vocabulary(folder: Path) -> None:
    raw = json.loads((folder / "tokenizer.json").read_text())
    for token in raw["added_tokens"]:
        token["id"] += 100_000
    raw["model"]["vocab"] = {token: number + 100_000 for token, number in raw["model"]["vocab"].items()}
    raw["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [100_001]
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    seal(folder)


@case("tokenizer.json", "missing")
def no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


@case("tokenizer.json", "bytes")
def a_shorter_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")


@case("tokenizer.json", "not a tokenizer")
def nonsense_for_a_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"model": {"type": "BPE"}}')
    seal(folder)


@case("tokenizer.json", "not a tokenizer")
def a_tokenizer_that_is_no_text(folder: Path) -> None:
    (folder / "tokenizer.json").write_bytes(b"\xff\xfe\x00")
    seal(folder)


@pytest.mark.parametrize("name", CASES)
def test_a_spoilt_folder_is_refused_by_file_and_reason(folder: Path, name: str) -> None:
    file, says, spoil = CASES[name]
    spoil(folder)
    with pytest.raises(BundleError) as refused:
        TextEncoder.open(folder).embed(["a text"])
    assert refused.value.file == file
    assert says in str(refused.value)


def test_an_encoder_of_hugging_face_is_exported_too(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers: `make install-dev`")
    pytest.importorskip("sentence_transformers", reason="sentence-transformers: `make install-dev`")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=encoder().tokenizer, pad_token="[PAD]", cls_token="[CLS]"
    )
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    transformers.BertModel(transformers.BertConfig(vocab_size=500, **sizes)).save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    found = find(str(tmp_path / "theirs"))
    answers = TextEncoder.open(export_words(found, tmp_path / "build")).embed(TEXTS[:-1])
    assert np.abs(answers - found.embed(TEXTS[:-1])).max() < 1e-4
