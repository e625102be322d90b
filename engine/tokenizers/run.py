"""A tokenizer's run: one recipe on one catalogue, in one folder. From dataset to identifiers and back.

run.json                 kind "tokenizer", resolved recipe, dataset fingerprint, command, device, what happened
identifiers.parquet      with identifiers.json: engine.data.identifiers
tokenizer.safetensors    enough to identify any item: engine.tokenizers.run
latents.npy              float32 [items, d], what was quantised (not where nothing is)
report.json              engine.tokenizers.report
checkpoint.safetensors   of tokenizers that learn by gradient
"""

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from engine.console import note
from engine.data.dataset import Dataset
from engine.data.identifiers import Identifiers
from engine.errors import OtherRun, SeqscopeError, UsageError, first_line
from engine.evaluation.record import PROVENANCE, expect_run_folder, fault
from engine.files import claimed, expect_permitted, load_json, read_json, replacing, write_json
from engine.text.embeddings import cache_folder, read_items, write_rows
from engine.tokenizers import teacher
from engine.tokenizers.base import Learning, Material, Tokenizer, Vectors, tokenizers
from engine.tokenizers.collisions import extend, settle
from engine.tokenizers.recipe import TokenizerRecipe, from_dict
from engine.tokenizers.report import Judge, describe, find_judge, table
from engine.training import compute as devices
from engine.training.loop import seed_of
from engine.training.recipe import build_table
from engine.training.run import provenance

WITHOUT_LOG = {
    "collaborative": "learns from the vectors of a SASRec, which learns from what users interact with",
    "training": "groups items by what users interact with together",
}
"""What a tokenizer needs → why a catalogue alone will not do."""
LATENTS, REPORT, RECORD = "latents.npy", "report.json", "run.json"
TOKENIZER = "tokenizer.safetensors"
OWN = {RECORD, REPORT, LATENTS, TOKENIZER, "checkpoint.safetensors", "identifiers.json", "identifiers.parquet"}


def tokenize(
    recipe: TokenizerRecipe,
    dataset: Dataset,
    folder: Path,
    *,
    device: str = "auto",
    vectors: Vectors | None = None,
    restart: bool = False,
    judge: Path | None = None,
) -> dict[str, Any]:
    """Fit the tokenizer of `recipe` to the catalogue of `dataset` and write its run into `folder`.

    Goes on where an interrupted run of the same stopped. vectors: float32 [items, d] instead of those of the recipe's text
    encoder; judge: the SASRec run that figures are taken against (one beside `folder` if not given). Returns what report.json
    holds. Raises SeqscopeError where the folder holds another run (and `restart` is not given), or where another process writes
    in it.
    """
    with taken(folder, restart):
        where = devices.choose(device)
        material, about = gather(recipe, dataset, folder, device, vectors)
        key = hashlib.sha256((json.dumps(recipe.to_dict(), sort_keys=True) + material.digest()).encode()).hexdigest()
        if finished(folder, key):
            return _reported(recipe, dataset, folder, material, judge)
        # one that is none is refused before anything is fitted
        judge_run = find_judge(judge, recipe, dataset, folder.parent)
        began = time.monotonic()
        learning = Learning(recipe.optimiser, recipe.training, where, folder, key, f"{dataset.info.name}/{recipe.name}")
        generator = np.random.default_rng(seed_of(recipe.training.seed, "tokenizer"))
        try:
            tokenizer = tokenizers()[recipe.family].fit(material, recipe.tokenizer, generator, learning)
            identifiers = settle(tokenizer, material, recipe.collisions, about)
        except ValueError as error:
            raise UsageError(f"{recipe.name}: {error}") from None
        record = {
            "identity": key,
            **provenance(recipe.to_dict(), dataset, where),
            "seconds": round(time.monotonic() - began, 1),
            **tokenizer.record,
        }
        return write(folder, tokenizer, identifiers, material, dataset, record, judge_run)


@contextmanager
def taken(folder: Path, restart: bool) -> Iterator[None]:
    """A run's folder, for one process alone; without a tokenizer's run where `restart` replaces that."""
    there = expect_run_folder(folder)
    if restart and there and (not there & OWN or "best.safetensors" in there):
        raise SeqscopeError(
            f"{folder} is not a run of a tokenizer, so --restart does not replace it. Give another --out."
        )
    with claimed(folder, OWN if restart else ()):
        yield


def finished(folder: Path, key: str) -> bool:
    """Whether `folder` holds a finished run of the identity `key`. Raises OtherRun where it is another one."""
    record = _stored_record(folder)
    if record and record.get("identity") != key:
        raise OtherRun(
            f"{folder} holds a run with other settings or other data. Give another --out, or --restart to replace it."
        )
    return bool(record) and bool(read_report(folder))


def read_report(folder: Path) -> dict[str, Any]:
    """report.json; {} where there is none, or none that can be used."""
    report = read_json(folder / REPORT)
    try:
        table(report)
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}
    return report


def write(
    folder: Path,
    tokenizer: Tokenizer,
    identifiers: Identifiers,
    material: Material,
    dataset: Dataset,
    record: dict[str, Any],
    judge: Judge | None,
) -> dict[str, Any]:
    """The files of a run, run.json last; returns what report.json holds."""
    latents = tokenizer.latents(material)
    if latents is not None:
        write_rows(folder / LATENTS, latents)
    save_tokenizer(tokenizer, folder / TOKENIZER)
    identifiers.write(folder)
    report = describe(tokenizer, identifiers, material, dataset, judge)
    write_json(folder / REPORT, report)
    write_json(folder / RECORD, {"kind": "tokenizer", **record, "about": identifiers.about})
    return report


def _reported(
    recipe: TokenizerRecipe, dataset: Dataset, folder: Path, material: Material, judge: Path | None
) -> dict[str, Any]:
    """The report of a finished run; taken anew where another judge is asked for than the one that it was taken with."""
    report = read_report(folder)
    if judge is None or report.get("neighbours", {}).get("of") == judge.name:
        return report
    tokenizer, identifiers, _, _ = open_tokenizer(folder)
    report = describe(tokenizer, identifiers, material, dataset, find_judge(judge, recipe, dataset, folder.parent))
    write_json(folder / REPORT, report)
    return report


def open_tokenizer(folder: Path) -> tuple[Tokenizer, Identifiers, TokenizerRecipe, dict[str, Any]]:
    """The tokenizer of a finished run, the identifiers it gave, its recipe and its record."""
    record = _stored_record(
        folder, "{} is the run of a model, and no run of a tokenizer. Name one of `seqscope tokenize`."
    )
    if not record:
        raise SeqscopeError(f"{folder} is no finished run of a tokenizer. Run `seqscope tokenize` first.")
    try:
        recipe = from_dict(dict(record["recipe"]), str(folder / RECORD))
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise SeqscopeError(f"{folder / RECORD} cannot be used ({error}). Run `seqscope tokenize` with --restart.")
    return load_tokenizer(folder / TOKENIZER), Identifiers.read(folder), recipe, record


def gather(
    recipe: TokenizerRecipe,
    dataset: Dataset,
    folder: Path,
    device: str,
    vectors: Vectors | None = None,
    fitted: bool = False,
) -> tuple[Material, dict[str, Any]]:
    """What the recipe's tokenizer reads of a dataset, and where it comes from. fitted: it reads words alone from now on."""
    needed = tokenizers()[recipe.family].needs_of(recipe.tokenizer)
    needs = [need for need in needed if not fitted or need not in WITHOUT_LOG]
    about: dict[str, Any] = {
        "tokenizer": recipe.name,
        "family": recipe.family,
        "dataset": dataset.info.name,
        "fingerprint": dataset.info.fingerprint,
        "collisions": recipe.collisions.policy,
    }
    if not len(dataset.training.values):
        for need, lacks in WITHOUT_LOG.items():
            if need in needs:
                raise SeqscopeError(
                    f"{recipe.title or recipe.name} {lacks}, and {dataset.path} is a catalogue without a log"
                )
    items = pq.read_table(dataset.path / "items.parquet").sort_by("item")
    material = Material(items, training=dataset.training)
    if "collaborative" in needs:
        run = teacher.find(recipe.tokenizer.teacher, folder.parent)
        rows, _, origin = teacher.table(run, dataset)
        try:
            rows, _, explained = teacher.fitted(
                rows, recipe.tokenizer.dim, recipe.tokenizer.scale, recipe.tokenizer.unit
            )
        except ValueError as error:
            raise UsageError(f"{recipe.name}: {error}") from None
        material = replace(material, collaborative=rows)
        about["teacher"] = {**origin, "kept": round(explained, 4)}
    if "vectors" in needs or vectors is not None:
        vectors_about: dict[str, Any] = {"source": "a file"}
        if vectors is None:
            from engine.text.embeddings import embed, understood

            where = devices.choose(device).type
            embedded = embed(dataset.path, recipe.words.encoder, recipe.words.fields or None, device=where)
            words, vectors = understood(embedded, dataset.path), embedded.vectors
            note(words.sentence(embedded.encoder.name, "set words.encoder=scratch"))
            vectors_about = {
                "source": recipe.words.encoder,
                "encoder": embedded.encoder.name,
                "unknown": round(words.share, 4),
            }
        try:
            material = replace(material, vectors=vectors)
        except ValueError as error:
            raise UsageError(f"item vectors: {error}") from None
        about["vectors"] = {**vectors_about, "dim": vectors.shape[1], "digest": _digest(vectors)}
    return material, about


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _stored_record(
    folder: Path, refusal: str = "{} holds a run of a model, not of a tokenizer. Give another --out."
) -> dict[str, Any]:
    """refusal: of a model's run, with {} for the folder."""
    try:
        record = load_json(folder / RECORD)
        wrong = fault(record, PROVENANCE)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError as error:
        record, wrong = None, str(error)
    if isinstance(record, dict) and record.get("kind") != "tokenizer":
        raise SeqscopeError(refusal.format(folder))
    if wrong:
        raise OtherRun(f"{folder / RECORD} cannot be used ({wrong}). Run `seqscope tokenize` with --restart.")
    return dict(record)


# --- a tokenizer in one safetensors file: its arrays, and as JSON in the metadata its family, settings and facts.


def save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    arrays, facts = tokenizer.parts()
    about = {"family": tokenizer.name, "config": asdict(tokenizer.config)}
    with replacing(path) as staged:
        save_file(
            {name: np.ascontiguousarray(array) for name, array in arrays.items()}
            or {"nothing": np.zeros(1, np.float32)},
            staged,
            metadata={"tokenizer": json.dumps(about | facts, ensure_ascii=False)},
        )


def load_tokenizer(path: Path) -> Tokenizer:
    """Raises SeqscopeError where the file is missing, damaged or of another version."""
    try:
        with safe_open(path, "numpy") as file:
            facts = json.loads((file.metadata() or {})["tokenizer"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        tokenizer = tokenizers()[facts.pop("family")]
        return tokenizer.restore(build_table(tokenizer.Config, facts.pop("config"), str(path)), arrays, facts)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError, UsageError) as error:
        expect_permitted(path)
        raise SeqscopeError(
            f"{path} is no tokenizer that this version reads ({first_line(error)[:200]}). Run `seqscope tokenize` again."
        )


# --- a fitted tokenizer's identifiers of another catalogue: the same codebooks, read by items that it never saw.


def transfer(
    source: Path,
    dataset: Dataset,
    folder: Path,
    *,
    device: str = "auto",
    vectors: Vectors | None = None,
    restart: bool = False,
    judge: Path | None = None,
) -> dict[str, Any]:
    """Give the items of `dataset` identifiers by the tokenizer of the finished run `source`, written as a run of its own.

    The vocabulary stays, so that what was trained with it can read the new identifiers. Items of the first catalogue (the same
    id and title) keep theirs; new ones stand beside them, and share one where the vocabulary has no place left. vectors:
    float32 [items, d] instead of the text encoder's. Returns what report.json holds. Raises SeqscopeError where the two do not
    fit.
    """
    with taken(folder, restart):
        began = time.monotonic()
        tokenizer, known, recipe, record = open_tokenizer(source)
        first_path, same_log = Path(record["dataset_path"]), record["fingerprint"] == dataset.info.fingerprint
        if same_log and (not first_path.exists() or _named(read_items(first_path)) == _named(read_items(dataset.path))):
            raise UsageError(f"{source} was fitted to {dataset.path} itself; its identifiers are there already")
        first = record.get("about", {}).get("vectors", {})
        if vectors is None and first.get("source") == "a file":
            raise UsageError(f"{source} was fitted to vectors from a file; give those of {dataset.path} with --vectors")
        if vectors is None and first:
            recipe = replace(recipe, words=replace(recipe.words, encoder=_encoder(recipe, record, source)))
        material, about = gather(recipe, dataset, folder, device, vectors, fitted=True)
        if first and about["vectors"]["dim"] != first["dim"]:
            raise UsageError(
                f"{source} reads vectors of {first['dim']} numbers, and these have {about['vectors']['dim']}"
            )
        origin = hashlib.sha256((source / TOKENIZER).read_bytes()).hexdigest()
        key = hashlib.sha256(f"{origin} {known.digest()} {material.digest()}".encode()).hexdigest()
        if finished(folder, key):
            return read_report(folder)
        judge_run = None if judge is None else Judge.of(judge, dataset)
        before = _before(first_path, record["fingerprint"], material.items)
        existing, new = np.flatnonzero(before >= 0), np.flatnonzero(before < 0)
        codes = np.empty((len(material), known.levels), np.int32)
        codes[existing] = known.codes[before[existing]]
        if len(new):
            codes[new] = extend(tokenizer, known, material.take(new), recipe.collisions)
        note(f"{len(existing):,} of {len(codes):,} items keep the identifiers they have in {record['dataset']}.")
        about |= {
            "fitted": {
                "run": source.name,
                "dataset": record["dataset"],
                "fingerprint": record["fingerprint"],
                "digest": origin,
            }
        }
        identifiers = Identifiers(codes, known.sizes, known.shared, known.names, about)
        entries = {
            "identity": key,
            **provenance(recipe.to_dict(), dataset, devices.choose(device)),
            "seconds": round(time.monotonic() - began, 1),
        }
        return write(folder, tokenizer, identifiers, material, dataset, entries, judge_run)


def _encoder(recipe: TokenizerRecipe, record: dict[str, Any], source: Path) -> str:
    """The text encoder that the tokenizer was fitted with: other vectors would mean nothing to it."""
    name = recipe.words.encoder
    if name not in ("auto", "scratch"):
        return name
    about, first = record["about"]["vectors"], Path(record["dataset_path"])
    if str(about.get("encoder", "")).startswith("minilm"):
        return "minilm"
    from engine.text.embeddings import embed

    words = cache_folder(first, None)
    for folder in sorted(path.parent for path in words.glob("scratch-*/scratch.json")):
        if _digest(embed(first, str(folder), recipe.words.fields or None).vectors) == about["digest"]:
            return str(folder)
    raise SeqscopeError(
        f"{source} reads words by an encoder that was trained on its own catalogue, and {words} does not hold it. "
        "Fit a tokenizer with words.encoder=minilm, or give --vectors."
    )


def _before(path: Path, fingerprint: str, items: pa.Table) -> npt.NDArray[np.int64]:
    """int64 [items]: each item's number in the first catalogue, by id and title; −1 where it is not there."""
    try:
        first: Dataset | None = Dataset(path)
    except SeqscopeError:
        first = None
    if first is None or first.info.fingerprint != fingerprint:
        note(f"{path} is not there any more, so every item counts as new.")
        return np.full(len(items), -1)
    numbers = {pair: row for row, pair in enumerate(_named(read_items(path)))}
    return np.array([numbers.get(pair, -1) for pair in _named(items)], np.int64)


def _named(items: pa.Table) -> list[tuple[str, str]]:
    return list(zip(map(str, items["item_id"].to_pylist()), map(str, items["title"].to_pylist()), strict=True))
