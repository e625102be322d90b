"""A study's file, as engine.runtime.studies reads it."""

from __future__ import annotations

import json
from pathlib import Path

from engine.errors import SeqscopeError
from engine.files import replacing
from engine.runtime.studies import LIMIT, Study


def write(study: Study, folder: Path) -> Path:
    """Into `folder`, a dataset's studies/. The ranks of a run stand on one line."""
    raw = study.model_dump(mode="json")
    lines: dict[str, str] = {}
    for variant in raw["variants"]:
        for outcome in variant["outcomes"]:
            if outcome["ranks"] is not None:
                key = f"\u0000{len(lines)}\u0000"  # no text of a study has a control character at either end
                numbers = [int(rank) if rank == int(rank) else rank for rank in outcome["ranks"]]
                lines[json.dumps(key)] = json.dumps(numbers, separators=(",", ":"))
                outcome["ranks"] = key
    text = json.dumps(raw, indent=1, ensure_ascii=False, allow_nan=False)
    for key, line in lines.items():
        text = text.replace(key, line, 1)
    size = len(text.encode())
    if size > LIMIT:
        raise SeqscopeError(f"{study.name}: {size:,} bytes, more than the {LIMIT:,} of one study")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{study.name}.json"
    with replacing(path) as staged:
        staged.write_text(text + "\n", "utf-8")
    return path
