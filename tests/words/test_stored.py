import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from engine.errors import SeqscopeError, UsageError
from engine.text import embeddings as stored
from engine.text import scratch
from engine.text.attributes import texts
from engine.text.embeddings import embed, find
from engine.text.encoder import Encoder
from engine.text.tokenizer import BATCH_TEXTS, BATCH_TOKENS, batches
from tests.runtime.bundles import flip
from tests.words.tiny import ENGLISH, KOREAN, encoder, write_items


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return encoder()


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_items(tmp_path / "shop", {"title": [*KOREAN, KOREAN[0], *ENGLISH]})


class TestVectors:
    def test_row_i_is_item_i(self, dataset: Path, tiny: Encoder) -> None:
        found = embed(dataset, tiny).vectors
        assert found.shape == (8, 16) and found.dtype == np.float32
        assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        for item, text in enumerate(texts(stored.read_items(dataset))):
            assert np.allclose(found[item], tiny.embed([text])[0], atol=1e-5)
        assert np.array_equal(found[0], found[4])

    def test_they_are_found_again(self, dataset: Path, tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
        first = embed(dataset, tiny)
        monkeypatch.setattr(Encoder, "embed", None)
        again = embed(dataset, tiny)
        assert not first.cached and again.cached
        assert np.array_equal(first.vectors, again.vectors)
        assert again.path.parent == dataset / "words"
        assert sorted(path.suffix for path in again.path.parent.iterdir()) == [".json", ".npy"]

    def test_other_texts_another_encoder_and_other_fields_have_files_of_their_own(
        self, tmp_path: Path, tiny: Encoder
    ) -> None:
        columns = {"title": list(KOREAN), "brand": ["a", "b", "c", "d"]}
        one = write_items(tmp_path / "one", columns)
        two = write_items(tmp_path / "two", columns | {"title": KOREAN[::-1]})
        asked = [(one, tiny, None), (two, tiny, None), (one, encoder(seed=1), None), (one, tiny, ["title"])]
        asked.append((one, encoder(max_length=11), None))
        paths = {embed(path, by, fields, tmp_path / "cache").path for path, by, fields in asked}
        assert len(paths) == len(asked)
        assert all(embed(path, by, fields, tmp_path / "cache").cached for path, by, fields in asked)

    @pytest.mark.parametrize("spoil", ["flip", "pickle", "json", "no json", "other"])
    def test_damaged_files_are_made_anew(
        self, dataset: Path, tiny: Encoder, spoil: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first = embed(dataset, tiny)
        about = first.path.with_suffix(".json")
        if spoil == "flip":
            flip(first.path)
        elif spoil == "pickle":
            np.save(first.path, np.array([{}], object), allow_pickle=True)
        elif spoil == "json":
            about.write_text("[")
        elif spoil == "no json":
            about.unlink()
        else:
            about.write_text(json.dumps(json.loads(about.read_text()) | {"texts_digest": "0"}))
        again = embed(dataset, tiny)
        assert not again.cached
        assert np.array_equal(first.vectors, again.vectors)
        assert ("damaged" in capsys.readouterr().err) == (spoil != "no json")
        assert embed(dataset, tiny).cached

    def test_interrupted_work_goes_on(self, dataset: Path, tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = embed(dataset, tiny, cache=dataset / "elsewhere").vectors
        monkeypatch.setattr(stored, "CHUNK", 2)
        asked: list[int] = []
        original = Encoder.embed

        def fails(self: Encoder, words: list[str], *rest: object) -> np.ndarray:
            asked.append(len(words))
            if len(asked) == 3:
                raise KeyboardInterrupt
            return original(self, words, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(Encoder, "embed", fails)
        with pytest.raises(KeyboardInterrupt):
            embed(dataset, tiny)
        (parts,) = (dataset / "words").iterdir()
        assert sorted(path.name for path in parts.iterdir()) == ["00000.npy", "00001.npy"]
        (parts / "00001.npy").write_bytes(b"half")
        found = embed(dataset, tiny).vectors
        assert np.allclose(found, expected, atol=1e-6)
        assert asked[3:] == [2, 2, 1]  # the damaged chunk and the two that were missing, of 7 different texts
        assert not parts.exists()

    def test_another_process_may_be_done_with_the_same_before(
        self, dataset: Path, tiny: Encoder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stored, "CHUNK", 2)
        original, rest = Encoder.embed, iter([False, True])

        def embedded(self: Encoder, words: list[str], *more: object) -> np.ndarray:
            if next(rest, False):
                embed(dataset, encoder())  # and removes its finished chunks
            return original(self, words, *more)  # type: ignore[arg-type]

        monkeypatch.setattr(Encoder, "embed", embedded)
        embedded = embed(dataset, tiny)
        assert np.array_equal(embedded.vectors, embed(dataset, tiny).vectors)
        assert sorted(path.suffix for path in embedded.path.parent.iterdir()) == [".json", ".npy"]

    def test_a_dataset_that_cannot_be_written_uses_the_cache_of_the_user(
        self, dataset: Path, tiny: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(stored.os, "access", lambda *args: False)
        assert embed(dataset, tiny).path.parent == tmp_path / "cache" / "seqscope" / "words"

    def test_a_dataset_that_was_deleted_meanwhile_is_not_brought_back(
        self, dataset: Path, tiny: Encoder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def opened_late(*_: object, **__: object) -> Encoder:
            shutil.rmtree(dataset)
            return tiny

        monkeypatch.setattr(stored, "find", opened_late)
        with pytest.raises(FileNotFoundError):
            embed(dataset, "tiny")
        assert not dataset.exists()

    def test_a_network_that_answers_nonsense_is_refused(self, dataset: Path, tiny: Encoder) -> None:
        broken = encoder()
        broken.module.bert.norm.weight.data.fill_(float("nan"))
        with pytest.raises(SeqscopeError, match="NaN"):
            embed(dataset, broken)

    def test_a_catalogue_without_words_is_refused(self, tmp_path: Path, tiny: Encoder) -> None:
        with pytest.raises(SeqscopeError, match="no words in title"):
            embed(write_items(tmp_path, {"title": ["", None]}), tiny)

    def test_what_is_no_dataset_is_refused(self, tmp_path: Path, tiny: Encoder) -> None:
        with pytest.raises(SeqscopeError, match="not a prepared dataset"):
            embed(tmp_path, tiny)
        (tmp_path / "items.parquet").write_bytes(b"PAR1")
        with pytest.raises(SeqscopeError, match="cannot be read"):
            embed(tmp_path, tiny)


class TestBatches:
    def test_every_row_once_never_too_much_and_a_long_one_alone(self) -> None:
        lengths = np.random.default_rng(0).integers(0, 300, 1000).tolist()
        found = list(batches(lengths))
        assert sorted(row for rows in found for row in rows) == list(range(1000))
        for rows in found:
            assert len(rows) <= BATCH_TEXTS
            assert len(rows) * max(lengths[row] for row in rows) <= BATCH_TOKENS
        assert list(batches([BATCH_TOKENS + 1, 2])) == [[1], [0]]


class TestFind:
    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        short = scratch.ScratchConfig(vocabulary=300, dim=16, layers=1, heads=2, steps=2)
        monkeypatch.setattr(scratch, "DEFAULT", short)

    def test_auto_takes_scratch_for_words_that_minilm_does_not_know(
        self, dataset: Path, tmp_path: Path, minilm: Encoder
    ) -> None:
        korean = write_items(tmp_path / "korean", {"title": KOREAN})
        english = write_items(tmp_path / "english", {"title": ENGLISH})
        for path, name in ((korean, "scratch"), (english, "minilm")):
            items = stored.read_items(path)
            assert find("auto", items=items, cache=tmp_path / "cache").name == name

    def test_auto_takes_scratch_where_minilm_is_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("engine.text.bert.PACKAGE", "no_such_package")
        items = stored.read_items(write_items(tmp_path, {"title": ENGLISH}))
        assert find("auto", items=items, cache=tmp_path / "cache").name == "scratch"
        with pytest.raises(SeqscopeError, match="the encoder scratch"):
            find("minilm")

    @pytest.mark.parametrize("name", ["../secret words", "https://example.org/x", ""])
    def test_what_cannot_be_a_name_is_refused(self, name: str) -> None:
        with pytest.raises(UsageError, match=r"^'.*' is no text encoder: neither minilm"):
            find(name)

    def test_a_missing_package_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
        with pytest.raises(SeqscopeError, match=r"seqscope\[text\]"):
            find("some/encoder")
