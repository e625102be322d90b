import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from engine.errors import SeqscopeError
from engine.text import scratch as module
from engine.text.attributes import attributes
from engine.text.embeddings import find
from engine.text.scratch import ScratchConfig, open_scratch, scratch
from tests.words.tiny import KOREAN, groups, purity

CONFIG = ScratchConfig(vocabulary=800, dim=32, heads=2, layers=1, batch=32, max_length=32, steps=60)
SHORT = ScratchConfig(vocabulary=300, dim=16, heads=2, layers=1, batch=8, max_length=16, steps=6)
ITEMS = [[("title", title), ("category", "뷰티")] for title in KOREAN]


class TestLearns:
    def test_items_of_a_group_are_near_each_other(self, tmp_path: Path) -> None:
        """Without spaces between words; with them: the next two."""
        items, group = groups("japanese")
        encoder = scratch(attributes(items), tmp_path, CONFIG)
        assert purity(encoder.embed(items["title"].to_pylist()), group) > 0.6  # 1 in 6 by chance

    def test_nothing_is_found_in_shuffled_titles(self, tmp_path: Path) -> None:
        items, group = groups("korean", shuffled=True)
        encoder = scratch(attributes(items), tmp_path, CONFIG)
        assert purity(encoder.embed(items["title"].to_pylist()), group) < 0.25

    def test_a_title_learns_from_the_category_beside_it(self, tmp_path: Path) -> None:
        """Titles of any group's words say nothing of an item's group, except to one who was told the categories."""
        items, group = groups("korean", shuffled=True, size=20)
        told = items.append_column("category", pa.array([f"c{g}" for g in group]))
        encoder = scratch(attributes(told), tmp_path, dataclasses.replace(CONFIG, batch=64, steps=120))
        assert purity(encoder.embed(items["title"].to_pylist()), group) > 0.3  # 1 in 6 by chance


class TestTraining:
    def test_it_is_done_once_for_the_same_words(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        first = scratch(ITEMS, tmp_path, SHORT)
        (folder,) = tmp_path.iterdir()
        assert scratch([*ITEMS[:-1], [("title", "다른 제목")]], tmp_path, SHORT).digest != first.digest
        monkeypatch.setattr(module, "_train", None)
        assert scratch(ITEMS, tmp_path, SHORT).digest == first.digest
        assert open_scratch(folder).digest == first.digest == find(str(folder)).digest

    def test_an_interrupted_training_ends_as_if_it_had_not_been(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = scratch(ITEMS, tmp_path / "whole", SHORT)
        monkeypatch.setattr(module, "CHECKPOINT_SECONDS", 0.0)

        class Stops(module.Progress):  # type: ignore[misc, name-defined]
            def update(self, done: int, *words: str) -> None:
                if done == 4:
                    raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(module, "Progress", Stops)
            scratch(ITEMS, tmp_path / "parts", SHORT)
        (folder,) = (tmp_path / "parts").iterdir()
        assert (folder / module.CHECKPOINT).exists()
        resumed: list[int] = []
        original = module._resume
        monkeypatch.setattr(module, "_resume", lambda *args: resumed.append(original(*args)) or resumed[-1])
        assert scratch(ITEMS, tmp_path / "parts", SHORT).digest == whole.digest
        assert resumed == [3]
        assert not (folder / module.CHECKPOINT).exists()

    def test_a_damaged_checkpoint_starts_over(self, tmp_path: Path) -> None:
        whole = scratch(ITEMS, tmp_path / "whole", SHORT)
        (folder,) = (tmp_path / "whole").iterdir()
        other = tmp_path / "other" / folder.name
        other.mkdir(parents=True)
        (other / "checkpoint.safetensors").write_bytes(b"no such thing")
        assert scratch(ITEMS, tmp_path / "other", SHORT).digest == whole.digest

    def test_a_damaged_encoder_says_so(self, tmp_path: Path) -> None:
        scratch(ITEMS, tmp_path, SHORT)
        (folder,) = tmp_path.iterdir()
        for file in ("scratch.json", "tokenizer.json", "encoder.safetensors"):
            before = (folder / file).read_bytes()
            (folder / file).write_text("{}")
            with pytest.raises(SeqscopeError, match="trained again"):
                scratch(ITEMS, tmp_path, SHORT)
            (folder / file).write_bytes(before)

    @pytest.mark.parametrize("items", [[], [[], []], [[("title", "a")], [("title", "a")]]])
    def test_a_catalogue_without_words_cannot_teach(self, tmp_path: Path, items: list) -> None:
        with pytest.raises(SeqscopeError, match="nothing to learn"):
            scratch(items, tmp_path, SHORT)

    def test_vectors_are_of_unit_length_in_every_script(self, tmp_path: Path) -> None:
        found = scratch(ITEMS, tmp_path, SHORT).embed(["", "보습", "七人の侍", "كريم", "a" * 1000])
        assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
