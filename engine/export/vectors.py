"""Vectors of items as files: of a bundle encoder.onnx, attention.onnx where the model attends, and index.npy; weights between
items, of a model that counts; the graph that a model learnt along; and spaces that no model owns,
exports/<dataset>/spaces/<name>/, as engine.bundle.embedding_spaces reads them.

A bundle is run before anybody sees it: its answers must be PyTorch's.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from onnx import checker, numpy_helper, parser

from engine.bundle.embedding_spaces import MAP, VECTORS, Space, SpaceAbout
from engine.bundle.files import Folder
from engine.bundle.index import Float32
from engine.bundle.manifest import Check, Index, ItemToItem, PeopleGraph
from engine.data.dataset import Cases, Dataset
from engine.data.ragged import Ragged
from engine.errors import SeqscopeError
from engine.export import graphs, umap_map
from engine.export.staging import TITLE, Draft, check_name_and_title, exported, file_of, provenance, read_back
from engine.models import Recommender
from engine.models.graph import GraphRecommender
from engine.models.item_to_item import LEVELS
from engine.models.item_to_item import ItemToItem as ItemToItemModel
from engine.models.popularity import Popularity
from engine.runtime.graph_paths import EMBEDDINGS, PEOPLE, InteractionGraph, Paths
from engine.runtime.item_to_item import FILE, bytes_of_gap, unpack
from engine.runtime.zoo import SPACES
from engine.text.attributes import Field
from engine.text.embeddings import Stored

Int64 = npt.NDArray[np.int64]
Encode = Callable[[Int64], Float32]
"""int64 [batch, length] → query, float32 [batch, dim]."""
Answers = Callable[[Int64, Int64, np.random.Generator], Iterator[tuple[np.ndarray, np.ndarray]]]
"""Rows of cases, and their histories, int64 [batch, length] → each answer of a graph, and PyTorch's."""
TOLERANCE = 1e-4
PER_LENGTH = 8


def write_vectors(model: Recommender, draft: Draft) -> None:
    """encoder.onnx, attention.onnx and index.npy; graphs stay where another part wrote them."""
    folder = draft.folder
    if not (folder / "encoder.onnx").exists():
        graphs.write_encoder(model, folder / "encoder.onnx")
    if model.attention is not None and not (folder / "attention.onnx").exists():
        graphs.write_attention(model, folder / "attention.onnx")
    index, card = model.index(), model.card
    table = index.bias.detach().numpy().astype(np.float32)[:, None]
    if index.rows is not None:
        draft.rows = index.rows.detach().numpy().astype(np.float32)
        table = np.concatenate([draft.rows, table], axis=1)
    np.save(folder / "index.npy", table, allow_pickle=False)
    kind = "identity" if draft.rows is None else "dense"
    draft.index = Index(kind=kind, geometry=model.geometry, centred=card.centred or None, parts=dict(model.score_parts))  # type: ignore[arg-type]
    draft.dim = draft.data.num_items if draft.rows is None else draft.rows.shape[1]
    draft.checks.append(lambda: compare(folder, model, draft.cases, draft.recipe.training.seed))


def made_up(items: int, seed: int) -> Cases:
    """Histories drawn at random, where there are no people: 64 of 1 to 20 items."""
    rng = np.random.default_rng(seed)
    history = Ragged.of([rng.integers(0, items, length).tolist() for length in rng.integers(1, 21, 64)])
    return Cases.of(np.arange(64, dtype=np.int32), history, rng.integers(0, items, 64).astype(np.int32))


def lengths(max_length: int) -> list[int]:
    """1, 2, n − 1, n and more than the n items that the encoder reads."""
    return sorted({length for length in (1, 2, max_length - 1, max_length, max_length + 3) if length > 0})


def histories(model: Recommender, cases: Cases, length: int, rng: np.random.Generator) -> tuple[Int64, Int64]:
    """Rows of `cases` drawn at random, and their histories of that length, as far as the model reads them: repeated end to end
    where they are not long enough. int64 [PER_LENGTH], [PER_LENGTH, length]"""
    rows = rng.integers(0, len(cases), PER_LENGTH)
    items = np.stack([np.resize(cases.history[row], length)[-model.max_length :] for row in rows]).astype(np.int64)
    if length > 2:
        items[0, : length // 2] = model.pad  # a shorter history in the same batch
    return rows, items


def compare(folder: Path, model: Recommender, cases: Cases, seed: int, encode: Encode | None = None) -> Check:
    """Scores of encoder.onnx (or `encode`) and index.npy (and what else the graphs answer) against the model's own.

    Histories are those of real people (`histories`). The largest difference is relative to the largest score (absolute where that
    is below 1). Raises SeqscopeError where it exceeds TOLERANCE.
    """
    files = {name: folder / f"{name}.onnx" for name in ("encoder", "attention")}
    sessions = {name: graphs.session(path) for name, path in files.items() if path.exists()}
    index = np.load(folder / "index.npy", allow_pickle=False)

    def answers(_: Int64, items: Int64, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        tensor = torch.from_numpy(items)
        query = encode(items) if encode else sessions["encoder"].run(["query"], {"items": items})[0]
        got = (
            query + index[:, 0]
            if index.shape[1] == 1 and query.shape[1] == len(index)
            else query @ index[:, :-1].T + index[:, -1]
        )
        yield got, model.scores(tensor).numpy()
        for output, answer in graphs.explanations(model, tensor).items():
            yield sessions["encoder"].run([output], {"items": items})[0], answer.numpy()
        if "attention" in sessions:
            weights = sessions["attention"].run(["attention"], {"items": items})[0]
            yield weights, model.query_with_attention(tensor)[1].numpy()

    return checked(model, cases, seed, answers)


@torch.no_grad()
def checked(model: Recommender, cases: Cases, seed: int, answers: Answers) -> Check:
    """What graphs answer against what PyTorch does, on `histories` of all `lengths`. Raises SeqscopeError where they differ."""
    rng = np.random.default_rng(seed)
    worst, count, used = 0.0, 0, lengths(model.max_length)
    for length in used:
        rows, items = histories(model, cases, length, rng)
        for got, expected in answers(rows, items, rng):
            worst = max(worst, difference(got, expected))
        count += len(items)
    if not worst <= TOLERANCE:
        raise SeqscopeError(
            f"{model.name}: the exported graph differs from PyTorch by {worst:.2g} (at most {TOLERANCE:g}); not exported"
        )
    return Check(histories=count, lengths=used, max_abs_difference=worst)


def difference(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest expected value where that exceeds 1."""
    if got.shape != expected.shape:
        raise SeqscopeError(
            f"the exported graph answers {got.shape} where PyTorch answers {expected.shape}; not exported"
        )
    difference = float(np.abs(got - expected).max() / max(1.0, np.abs(expected).max()))
    return difference if np.isfinite(difference) else float("inf")  # max() would pass over what is not a number


# --- models that count: weights between items, packed, and a graph that is a few lines of ONNX, written as such
#
# PyTorch's exporter, which follows a network through its modules, takes seconds to be loaded and seconds for each of them.


def write_item_to_item(model: ItemToItemModel, draft: Draft) -> None:
    """item_to_item.npz, which engine/runtime/item_to_item.py reads, and index.npy."""
    items, count, file = model.num_items, len(model.entries), draft.folder / FILE
    rows = np.repeat(np.arange(items + 1), np.diff(model.starts.numpy()))
    gaps = np.diff(rows * items + model.entries.numpy(), prepend=-1)
    arrays: dict[str, Any] = {
        "gaps": gaps.astype("<i8").view(np.uint8).reshape(count, 8).T[: bytes_of_gap(items)].copy()
    }
    levels, codes = np.unique(model.weights.numpy(), return_inverse=True)
    few = len(levels) <= LEVELS
    if few:
        arrays |= {"codes": codes.astype(np.uint8), "levels": np.pad(levels, (0, LEVELS - len(levels)))}
    else:
        arrays["weights"] = model.weights.numpy()
    if model.reads_order:
        arrays["position_weights"] = model.position_weights.numpy()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    np.save(draft.folder / "index.npy", model.prior.numpy()[:, None], allow_pickle=False)
    draft.item_to_item, draft.dim = ItemToItem(entries=count, levels=256 if few else 0), items
    longest = model.max_length if model.reads_order else None
    folder = Folder(draft.folder, draft.folder.name)
    unpacked = unpack(folder, {FILE: file_of(file)}, items, draft.item_to_item, longest)
    draft.checks.append(lambda: compare(draft.folder, model, draft.cases, draft.recipe.training.seed, unpacked.run))


def write_constant(model: Popularity, draft: Draft) -> None:
    """encoder.onnx of a model that reads nothing: a query of zeros, so that the bias of the index is the score."""
    constant = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : {graphs.OPSET}], producer_name: "seqscope">
    encoder (int64[batch, 1] items) => (float[batch, 1] query) {{
        batch_size = Shape <start = 0, end = 1> (items)
        shape = Concat <axis = 0> (batch_size, dim)
        query = ConstantOfShape (shape)
    }}""")
    constant.graph.initializer.append(numpy_helper.from_array(np.array([1]), "dim"))
    checker.check_model(constant)
    (draft.folder / "encoder.onnx").write_bytes(constant.SerializeToString())


MOST_EDGES = 5_000_000
"""Of a graph that a bundle carries: more would take longer to walk than a page waits."""


def write_graph(model: GraphRecommender, draft: Draft) -> None:
    """people.parquet and, where scores are sums over paths, embeddings.npy; nothing where the graph is too large to be carried.

    Raises SeqscopeError where the paths do not add up to the model's scores.
    """
    everybody = Ragged(model.propagation.user_items.numpy(), model.propagation.user_offsets.numpy().astype(np.int64))
    if len(everybody.values) > MOST_EDGES:
        return
    with_items = np.flatnonzero(everybody.lengths)
    people = everybody.take(with_items)
    column = pa.ListArray.from_arrays(pa.array(people.offsets, pa.int32()), pa.array(people.values))
    pq.write_table(
        pa.table({"items": column}),
        draft.folder / PEOPLE,
        compression="zstd",
        compression_level=19,
        use_dictionary=False,
    )
    depth = len(model.layers()) - 1
    draft.graph = PeopleGraph(layers=depth, people=len(people), edges=len(people.values), layer_dim=model.layer_dim)
    if not model.sums_paths:
        return
    of_items, of_people = model.items.weight.detach().numpy(), model.users.weight.detach().numpy()[with_items]
    np.save(draft.folder / EMBEDDINGS, np.concatenate([of_items, of_people]).astype(np.float32))
    _check_paths(model, Paths(InteractionGraph.of(people, model.num_items), of_items, of_people, depth))
    draft.graph = draft.graph.model_copy(update={"dim": of_items.shape[1]})


def _check_paths(model: GraphRecommender, paths: Paths) -> None:
    rng = np.random.default_rng(0)
    for length in (1, 3, 12):
        history = rng.choice(model.num_items, min(length, model.num_items), replace=False)
        with torch.inference_mode():
            scores = model.scores(torch.from_numpy(history)[None])[0].numpy()
        difference = np.abs(paths.scores(history.tolist()) - scores).max()
        if difference > 1e-4 * max(1.0, np.abs(scores).max()):
            raise SeqscopeError(
                f"the paths through the graph add up to other scores than the model's (off by {difference:.2g})"
            )


_SHORT = {"minilm": "MiniLM", "scratch": "own encoder"}
"""What an encoder is called where there is little room."""


def export_words_space(
    stored: Stored, dataset: Path, out: Path, *, name: str | None = None, title: str | None = None
) -> Path:
    """Write the vectors of the words of `dataset` to `out`/spaces/<name>; returns that folder.

    Raises SeqscopeError where `out` belongs to other data, or where there are too few items with words for a map.
    """
    encoder = stored.encoder
    name = name or encoder.name
    check_name_and_title(name, title)
    title = title or f"Words ({_SHORT.get(encoder.name.partition('-')[0], encoder.title)})"
    data = Dataset(dataset)
    if len(stored.texts) != data.num_items:
        raise SeqscopeError(f"{dataset} has {data.num_items:,} items, but {len(stored.texts):,} texts were embedded")
    rows = rounded(stored.vectors, np.array([not text for text in stored.texts]))
    target = out / SPACES / name
    with exported(target, data, out, None) as folder:
        about = _fill_space(folder, stored, rows, title[:TITLE], data)
        read_back(Space, folder, about, data)
    return target


def rounded(vectors: npt.NDArray[np.float32], without: npt.NDArray[np.bool_]) -> npt.NDArray[np.float16]:
    """float16 [items, dim], rows of zeros for the items `without` a vector. Of unit vectors the cosines change by less than
    2⁻¹⁰. Raises SeqscopeError where float16 cannot hold them."""
    with np.errstate(over="ignore"):
        halves = vectors.astype("<f2")
    halves[without] = 0
    if not np.isfinite(halves).all() or (~halves.any(axis=1) & ~without).any():
        raise SeqscopeError("the vectors are too large or too small for float16; scale them to unit length")
    return halves


def _fill_space(folder: Path, stored: Stored, rows: npt.NDArray[np.float16], title: str, data: Dataset) -> SpaceAbout:
    """Write every file but about.json, and return what goes into that."""
    encoder, some = stored.encoder, np.flatnonzero(rows.any(axis=1))
    if len(some) <= umap_map.NEIGHBOURS:
        raise SeqscopeError(
            f"{data.path} has {len(some)} items with words; a map needs more than {umap_map.NEIGHBOURS}"
        )
    np.save(folder / VECTORS, rows, allow_pickle=False)
    which, xy, how = umap_map.umap_map(rows[some].astype(np.float32), "cosine")  # of what readers will compare
    umap_map.write_map(folder / MAP, xy, item=some[which])
    keys = [Field.read(field).key for field in stored.fields]
    return SpaceAbout(
        **provenance(folder, data),
        title=title,
        summary=f"Near are items of which much the same is said. Read were {', '.join(keys)}, by "
        f"{encoder.title}; nobody's history plays a part.",
        source=_source(encoder.source),
        licence=encoder.licence,
        order=10,
        dim=encoder.dim,
        geometry="cosine",
        without=data.num_items - len(some),
        projection=how,
    )


def _source(words: str) -> str:
    """Without the folders of the machine that an encoder was read from."""
    head, comma, rest = words.partition(",")
    return f"{Path(head).name}{comma}{rest}" if Path(head).is_absolute() or Path(head).is_dir() else words
