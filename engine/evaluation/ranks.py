"""Where held-out items stand among their candidates: the one loop behind every metric; and the candidates that are drawn."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.data.dataset import Cases, Dataset
from engine.data.ragged import Ragged
from engine.errors import SeqscopeError, UsageError
from engine.evaluation.metrics import CUTOFFS
from engine.evaluation.protocols import history_excluded
from engine.files import replacing
from engine.generation.search import OUTSIDE
from engine.models import NO_TIME, ItemIndex, Recommender, score

SCORES = 1 << 26
"""Computed at a time: 256 MB."""


@dataclass(frozen=True)
class Ranking:
    """ranks: float64 [targets], 1 = first, ties take the mean rank; exposure: int64 [items] per cut-off k, how often an item
    stood among somebody's first k (full ranking alone); outside: how many targets a beam did not reach."""

    ranks: np.ndarray
    exposure: dict[int, np.ndarray]
    outside: int = 0


def search_width(model: Recommender, beam: int | None = None) -> int | None:
    """The width of the beam that test items are ranked with: `beam`, else the model's own, or the largest cut-off where that is
    wider, since a beam says nothing of places beyond its width. None where all items are scored."""
    if model.walks and beam is None:
        return None
    return beam or max(model.beam or 0, CUTOFFS[-1])


@torch.no_grad()
def full_ranks(
    model: Recommender,
    cases: Cases,
    *,
    exclude_history: bool = True,
    trained_users: bool | np.ndarray = False,
    with_times: bool = False,
    lists: bool = False,
    beam: int | None = None,
    batch_size: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Ranking:
    """Rank each target of each case among the whole catalogue, the case's other targets included; a history is read once.

    exclude_history: items of the history are no candidates (a target always is one, even where it repeats one of them:
    a dataset whose repeats count is ranked without it, see engine/evaluation/protocols.py).
    trained_users: use the model's vectors of training users instead of the fold-in; bool [cases]: for these cases.
    with_times: tell a model that reads them when the items of the histories were. lists: count exposure as well.
    beam: of a generator, search for so many identifiers instead of scoring all; items that the beam does not reach share the
    places after those that it does, and a target among them takes the mean of these.
    """
    device, index = next_device(model), model.index()
    ranks = np.empty(len(cases.targets))
    exposure = {k: np.zeros(model.num_items, np.int64) for k in CUTOFFS} if lists else {}
    batch_size = batch_size or min(model.histories if beam is None else 64, max(1, SCORES // model.num_items))
    least = -torch.inf if beam is None else OUTSIDE
    outside = done = 0
    for rows, by_vectors in _batches(cases, trained_users, batch_size):
        part = cases.take(rows)
        owner, targets = (
            torch.as_tensor(array.astype(np.int64), device=device) for array in (part.owner, part.targets)
        )
        taken = torch.as_tensor(part.history.values.astype(np.int64), device=device)
        row = torch.as_tensor(part.history.owners, device=device)
        if beam is None:
            scores = _scores(model, index, part, by_vectors, with_times, device)
        else:
            blocked = torch.zeros(len(part), model.num_items, dtype=torch.bool, device=device)
            if exclude_history:
                blocked[row, taken] = True
                blocked[owner, targets] = False
            scores = model.beam_scores(*inputs(model, part, by_vectors, device), beam, blocked)
        target_scores = scores[owner, targets]
        outside += int((target_scores <= least).sum())
        if exclude_history:
            scores[row, taken] = -torch.inf
            scores[owner, targets] = target_scores
        ranks[cases.held_out.positions(rows)] = _ranks(scores, owner, target_scores)
        if lists:
            k = min(CUTOFFS[-1], model.num_items)
            values, top = top_k(scores, k)
            items, shown = top.cpu().numpy(), (values > least).cpu().numpy()
            for cut in CUTOFFS:
                # somebody who took nearly everything is shown what is left
                exposure[cut] += np.bincount(items[:, :cut][shown[:, :cut]], minlength=model.num_items)
        done += len(rows)
        progress(done)
    return Ranking(ranks, exposure, outside)


@torch.no_grad()
def best_items(model: Recommender, history: np.ndarray, k: int, beam: int | None = None) -> Tensor:
    """The k best items after one history (int [events]), int64 [k]; beam: as of `full_ranks`."""
    device = next_device(model)
    part = Cases.of(np.zeros(1, np.int32), Ragged(history, np.array([0, len(history)])), np.zeros(1, np.int32))
    blocked = torch.zeros(1, model.num_items, dtype=torch.bool, device=device)
    blocked[0, torch.as_tensor(history.astype(np.int64), device=device)] = True
    if beam is None:
        scores = _scores(model, model.index(), part, False, False, device)
    else:
        scores = model.beam_scores(*inputs(model, part, False, device), beam, blocked)
    return scores.masked_fill(blocked, -torch.inf).topk(min(k, model.num_items)).indices[0]


@torch.no_grad()
def sampled_ranks(
    model: Recommender,
    cases: Cases,
    negatives: np.ndarray,
    *,
    trained_users: bool | np.ndarray = False,
    with_times: bool = False,
    batch_size: int | None = None,
) -> Ranking:
    """Rank each case's one target among itself and its frozen negatives, int [cases, m]; the others as of `full_ranks`."""
    batch_size = batch_size or model.histories
    device = next_device(model)
    ranks = np.empty(len(cases))
    for rows, by_vectors in _batches(cases, trained_users, batch_size):
        part = cases.take(rows)
        candidates = np.concatenate([part.targets[:, None], negatives[rows]], 1).astype(np.int64)
        drawn = torch.as_tensor(candidates, device=device)
        if with_times:
            scores = _scores(model, model.index(), part, by_vectors, with_times, device).gather(1, drawn)
        else:
            items, users = inputs(model, part, by_vectors, device)
            scores = model.candidates(items, drawn, users).float()
        ranks[rows] = mean_rank(scores, scores[:, :1]).cpu().numpy()
    return Ranking(ranks, {})


def with_vectors(model: Recommender, training: Ragged, users: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """bool [users]: whether a model with `trained_users` learnt their vectors from this log. Where it reads an order it learns
    from one item after another, and somebody with a single one keeps what was drawn."""
    return training.lengths[users] > int(model.reads_order)


def _batches(cases: Cases, trained_users: bool | np.ndarray, size: int) -> Iterator[tuple[np.ndarray, bool]]:
    """Rows of cases, and whether vectors of training users are used for them. Like lengths together: little padding, and the
    result does not depend on the order."""
    by_vectors = np.broadcast_to(trained_users, len(cases))
    order = np.argsort(cases.history.lengths, kind="stable")
    for known in (False, True):
        rows = order[by_vectors[order] == known]
        for start in range(0, len(rows), size):
            yield rows[start : start + size], known


def top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of each row, values and places [rows, k]; of equal scores the lower places, as bundles list them."""
    values, places = scores.topk(k, dim=1)
    least = values[:, -1:]
    cut = (scores == least).sum(1) > (values == least).sum(1)  # some of the last ones were left out, and not in order
    for row in cut.nonzero()[:, 0].tolist():
        whole = (scores[row] >= least[row]).nonzero()[:, 0]
        best = scores[row, whole].sort(dim=0, descending=True, stable=True)
        values[row], places[row] = best.values[:k], whole[best.indices[:k]]
    by_place = places.sort(1)
    values, order = values.gather(1, by_place.indices).sort(dim=1, descending=True, stable=True)
    return values, by_place.values.gather(1, order)


def mean_rank(scores: Tensor, target_score: Tensor) -> Tensor:
    """float64 [rows]: 1 + how many score higher + half of the others that score the same.

    scores: [rows, candidates], the target among them; target_score: [rows, 1], the target's score. A score that is not a number
    counts as higher: a broken model must not look good.
    """
    higher = (~(scores <= target_score)).sum(1) - target_score.isnan().sum(1)  # but for the target itself
    same = (scores == target_score).sum(1)
    return 1 + higher.double() + (same.clamp(min=1) - 1).double() / 2


def _ranks(scores: Tensor, owner: Tensor, target_scores: Tensor) -> np.ndarray:
    """float64 [targets]: the expected place of each target, where those that score the same stand in random order.

    scores: [cases, candidates]; owner: int64 [targets], ascending, the case of each; target_scores: [targets]. That is the mean
    rank of a target that ties with others. Of m targets of one case among s that tie, the j-th is expected at
    j · (s + 1) / (m + 1) among them: their mean rank for all would put more targets into the first k than have room there.
    """
    if len(owner) == len(scores):
        return mean_rank(scores, target_scores[:, None]).cpu().numpy()
    place = torch.arange(len(owner), device=owner.device) - torch.searchsorted(owner, owner)
    of_owners = target_scores.new_zeros(len(scores), int(place.max()) + 1)
    of_owners[owner, place] = target_scores
    # numpy sorts several times faster than torch does on a processor
    ordered = torch.from_numpy(np.sort(scores.numpy(), 1)) if scores.device.type == "cpu" else scores.sort(1).values
    if ordered[:, -1].isnan().any():  # sorted last, but a search would take them for the lowest
        ordered = ordered.nan_to_num(torch.inf, torch.inf, -torch.inf)
    least, most = (torch.searchsorted(ordered, of_owners, right=right)[owner, place] for right in (False, True))
    broken, candidates = target_scores.isnan(), scores.shape[1]
    higher = torch.where(broken, candidates - 1, candidates - most).cpu().numpy()
    same = torch.where(broken, 1, most - least).cpu().numpy()
    # of the targets of a case that tie: which one it is (j), and how many they are (m)
    values, cases = target_scores.cpu().numpy(), owner.cpu().numpy()
    order = np.lexsort((values, cases))
    begins = np.append(True, (values[order][1:] != values[order][:-1]) | (cases[order][1:] != cases[order][:-1]))
    group = np.cumsum(begins) - 1
    j, m = np.empty((2, len(order)), np.int64)
    j[order] = np.arange(len(order)) - np.flatnonzero(begins)[group] + 1
    m[order] = np.bincount(group)[group]
    return higher + j * (same + 1) / (m + 1)


def next_device(model: Recommender) -> torch.device:
    """Where the model's tensors are."""
    return next(iter([*model.parameters(), *model.buffers()])).device


def _scores(
    model: Recommender, index: ItemIndex, part: Cases, trained_users: bool, with_times: bool, device: torch.device
) -> Tensor:
    items, users = inputs(model, part, trained_users, device)
    if not with_times:
        return score(model.query(items, users), index).float()
    assert part.times is not None
    times = torch.as_tensor(part.times.padded(items.shape[1], NO_TIME), device=device)
    return model.scores_with_times(items, times).float()


def inputs(model: Recommender, part: Cases, trained_users: bool, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Padded histories, and the users where the model knows them."""
    width = max(1, min(int(part.history.lengths.max(initial=1)), model.max_length))
    items = torch.as_tensor(part.history.padded(width, model.pad), device=device)
    users = torch.as_tensor(part.users.astype(np.int64), device=device) if trained_users else None
    return items, users


# --- negatives of sampled protocols, drawn once per dataset and kept in a file, so that every model is asked the same questions
#
# u100: 100 uniform items. p100: 100 items drawn by training popularity without replacement. Neither contains the target, nor an
# item of the user's history unless repeats count in the dataset. These protocols exist to compare with papers.


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
            raise SeqscopeError(f"somebody's history leaves {possible}, and {COUNT} negatives are to be drawn")
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
    try:
        drawn = draw(cases, weights, int.from_bytes(digest[:8], "little"), exclude_history=excluded)
    except SeqscopeError as error:
        remedy = "--set training.valid_protocol=full" if split == "valid" else "full ranking, which is always done"
        raise SeqscopeError(f"{protocol}: of the {dataset.num_items:,} items of {dataset.path} {error}. Take {remedy}.")
    try:
        with replacing(path) as staged, staged.open("wb") as file:
            np.save(file, drawn, allow_pickle=False)
    except OSError as error:
        raise SeqscopeError(
            f"{path} cannot be written ({error.strerror or error}). Check its permissions and the free space."
        )
    return drawn
