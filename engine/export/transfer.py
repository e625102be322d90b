"""A model that knows items by their words, carried to a catalogue that it was never trained on: a bundle made from a bundle.

The graphs stay as they are but for their tables of words; the items are encoded by ONNX Runtime. Needs no torch.
"""

import hashlib
import itertools
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pyarrow.parquet as pq
from onnx import numpy_helper

from engine.bundle.errors import BundleError
from engine.bundle.index import Float32, best, mean_rank
from engine.bundle.manifest import ZERO_SHOT, Manifest, Projection, ZeroShot
from engine.bundle.onnx_graph import WEIGHTS
from engine.console import Progress, stage
from engine.data.dataset import Dataset, DatasetInfo
from engine.data.words import TOKENIZER, ItemWords, tokenize
from engine.errors import SeqscopeError
from engine.evaluation import metrics
from engine.evaluation.protocols import history_excluded, main
from engine.evaluation.tables import accuracy_of_parts, write_tables
from engine.export import staging, umap_map, weights
from engine.runtime.bundle import Bundle, Catalogue
from engine.runtime.text import ITEM_ENCODER
from engine.text.attributes import attributes, fields_elsewhere
from engine.text.embeddings import cache_folder, in_chunks, parts_folder, read_rows, write_rows
from engine.text.tokenizer import Known, known
from engine.writing import count

GRAPHS = ("encoder.onnx", "attention.onnx")
"""Those that hold the words of all items."""


@dataclass(frozen=True)
class Carried:
    """What was made."""

    folder: Path
    items: int
    cut: int
    """Items that have more words than the graphs take."""
    mapped: int
    """Items on the map."""
    found: bool
    """True: it was there already, made of the same bundle and the same words."""
    known: Known
    """How many words of the catalogue the model knows."""


def carry(
    source: Path,
    dataset: Path,
    out: Path,
    *,
    name: str | None = None,
    title: str | None = None,
    cache: Path | None = None,
    users: int = staging.USERS,
) -> Carried:
    """Write the model of the bundle `source` for the items of `dataset` as the bundle `out`/<name>.

    cache: where rows are kept by content (default: <dataset>/words, or where that cannot be written the user's own cache); users:
    how many are offered at most. What is there already, of the same bundle and the same words, is left alone; the table of users
    is written anew where it has more or fewer. Where people have held-out items, they are ranked, as `seqscope evaluate` does.

    Raises SeqscopeError where the model knows items by their numbers, where it was trained on this very dataset, or where `out`
    belongs to other data.
    """
    bundle, origin = _open(source)
    data = Dataset(dataset)
    cache = cache_folder(data.path, cache)
    name = name or bundle.name
    staging.check_bundle_name(name, title)
    if data.info.fingerprint == origin.fingerprint:
        raise SeqscopeError(f"{source} was trained on {dataset}; there is nothing to carry over")
    if data.info.sets:
        raise SeqscopeError(
            f"{dataset} holds out several items a user, and a model that is carried over is ranked by one. Import it with a "
            "leave-one-out or a time split."
        )
    staging.exported_fingerprint(data, out)
    stage("reading the words")
    words, heard = read_words(bundle, data)
    assert bundle.manifest.text is not None
    longest = bundle.manifest.text.longest  # that the graphs have room for
    cut = int((words.lengths > longest).sum())
    if cut:
        words = words.take(np.arange(len(words)), longest)
    about = ZeroShot(
        bundle=bundle.name, digest=bundle.digest, dataset=origin.name, title=origin.title[:300],
        fingerprint=origin.fingerprint, words=words.digest(), cut=cut,
    )  # fmt: skip
    title = title or bundle.manifest.title[: staging.TITLE - len(ZERO_SHOT)] + ZERO_SHOT
    unknown = round(heard.share, 4)
    there = _there(out / name, data, about, title, unknown)
    if there is not None:
        offered = out / "users.parquet"
        if offered.exists() and pq.read_metadata(offered).num_rows != min(users, len(data.cases("test"))):
            staging.write_dataset_side(data, out, users)
        table = there.map_table()
        return Carried(out / name, data.num_items, cut, 0 if table is None else table.num_rows, True, heard)
    rows = _rows(bundle, words, cache, data.path)
    with staging.exported(out / name, data, out, users) as folder:
        placed = _fill(folder, bundle, words, longest, rows)
        manifest = _manifest(folder, title, bundle.manifest, data, words, longest, placed, about, unknown)
        made = _opened(folder, manifest, data)
        if len(data.cases("test")):
            carried = _evaluate(made, data, folder)
            manifest = manifest.model_copy(update={"metrics": carried, "files": staging.files_of(folder)})
            _opened(folder, manifest, data)
    mapped = 0 if placed is None else len(umap_map.on_map(len(rows)))
    return Carried(out / name, data.num_items, cut, mapped, False, heard)


def _open(source: Path) -> tuple[Bundle, DatasetInfo]:
    """The bundle and what it was trained on."""
    if not (source / "manifest.json").is_file():
        raise SeqscopeError(
            f"{source} is no bundle: it has no manifest.json. Name one, such as exports/sample/recformer."
        )
    origin = DatasetInfo.read(source.parent / "dataset.json")
    bundle = Bundle.open(source, Catalogue(origin.name, origin.fingerprint, origin.counts["items"]))
    if bundle.manifest.zero_shot is not None:
        raise SeqscopeError(f"{source} was carried over itself. Name the bundle that was trained.")
    if bundle.manifest.sentence is not None:
        raise SeqscopeError(
            f"{bundle.manifest.title} needs no training: run `seqscope train` for it on the dataset itself."
        )
    if bundle.manifest.text is None:
        raise SeqscopeError(f"{bundle.manifest.title} cannot be carried over. {bundle.cannot('unseen_items')}")
    if bundle.index.table[:, -1].any():
        raise SeqscopeError(f"{source} has biases of its items, which those of another catalogue cannot have")
    return bundle, origin


def read_words(bundle: Bundle, data: Dataset) -> tuple[ItemWords, Known]:
    """The words of every item of a catalogue, as the model of the bundle reads them, and how many it knows; with the fields it
    was trained on where the catalogue has them all, else with as many of the catalogue's own."""
    text, reader = bundle.manifest.text, bundle.reader
    assert text is not None
    settings = bundle.manifest.training.recipe.get("model", {})
    named, count = settings.get("fields") or [], settings.get("attributes") or len(text.fields)
    items = pq.read_table(data.path / "items.parquet").sort_by("item")
    fields = fields_elsewhere(items.schema, [str(field) for field in named], int(count))
    pairs = attributes(items, fields)
    if not any(pairs):
        raise SeqscopeError(f"{data.path}: no item has any words, so there is nothing to read")
    words = tokenize(pairs, reader.tokenizer, [field.key for field in fields], text.limit)
    return words, known(reader.tokenizer, [value for item in pairs for _, value in item])


def _there(target: Path, data: Dataset, about: ZeroShot, title: str, unknown: float) -> Bundle | None:
    """What `target` holds, where it is what would be made."""
    try:
        bundle = Bundle.open(target, Catalogue(data.info.name, data.info.fingerprint, data.num_items))
    except BundleError:
        return None
    says = bundle.manifest
    return bundle if (says.zero_shot, says.title, says.unknown) == (about, title, unknown) else None


# --- rows


def _rows(bundle: Bundle, words: ItemWords, cache: Path, dataset: Path) -> Float32:
    """float32 [items, dim]: each different text is read once, in chunks that are kept until all are done; then the whole is."""
    key = hashlib.sha256(f"1 {bundle.digest} {words.digest()}".encode()).hexdigest()[:16]
    target = cache / f"rows-{bundle.name}-{key}.npy"
    dim = bundle.manifest.encoder.dim
    rows = read_rows(target, (len(words), dim))
    if rows is None:
        bounds = itertools.pairwise(words.offsets.tolist())
        texts = [words.tokens[start:end].tobytes() + words.kinds[start:end].tobytes() for start, end in bounds]
        parts, title = parts_folder(target, dataset), f"reading items with {bundle.manifest.title}"
        rows = in_chunks(texts, dim, parts, title, lambda items, _: bundle.reader.rows(words.take(items)))
        write_rows(target, rows)
        shutil.rmtree(parts, ignore_errors=True)
    return rows


# --- files


def _fill(folder: Path, bundle: Bundle, words: ItemWords, longest: int, rows: Float32) -> Projection | None:
    """Every file but the manifest and what an evaluation writes; how the map was made, None where there are too few items."""
    stage("writing the graphs")
    for file in GRAPHS:
        if file in bundle.manifest.files:
            (folder / file).write_bytes(_with_words(bundle, file, words, longest))
    item_encoder = weights.whole(bundle.folder, bundle.manifest.files, ITEM_ENCODER)
    (folder / ITEM_ENCODER).write_bytes(item_encoder.SerializeToString())
    shutil.copyfile(bundle.folder.path / TOKENIZER, folder / TOKENIZER)
    index = np.concatenate([rows, np.zeros((len(rows), 1), np.float32)], axis=1)
    np.save(folder / "index.npy", index, allow_pickle=False)
    weights.share(folder)
    pq.write_table(words.by_word(), folder / "words.parquet", compression="zstd")
    geometry, centred = bundle.manifest.index.geometry, bool(bundle.manifest.index.centred)
    if len(rows) <= umap_map.NEIGHBOURS or geometry == "none":
        return None
    stage("drawing the map")
    which, xy, how = umap_map.umap_map(rows, geometry, centred)
    umap_map.write_map(folder / "map.parquet", xy, item=which)
    return how


def _with_words(bundle: Bundle, file: str, words: ItemWords, longest: int) -> bytes:
    """The graph with the words of other items. Its tables are known by their form: [items + 1, longest] for tokens and kinds (or
    the same laid flat), of which kinds are 0 to 2, and [items + 1] for how many tokens there are."""
    model = weights.whole(bundle.folder, bundle.manifest.files, file)
    count = bundle.manifest.num_items + 1
    tokens = _padded(words.table(words.tokens, words.pad), longest, words.pad)
    kinds = _padded(words.table(words.kinds, 0), longest, 0)
    lengths = np.append(words.lengths, 0)
    replaced: dict[str, str] = {}
    for tensor in model.graph.initializer:
        shape = tuple(tensor.dims)
        flat = shape == (count * longest,)
        if tensor.data_type not in (onnx.TensorProto.INT32, onnx.TensorProto.INT64) or not (
            flat or shape[:1] == (count,)
        ):
            continue
        old = numpy_helper.to_array(tensor)
        if shape == (count,):
            new, table = lengths, "lengths"
        elif flat or shape == (count, longest):
            new, table = (kinds, "kinds") if old.max(initial=0) <= 2 else (tokens, "tokens")
            new = new.reshape(-1) if flat else new
        else:
            raise _unknown(bundle, file)
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(new.astype(old.dtype)), tensor.name))
        replaced[tensor.name] = table
    tables = [table for table in replaced.values() if table != "lengths"]
    if sorted(tables) != ["kinds", "tokens"] or "lengths" not in replaced.values():
        raise _unknown(bundle, file)
    # where a table is laid flat, its size is written down as well
    sizes = {node.input[1] for node in model.graph.node if node.op_type == "Reshape" and node.input[0] in replaced}
    for tensor in model.graph.initializer:
        if tensor.name in sizes:
            if numpy_helper.to_array(tensor).tolist() not in ([count * longest], [-1]):
                raise _unknown(bundle, file)
            tensor.CopyFrom(numpy_helper.from_array(np.array([-1], np.int64), tensor.name))
    del model.graph.value_info[:]  # sizes that were noted for the other catalogue
    content: bytes = model.SerializeToString()
    return content


def _padded(table: npt.NDArray[np.int64], longest: int, fill: int) -> npt.NDArray[np.int64]:
    """With a row for padding, and as many columns as the graphs have."""
    padded = np.full((len(table) + 1, longest), fill, np.int64)
    padded[:-1, : table.shape[1]] = table
    return padded


def _unknown(bundle: Bundle, file: str) -> SeqscopeError:
    return SeqscopeError(
        f"{bundle.folder.path / file} keeps the words of its items in a way that is not known here; export it again"
    )


def _manifest(
    folder: Path,
    title: str,
    source: Manifest,
    data: Dataset,
    words: ItemWords,
    longest: int,
    placed: Projection | None,
    about: ZeroShot,
    unknown: float,
) -> Manifest:
    assert source.text is not None
    text = source.text.model_copy(update={"fields": list(words.fields), "longest": longest, "unknown": unknown})
    reasons = dict(source.capabilities.reasons)
    if placed is None:
        reasons["map"] = f"{count(data.num_items, 'item is', 'items are')} too few to draw a map of."
    able = source.capabilities.model_copy(update={"map": placed is not None, "reasons": reasons})
    changes = dict(title=title, text=text, zero_shot=about, capabilities=able, metrics={}, projection=placed)
    made = staging.provenance(folder, data)
    return source.model_copy(update={"schema_version": 5 if WEIGHTS in made["files"] else 3, **made, **changes})


def _opened(folder: Path, manifest: Manifest, data: Dataset) -> Bundle:
    """As `read_back`, its attention, too."""
    opened = staging.read_back(Bundle, folder, manifest, data)
    if opened.cannot("attention") is None:
        opened.attention([0])
    return opened


# --- what it is worth, where people have held-out items


def _evaluate(bundle: Bundle, data: Dataset, folder: Path) -> dict[str, dict[str, float]]:
    """Full ranking over the catalogue, as `engine.evaluation` has it; metrics, and the tables in `folder`."""
    cases = data.cases("test")
    ranks, exposure = np.empty(len(cases)), {k: np.zeros(data.num_items, np.int64) for k in metrics.CUTOFFS}
    progress = Progress(len(cases), "evaluate")
    protocol, excluded = main(data.info.repeats), history_excluded(data.info.repeats)
    histories = [cases.history[row].astype(np.int64) for row in range(len(cases))]
    order = np.argsort(cases.history.lengths, kind="stable")
    answers = bundle.scores_near([histories[row] for row in order], np.empty(0, np.int64))
    for done, (row, scores) in enumerate(zip(order, answers, strict=True), 1):
        target = cases.targets[row]
        target_score = scores[target]
        if excluded:
            scores[histories[row]] = -np.inf
            scores[target] = target_score
        ranks[row] = mean_rank(scores, target_score)
        top = best(scores, metrics.CUTOFFS[-1])
        for k in metrics.CUTOFFS:
            exposure[k][top[:k]] += 1
        progress.update(done)
    measured = {protocol: metrics.accuracy(ranks) | metrics.beyond_accuracy(exposure, data.popularity)}
    write_tables(folder, cases, {protocol: ranks}, {protocol: exposure})
    return measured | accuracy_of_parts({protocol: ranks}, cases, data.popularity)
