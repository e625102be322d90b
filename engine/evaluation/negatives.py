"""Negatives of the sampled protocols, drawn once per dataset and kept in a file, so that every model is asked the same questions.

u100: 100 uniform items. p100: 100 items drawn by training popularity without replacement. Neither contains the target, nor an
item of the user's history unless repeats count in the dataset. These protocols exist to compare with papers; full ranking is the
default.
"""

from __future__ import annotations

import hashlib

import numpy as np

from engine.data.dataset import Cases, Dataset
from engine.errors import SeqscopeError, UsageError
from engine.evaluation.protocols import history_excluded
from engine.files import replacing

COUNT = 100


def draw(cases: Cases, weights: np.ndarray, seed: int, *, exclude_history: bool = True) -> np.ndarray:
    """int32 [cases, COUNT]: distinct items for each case, never its target, drawn by `weights` (float [items]).

    exclude_history: none of its history either.
    """
    rng = np.random.default_rng(seed)
    items, drawable = len(weights), int((weights > 0).sum())
    cumulative = np.cumsum(weights / weights.sum())
    out = np.empty((len(cases), COUNT), np.int32)
    for row in range(len(cases)):
        seen = {int(cases.targets[row])} | (set(cases.history[row].tolist()) if exclude_history else set())
        possible = drawable - sum(weights[item] > 0 for item in seen)
        if possible < COUNT:
            raise SeqscopeError(
                f"user {cases.users[row]} leaves {possible} items to draw {COUNT} negatives from; "
                "use full ranking for this dataset"
            )
        kept: list[int] = []
        while len(kept) < COUNT:
            for item in np.searchsorted(cumulative, rng.random(2 * COUNT), side="right").tolist():
                if item < items and item not in seen:
                    seen.add(item)
                    kept.append(item)
                    if len(kept) == COUNT:
                        break
        out[row] = kept
    return out


def frozen(dataset: Dataset, split: str, protocol: str) -> np.ndarray:
    """The negatives of `protocol` for the cases of `split`, int32 [cases, COUNT]; drawn and written on first use.

    The seed follows from the dataset's fingerprint, so whoever draws them gets the same ones.
    """
    if dataset.info.sets:
        raise UsageError(
            f"{protocol} ranks one held-out item of a user among {COUNT} others; {dataset.path} holds out several. "
            "Use full ranking."
        )
    path = dataset.path / f"negatives-{protocol}-{split}.npy"
    cases = dataset.cases(split)
    if path.exists():
        try:
            negatives = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise SeqscopeError(f"{path} cannot be read ({error}). Delete it; it will be drawn again.") from None
        if negatives.shape != (len(cases), COUNT) or negatives.dtype != np.int32:
            raise SeqscopeError(f"{path} does not belong to this dataset. Delete it; it will be drawn again.")
        return negatives
    digest = hashlib.sha256(f"{dataset.info.fingerprint}/{split}/{protocol}".encode()).digest()
    weights = np.ones(dataset.num_items) if protocol == "u100" else dataset.popularity.astype(np.float64)
    excluded = history_excluded(dataset.info.repeats)
    drawn = draw(cases, weights, int.from_bytes(digest[:8], "little"), exclude_history=excluded)
    try:
        with replacing(path) as staged, staged.open("wb") as file:
            np.save(file, drawn, allow_pickle=False)
    except OSError as error:
        raise SeqscopeError(
            f"{path} cannot be written ({error.strerror or error}). Check its permissions and the free space."
        )
    return drawn
