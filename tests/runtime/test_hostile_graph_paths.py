"""A graph that is not what the manifest says is refused, with the file and the reason."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.runtime import BundleError, Zoo
from tests.runtime.bundles import TOYS, make_zoo, seal, with_graph

PEOPLE = [[0, 2, 5], [1], [2, 3]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = make_zoo(tmp_path, TOYS[:1]) / "alpha"
    with_graph(path, PEOPLE)
    return path


def people(folder: Path, items: list[list[int]]) -> None:
    pq.write_table(pa.table({"items": pa.array(items, pa.list_(pa.int32()))}), folder / "people.parquet")
    seal(folder)


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([[0, 2, 5], [1]], "announces"),
        ([[0, 0, 5], [1], [2, 3]], "ascend"),
        ([[0, 2, 40], [1], [2, 3]], "it may hold 0 to 39"),
    ],
)
def test_people_that_are_none(folder: Path, items: list[list[int]], reason: str) -> None:
    people(folder, items)
    with pytest.raises(BundleError, match=reason):
        _ = Zoo.open(folder.parent).bundles["alpha"].graph


def test_vectors_of_other_nodes(folder: Path) -> None:
    np.save(folder / "embeddings.npy", np.zeros((40, 4), np.float32))
    seal(folder)
    with pytest.raises(BundleError, match=r"embeddings\.npy"):
        _ = Zoo.open(folder.parent).bundles["alpha"].paths


def test_a_person_may_follow_with_a_smaller_item(folder: Path) -> None:
    bundle = Zoo.open(folder.parent).bundles["alpha"]
    assert bundle.graph.people.lengths.tolist() == [3, 1, 2] and bundle.cannot("paths") is None
    assert bundle.paths is not None and len(bundle.paths.scores([2])) == 40


def test_a_graph_whose_files_are_missing_refuses_the_bundle_alone(folder: Path) -> None:
    (folder / "people.parquet").unlink()
    zoo = Zoo.open(folder.parent)
    assert not zoo.bundles and "people.parquet" in str(zoo.refused[0])
