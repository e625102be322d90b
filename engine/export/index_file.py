"""Semantic IDs from a file, as the programs of TIGER, LETTER and MiniOneRec write it: {"17": ["<a_3>", "<b_90>", …], …}.

Write them as exports/<dataset>/identifiers/<name>/, as engine.bundle.tokenizers reads it.
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from engine import __version__
from engine.bundle.tokenizers import ABOUT, About, Figures, Tokenization
from engine.data.dataset import Dataset
from engine.data.identifiers import LEVELS, NONE, Identifiers
from engine.errors import SeqscopeError
from engine.export.staging import TITLE, USERS, check_name_and_title, exported, file_of
from engine.export.tokenization import collisions, shape_of
from engine.runtime.bundle import Catalogue
from engine.runtime.zoo import IDENTIFIERS
from engine.tabular.rows import codes_of
from engine.tokenizers import report

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
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    identifiers = read_index(path, items["item_id"].to_pylist())
    sharing = collisions(report.collisions(identifiers.codes))
    target = out / IDENTIFIERS / name
    with exported(target, data, out, users) as folder:
        identifiers.write_table(folder)
        about = About(
            name=name,
            title=(title or path.name)[:TITLE],
            tokenizer="index",
            summary="Semantic IDs from a file; nothing is known of how they were made.",
            paper="",
            dataset=data.info.name,
            fingerprint=data.info.fingerprint,
            num_items=data.num_items,
            shape=shape_of(identifiers, identifiers.sizes),
            policy="keep",
            figures=Figures(before=sharing, after=sharing, moved=0),
            recipe={},
            command="seqscope " + " ".join(sys.argv[1:]),
            commit=None,
            device="",
            seconds=0,
            versions={"seqscope": __version__},
            started=started,
            created=started,
            created_by=f"seqscope {__version__}",
            files={file.name: file_of(file) for file in sorted(folder.iterdir())},
        )
        (folder / ABOUT).write_text(about.model_dump_json(indent=1) + "\n", "utf-8")
        # the reader has the last word
        Tokenization.open(folder, Catalogue(data.info.name, data.info.fingerprint, data.num_items)).warm()
    return target


def read_index(path: Path, item_ids: list[str]) -> Identifiers:
    """The semantic IDs of these items. Raises SeqscopeError where the file is none, or does not have all of them; and where it is
    larger than what these can need, as JSON takes many times its bytes while it is read."""
    most = SPARE + ESCAPED * sum(map(len, item_ids)) + len(item_ids) * LEVELS * CODE
    if path.is_file() and path.stat().st_size > most:
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
