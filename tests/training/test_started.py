"""A training starts from a bundle with the very weights that encoded its items."""

from pathlib import Path

import numpy as np
import pytest

from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.training import texts
from engine.training.materials import gather
from engine.training.recipe import load
from engine.training.run import build_model

FIELDS = 'model.fields=["title", "franchise", "genres"]'


def test_items_are_encoded_as_the_bundle_has_them(root: Path, tmp_path: Path) -> None:
    bundle = root / "exports" / "sample" / "recformer"
    data = Dataset(root / "data" / "sample")
    recipe = load("recformer-tuned-stage1", "x", None, [f"model.start={bundle}", FIELDS])
    model = build_model(recipe, data.num_items, data.num_users, gather(recipe, data, tmp_path / "run")).eval()
    model.refresh()  # type: ignore[operator]
    rows = np.load(bundle / "index.npy")[:, :-1]
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.abs(model.index().rows.numpy() - rows).max() < 1e-5


def test_a_graph_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    assert not texts.is_bundle(tmp_path)
    (tmp_path / texts.GRAPH).write_bytes(b"no graph")
    assert texts.is_bundle(tmp_path)
    with pytest.raises(SeqscopeError, match="Export it again"):
        texts.exported_weights(tmp_path / texts.GRAPH)


def test_the_command_that_makes_what_is_missing_is_named_where_it_would_lie_there(tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match="Run `seqscope train s3rec-pretrained` on the same dataset first"):
        texts.run_of("s3rec-pretrained", tmp_path / "s3rec", texts.BEST)
    with pytest.raises(SeqscopeError, match="to a finished run, or to a bundle"):
        texts.run_of("exports/recformer", tmp_path / "s3rec", texts.BEST)
