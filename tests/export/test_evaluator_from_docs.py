"""An evaluator written from docs/bundle.md alone, without engine.runtime, ranks as ranks.parquet says."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scipy import sparse

ROOT = Path(__file__).parents[2]
MANIFESTS = {
    path.parent: json.loads(path.read_text("utf-8")) for path in sorted(ROOT.glob("exports/*/*/manifest.json"))
}
OF_SAMPLE = {manifest["family"] for folder, manifest in MANIFESTS.items() if folder.parent.name == "sample"}
SCORED = [
    pytest.param(
        folder,
        id=f"{folder.parent.name}-{folder.name}",
        marks=[pytest.mark.long] if folder.parent.name != "sample" and manifest["family"] in OF_SAMPLE else [],
    )
    for folder, manifest in MANIFESTS.items()
    if manifest["index"]["kind"] != "generated"
]
"""Of a family that the small sample has too, larger ones take long."""
PEOPLE = 200
ROUNDING = 1e-5
"""Of the largest score: two orders of adding float32 differ by less."""


@pytest.mark.parametrize("folder", SCORED)
def test_ranks_are_those_of_ranks_parquet(folder: Path) -> None:
    people = pq.read_table(folder.parent / "users.parquet").slice(0, PEOPLE)
    repeats = json.loads((folder.parent / "dataset.json").read_text("utf-8")).get("repeats") == "count"
    scores = _scores(folder, people["history"].to_pylist())
    best, worst = np.empty(len(scores)), np.empty(len(scores))
    for person, row in enumerate(people.to_pylist()):
        history, target = row["history"], row["target"]
        rivals = np.delete(scores[person], [target] if repeats else list({*history, target}))
        slack = ROUNDING * np.abs(scores[person]).max()
        best[person] = 1 + (rivals > scores[person, target] + slack).sum()
        worst[person] = 1 + (rivals >= scores[person, target] - slack).sum()
    ranks = pq.read_table(folder / "ranks.parquet")
    ranks = ranks.filter(pc.equal(ranks["protocol"], "full, repeats" if repeats else "full"))
    ranks = ranks.take(pc.index_in(people["user"], ranks["user"]))
    stored = ranks["rank"].to_numpy()
    assert ranks["target"].equals(people["target"])
    assert ((best <= stored) & (stored <= worst)).all()
    assert _ndcg((best + worst) / 2) == pytest.approx(_ndcg(stored), abs=0.005)  # and rounding decides next to nothing


def test_paths_through_the_graph_give_the_same_scores() -> None:
    """By the section on people.parquet: also of an item that is there twice, and of one that nobody has."""
    folder = ROOT / "exports" / "films" / "lightgcn"
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    items, layers = manifest["num_items"], manifest["graph"]["layers"]
    has = pq.read_table(folder / "people.parquet")["items"].to_pylist()
    person, item = np.repeat(np.arange(len(has)), [len(row) for row in has]), np.concatenate(has)
    of_person, of_item = np.bincount(person), np.bincount(item, minlength=items)
    edges = sparse.csr_matrix((1 / np.sqrt(of_person[person] * of_item[item]), (person, item)))
    vectors = np.load(folder / "embeddings.npy")
    by_layer, people = [vectors[:items]], vectors[items:]
    for _ in range(layers):
        by_layer, people = [*by_layer, edges.T @ people], edges @ by_layer[-1]
    (alone, *_) = np.flatnonzero(of_item == 0).tolist()
    for history in ([5, 9, 5, 11], [5, alone, 9], [*range(20)]):
        read = np.unique(history[-manifest["encoder"]["max_length"] :])
        weights = 1 / np.sqrt(len(read) * np.maximum(of_item[read], 1))
        query = (by_layer[0][read].mean(0) + sum(weights @ layer[read] for layer in by_layer[:-1])) / (layers + 1)
        scores = np.mean(by_layer, axis=0) @ query
        np.testing.assert_allclose(_scores(folder, [history] * 10)[0], scores, atol=1e-4)


def _scores(folder: Path, histories: list[list[int]]) -> npt.NDArray[np.float32]:
    """[people, items]"""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    index, longest = np.load(folder / "index.npy"), manifest["encoder"]["max_length"]
    histories = [history[-longest:] for history in histories]
    if "item_to_item" in manifest:
        reads_order = manifest["capabilities"].get("reads_order", True)
        return _sums(np.load(folder / "item_to_item.npz"), histories, reads_order, len(index)) + index[:, 0]
    items = np.full((len(histories), max(1, *map(len, histories))), len(index))
    for row, history in zip(items, histories, strict=True):
        row[len(row) - len(history) :] = history
    encoder = onnxruntime.InferenceSession(folder / "encoder.onnx")
    query = np.concatenate([encoder.run(["query"], {"items": part})[0] for part in np.array_split(items, 10)])
    return query + index[:, 0] if manifest["index"]["kind"] == "identity" else query @ index[:, :-1].T + index[:, -1]


def _sums(
    stored: Mapping[str, np.ndarray], histories: list[list[int]], reads_order: bool, num_items: int
) -> npt.NDArray[np.float32]:
    """[people, items]: what the items of each history say of all others, by the section on item_to_item.npz."""
    gaps = sum(byte.astype(np.int64) << 8 * place for place, byte in enumerate(stored["gaps"]))
    places = np.cumsum(gaps) - 1
    weights = np.zeros(num_items * num_items, np.float32)
    weights[places] = stored["weights"] if "weights" in stored else stored["levels"][stored["codes"]]
    weights = weights.reshape(num_items, num_items)
    scores = np.zeros((len(histories), num_items), np.float32)
    for row, history in zip(scores, histories, strict=True):
        if reads_order and history:
            row[:] = stored["position_weights"][len(history) - 1, : len(history)][::-1] @ weights[history]
        elif history:
            row[:] = weights[np.unique(history)].sum(0)
    return scores


def _ndcg(ranks: npt.NDArray[np.float64]) -> float:
    return float(np.where(ranks <= 10, 1 / np.log2(ranks + 1), 0).mean())
