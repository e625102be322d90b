"""What identifiers are worth, as functions of numpy arrays. codes: int32 [items, levels], −1 in trailing places, everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from engine.data.identifiers import NONE
from engine.data.ragged import Ragged

Array = npt.NDArray[Any]
CHUNK = 1024


def usage(codes: Array, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Per level: codes there are, used, dead; perplexity 2^H of their use, and as a share of the codes; Gini of their use."""
    per_level = []
    for level, size in enumerate(sizes):
        counts = np.bincount(codes[codes[:, level] != NONE, level], minlength=size)
        total = max(int(counts.sum()), 1)
        shares = counts[counts > 0] / total
        perplexity = float(np.exp(-(shares * np.log(shares)).sum()))
        ordered = np.sort(counts)
        gini = float(((2 * np.arange(1, size + 1) - size - 1) * ordered).sum() / (size * total))
        per_level.append(
            {
                "codes": size,
                "used": int((counts > 0).sum()),
                "dead": int((counts == 0).sum()),
                "perplexity": perplexity,
                "perplexity_share": perplexity / size,
                "gini": gini,
            }
        )
    return per_level


def collisions(codes: Array) -> dict[str, Any]:
    """excess: (items − different identifiers) / items, as LETTER's code has it; sharing: share of items whose identifier is
    another item's as well; groups of such items and the largest of them (1 where none collide)."""
    counts = np.unique(codes, axis=0, return_counts=True)[1]
    items = max(len(codes), 1)
    return {
        "items": len(codes),
        "different": len(counts),
        "excess": (len(codes) - len(counts)) / items,
        "sharing": int(counts[counts > 1].sum()) / items,
        "groups": int((counts > 1).sum()),
        "largest": int(counts.max(initial=1)),
    }


def neighbours(vectors: Array) -> npt.NDArray[np.int64]:
    """int64 [items]: the other item of the largest dot product; ties go to the first. Unit vectors give the nearest by cosine."""
    nearest = np.empty(len(vectors), np.int64)
    for start in range(0, len(vectors), CHUNK):
        scores = vectors[start : start + CHUNK] @ vectors.T
        rows = np.arange(len(scores))
        scores[rows, start + rows] = -np.inf
        nearest[rows + start] = scores.argmax(1)
    return nearest


def unit(vectors: Array) -> Array:
    """Each row at length 1; rows of zeros stay."""
    scaled: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scaled


def shared(codes: Array, of: Array) -> float:
    """Mean number of places at which an item and the item `of[i]` have the same code.

    With the item of the largest dot product of pre-trained collaborative vectors as `of`, this is LETTER's "code similarity"
    (.085 for TIGER, .276 for LETTER). The paper gives no formula; of the obvious ones (share of places, any place, prefixes;
    by cosine, distance or product), this is the one that gives .2760 for the codes and the vectors that its authors published
    for Instruments.
    """
    return float(((codes == codes[of]) & (codes != NONE)).sum(1).mean()) if len(codes) else 0.0


def shared_by_chance(codes: Array) -> float:
    """`shared` of items paired at random: the sum over levels of Σ (share of a code)²."""
    counts = [np.unique(column[column != NONE], return_counts=True)[1] for column in codes.T]
    return float(sum(np.square(count / max(len(codes), 1)).sum() for count in counts))


def cosine(vectors: Array, of: Array) -> float:
    """Mean cosine of an item's vector and that of the item `of[i]`, the catalogue's mean taken off first."""
    centred = unit(vectors - vectors.mean(0))
    return float((centred * centred[of]).sum(1).mean())


def expressed(codes: Array, vectors: Array, ridge: float = 1.0, rounds: int = 200) -> Array:
    """float32 [items, d]: `vectors` as far as codes can say them: the sum of one vector per (level, code), fitted by ridge
    regression. Identifiers of like numbers of codes can be compared so, whatever space they were made in; codes that are so many
    that each says which item it is (words of titles) express anything."""
    rows, levels = np.nonzero(codes != NONE)
    names = np.stack([levels, codes[rows, levels]], 1)
    columns = np.unique(names, axis=0, return_inverse=True)[1].reshape(-1)
    design = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(codes), columns.max(initial=0) + 1))
    mean = vectors.mean(0, dtype=np.float64)
    right_side = design.T @ (vectors - mean)
    # conjugate gradients on (AᵀA + ridge) W = Aᵀ V, all columns of V at once
    weights = np.zeros_like(right_side)
    residual = right_side.copy()
    direction, square = residual.copy(), np.square(residual).sum(0)
    first = max(float(square.max(initial=0)), 1e-30)
    for _ in range(rounds):
        if square.max(initial=0) < 1e-12 * first:
            break
        image = design.T @ (design @ direction) + ridge * direction
        step = square / np.maximum((direction * image).sum(0), 1e-30)
        weights += step * direction
        residual -= step * image
        before, square = square, np.square(residual).sum(0)
        direction = residual + direction * (square / np.maximum(before, 1e-30))
    reconstruction: Array = (design @ weights + mean).astype(np.float32)
    return reconstruction


def ndcg10(queries: Array, vectors: Array, left_out: Ragged, targets: Array) -> float:
    """NDCG@10 of ranking all items by query · vector but those left out (never the target); ties take the mean rank.

    queries: [cases, d]; vectors: [items, d]; left_out: items, one row per case; targets: int [cases].
    """
    gains = np.zeros(len(queries))
    for start in range(0, len(queries), CHUNK):
        part = slice(start, start + CHUNK)
        scores = queries[part] @ vectors.T
        rows = np.arange(len(scores))
        target_scores = scores[rows, targets[part]].copy()
        past = left_out.take(start + rows)
        scores[np.repeat(rows, past.lengths), past.values] = -np.inf
        scores[rows, targets[part]] = target_scores
        higher, same = (scores > target_scores[:, None]).sum(1), (scores == target_scores[:, None]).sum(1) - 1
        rank = 1 + higher + same / 2
        gains[part] = np.where(rank <= 10, 1 / np.log2(rank + 1), 0)
    return float(gains.mean()) if len(gains) else 0.0


def purity(codes: Array, categories: Array, seed: int = 0) -> list[dict[str, Any]]:
    """Per depth: how many items stand in a prefix group of two or more, and which share of them is of its group's commonest
    category; chance: the same with categories dealt anew. categories: int [items], −1 where an item has none."""
    known = categories >= 0
    codes, categories = codes[known], categories[known]
    dealt = np.random.default_rng(seed).permutation(categories)
    per_depth = []
    for depth in range(1, codes.shape[1] + 1):
        _, group, counts = np.unique(codes[:, :depth], axis=0, return_inverse=True, return_counts=True)
        group = group.reshape(-1)
        shared = counts[group] > 1
        entry: dict[str, Any] = {"depth": depth, "groups": len(counts), "items": int(shared.sum())}
        for name, labels in (("purity", categories), ("chance", dealt)):
            cells, times = np.unique(np.stack([group[shared], labels[shared]]), axis=1, return_counts=True)
            best = np.zeros(len(counts), np.int64)
            np.maximum.at(best, cells[0], times)
            entry[name] = float(best.sum() / max(int(shared.sum()), 1))
        per_depth.append(entry)
    return per_depth


def squeeze(codes: Array, popularity: Array) -> dict[str, Any]:
    """Whether rare items are squeezed into few codes: thirds of the catalogue by training events (most taken first), and for each
    the perplexity of its first codes, the share of items that share an identifier, and the events it has. `ratio` is the
    perplexity of the last third over that of the first: below 1, the tail has fewer codes to itself."""
    _, group, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    sharing = counts[group.reshape(-1)] > 1
    thirds = {}
    for name, rows in zip(
        ("head", "torso", "tail"), np.array_split(np.argsort(-popularity, kind="stable"), 3), strict=True
    ):
        shares = np.unique(codes[rows, 0], return_counts=True)[1] / max(len(rows), 1)
        thirds[name] = {
            "items": len(rows),
            "events": int(popularity[rows].sum()),
            "perplexity": float(np.exp(-(shares * np.log(shares)).sum())),
            "sharing": float(sharing[rows].mean()) if len(rows) else 0.0,
        }
    return {**thirds, "ratio": thirds["tail"]["perplexity"] / thirds["head"]["perplexity"]}
