"""Write semantic IDs, a tokenizer's run or those of a file, as exports/<dataset>/identifiers/<name>/, as
engine.bundle.tokenizers reads it."""

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine import __version__
from engine.bundle.embedding_spaces import pca
from engine.bundle.manifest import Projection
from engine.bundle.tokenizers import (
    CODEBOOKS_MAP,
    LATENTS_MAP,
    About,
    CodeShape,
    Collisions,
    Figures,
    Plane,
    Teacher,
    Tokenization,
)
from engine.data.dataset import Dataset
from engine.data.identifiers import LEVELS, NONE, TABLE, Identifiers
from engine.errors import SeqscopeError, first_line
from engine.evaluation.record import dataset_of
from engine.export import umap_map
from engine.export.staging import TITLE, USERS, check_name_and_title, exported, provenance, read_back
from engine.files import expect_file, read_json
from engine.machine import now
from engine.runtime.zoo import IDENTIFIERS
from engine.tabular.json_rows import codes_of
from engine.tokenizers import kmeans
from engine.tokenizers.base import Tokenizer, Vectors, card_of
from engine.tokenizers.report import collisions
from engine.tokenizers.run import LATENTS, RECORD, REPORT, open_tokenizer, read_report

LATENT_BYTES = 2_000_000
"""What was quantised goes along up to this size."""
CLUSTERS = 4
"""Clusters of the codes of a level where the tokenizer itself forms none."""


def is_tokenizer(run: Path) -> bool:
    """Whether a run folder is one of `seqscope tokenize`."""
    report = read_json(run / RECORD)  # what is wrong with a damaged one the export of a model says
    return report.get("kind") == "tokenizer"


def export_tokenization(
    run: Path,
    out: Path,
    *,
    name: str | None = None,
    title: str | None = None,
    dataset: Path | None = None,
    users: int = USERS,
) -> Path:
    """Write the identifiers of `run` to `out`/identifiers/<name>; returns that folder.

    Raises SeqscopeError where the run is unfinished, where its dataset has changed, or where `out` belongs to other data.
    """
    tokenizer, table, recipe, record = open_tokenizer(run)
    name = name or run.name
    check_name_and_title(name, title)
    report = read_report(run)
    if not report:
        raise SeqscopeError(f"{run / REPORT} is missing or damaged. Run `seqscope tokenize` again, as before.")
    data = Dataset(dataset or dataset_of(run, record))
    if data.info.fingerprint != record["fingerprint"] or len(table) != data.num_items:
        raise SeqscopeError(
            f"{run} has identifiers of another state of {data.path}. Run `seqscope tokenize` again, with --restart."
        )
    target = out / IDENTIFIERS / name
    with exported(target, data, out, users) as folder:
        shown = (title or recipe.title or name)[:TITLE]
        about = _fill(folder, run, shown, tokenizer, table, record, report, data)
        exported_tokenizer = read_back(Tokenization, folder, about, data)
        _ = exported_tokenizer.codebooks, exported_tokenizer.latents, exported_tokenizer.learned
    return target


def _fill(
    folder: Path,
    run: Path,
    title: str,
    tokenizer: Tokenizer,
    table: Identifiers,
    record: dict[str, Any],
    report: dict[str, Any],
    data: Dataset,
) -> About:
    """Write every file but about.json, and return what goes into that."""
    shutil.copyfile(run / TABLE, folder / TABLE)
    books, columns, plane, codes_placed = tokenizer.codebooks(), None, None, None
    if books is not None:
        np.save(folder / "codebooks.npy", books.astype("<f4"), allow_pickle=False)
        columns = int(books.shape[2])
        plane = _write_plane(folder / "codes_map.parquet", tokenizer, books)
        codes_placed = _write_codebooks_map(folder / CODEBOOKS_MAP, tokenizer, books)
    latents, items_placed = None, None
    if (run / LATENTS).is_file() and (run / LATENTS).stat().st_size <= LATENT_BYTES:
        try:
            rows = np.load(run / LATENTS, allow_pickle=False).astype("<f4").reshape(len(table), -1)
        except (ValueError, EOFError) as error:
            raise SeqscopeError(
                f"{run / LATENTS} is damaged ({first_line(error)[:200]}). Run `seqscope tokenize` with --restart."
            ) from None
        np.save(folder / LATENTS, rows, allow_pickle=False)
        latents = int(rows.shape[1])
        if len(rows) > umap_map.NEIGHBOURS:
            which, xy, items_placed = umap_map.umap_map(rows, "euclidean")
            umap_map.write_map(folder / LATENTS_MAP, xy, item=which)
    made, card = record.get("about", {}), card_of(folder.name, tokenizer.name) or tokenizer.card
    return About(
        **provenance(folder, data),
        schema_version=1 if codes_placed is None and items_placed is None else 2,
        title=title,
        tokenizer=tokenizer.name,
        summary=card.summary,
        paper=card.paper,
        order=card.order,
        shape=shape_of(table, tokenizer.sizes),
        policy=str(report.get("policy") or table.about.get("collisions") or "unknown"),
        codebooks=columns,
        latents=latents,
        plane=plane,
        codebooks_map=codes_placed,
        latents_map=items_placed,
        unknown=made.get("vectors", {}).get("unknown"),
        teacher=made.get("teacher") and Teacher.model_validate(made["teacher"], extra="ignore"),
        figures=Figures.model_validate({"moved": 0, **report}, extra="ignore"),
        recipe=record["recipe"],
        command=record["command"],
        commit=record["commit"],
        device=record["device"],
        seconds=float(record["seconds"]),
        versions={key: str(value) for key, value in record["versions"].items()},
        started=record["started"],
    )


def shape_of(table: Identifiers, codebook_sizes: Sequence[int]) -> CodeShape:
    """codebook_sizes: codes of each level that say something of the item."""
    return CodeShape(
        levels=table.levels, sizes=list(table.sizes), names=list(table.names), shared=table.shared, ends=table.ends,
        own=list(codebook_sizes),
    )  # fmt: skip


def _write_plane(path: Path, tokenizer: Tokenizer, books: Vectors) -> Plane:
    """The vectors of each level's codes on their two principal axes, and clusters of them in the full space."""
    clusters = getattr(tokenizer.config, "clusters", None)
    count = int(clusters or CLUSTERS)
    shares, columns = [], []
    for level, size in enumerate(tokenizer.sizes):
        rows = books[level, :size]
        flat = pca(rows, "euclidean")
        number = min(count, len(rows))
        labels = kmeans.cluster(rows, number, *kmeans.limits(len(rows), number), np.random.default_rng(level))[1]
        shares.append(min(1.0, sum(flat.shares)) or 1.0)  # 0 where nothing varies
        columns.append(
            {
                "level": np.full(len(rows), level, np.int32),
                "code": np.arange(len(rows), dtype=np.int32),
                "x": flat.places[:, 0],
                "y": flat.places[:, 1],
                "cluster": labels.astype(np.int32),
            }
        )
    parts = {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}
    pq.write_table(pa.table(parts), path, compression="zstd")
    source = "constrained k-means, as LETTER's diversity term groups them" if clusters else "constrained k-means"
    return Plane(method="principal component analysis, per level", shares=shares, clusters=count, source=source)


def _write_codebooks_map(path: Path, tokenizer: Tokenizer, books: Vectors) -> Projection | None:
    """The vectors of all levels' codes on one plane; None where they are too few for it."""
    levels = np.repeat(np.arange(len(tokenizer.sizes)), tokenizer.sizes)
    if len(levels) <= umap_map.NEIGHBOURS:
        return None
    codes = np.concatenate([np.arange(size) for size in tokenizer.sizes])
    which, xy, how = umap_map.umap_map(books[levels, codes].astype(np.float32), "euclidean")
    umap_map.write_map(path, xy, level=levels[which], code=codes[which])
    return how


# --- from a file: {"17": ["<a_3>", "<b_90>", …], …}, as the programs of TIGER, LETTER and MiniOneRec write it


CODES = 1 << 16
"""Codes of a level that are read: pages count each of them, used or not."""
SPARE = 1_000_000
"""Bytes that a file may have beyond what its items can need."""
CODE = len('"<a_65535>", ')
"""Bytes of a code."""
ESCAPED = 12
"""Bytes of a character of an id at most: JSON may write it as two escapes."""


def export_index(
    path: Path, out: Path, *, dataset: Path, name: str | None = None, title: str | None = None, users: int = USERS
) -> Path:
    """Write the semantic IDs in `path` to `out`/identifiers/<name>; returns that folder.

    Raises SeqscopeError where the file does not say the codes of every item of the dataset.
    """
    name = name or path.name.split(".")[0].lower()
    check_name_and_title(name, title)
    data = Dataset(dataset)
    items = pq.read_table(data.path / "items.parquet", columns=["item", "item_id"]).sort_by("item")
    started = now()
    identifiers = read_index(path, items["item_id"].to_pylist())
    sharing = Collisions.model_validate(collisions(identifiers.codes), extra="ignore")
    target = out / IDENTIFIERS / name
    with exported(target, data, out, users) as folder:
        identifiers.write_table(folder)
        about = About(
            **provenance(folder, data),
            title=(title or path.name)[:TITLE],
            tokenizer="index",
            summary="Semantic IDs from a file; nothing is known of how they were made.",
            paper="",
            shape=shape_of(identifiers, identifiers.sizes),
            policy="keep",
            figures=Figures(before=sharing, after=sharing, moved=0),
            recipe={},
            command=shlex.join(["seqscope", *sys.argv[1:]]),
            commit=None,
            device="",
            seconds=0,
            versions={"seqscope": __version__},
            started=started,
        )
        read_back(Tokenization, folder, about, data)
    return target


def read_index(path: Path, item_ids: list[str]) -> Identifiers:
    """The semantic IDs of these items. Raises SeqscopeError where the file is none, or does not have all of them; and where it is
    larger than what these can need, as JSON takes many times its bytes while it is read."""
    most = SPARE + ESCAPED * sum(map(len, item_ids)) + len(item_ids) * LEVELS * CODE
    expect_file(path)
    if path.stat().st_size > most:
        raise SeqscopeError(
            f"{path} has {path.stat().st_size:,} bytes, and the semantic IDs of {len(item_ids):,} items have at most {most:,}"
        )
    try:
        index = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise SeqscopeError(f"{path} cannot be read ({error})") from None
    rows = [codes_of(index.get(item_id)) for item_id in item_ids] if isinstance(index, dict) else []
    missing = [item_id for item_id, codes in zip(item_ids, rows, strict=False) if not codes]
    if not rows or missing:
        words = (
            f"has no codes for {len(missing):,} of {len(rows):,} items, such as “{missing[0]}”"
            if missing
            else "is no index"
        )
        raise SeqscopeError(f'{path} {words}. It should say of every item id: {{"17": ["<a_3>", "<b_90>"], …}}.')
    levels = max(map(len, rows))
    if levels > LEVELS or max(map(max, rows)) >= CODES:
        raise SeqscopeError(f"{path}: at most {LEVELS} levels of {CODES:,} codes are read")
    codes = np.full((len(rows), levels), NONE, np.int32)
    for item, row in enumerate(rows):
        codes[item, : len(row)] = row
    return Identifiers(
        codes, tuple(int(size) for size in codes.max(0) + 1), names=tuple(f"level {n}" for n in range(1, levels + 1))
    )
