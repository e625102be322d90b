"""One JSON document to lines of JSON objects: a list of objects, or an object keyed by id (LETTER's and P5's item files)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from app.uploads.limits import UploadLimits
from app.uploads.reading import FileKind
from app.uploads.refusal import Refused
from app.uploads.source import blocks

_FORMS = {
    "catalogue": 'a list of objects, [{"id": …, "title": …}, …], or an object of objects by id, {"17": {"title": …}, …}',
    "log": 'a list of objects, [{"user": …, "item": …}, …], or an object of each user\'s items in order, {"anna": ["17", …], …}',
}


def write_lines(
    source: Path, target: Path, encoding: str, limits: UploadLimits, kind: FileKind, *, gzipped: bool
) -> None:
    """Writes `target`, an object per line in UTF-8. Raises Refused where the document is none of the forms that are read."""
    content = b"".join(blocks(source, gzipped, limits))
    try:
        text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding, "replace")
        document = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise Refused(
            f"The JSON document breaks off or is not valid: line {error.lineno}, column {error.colno}: {error.msg}."
        )
    except RecursionError:
        raise Refused("The JSON document is nested too deeply.")
    with target.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        for row in _rows(document, kind):
            entries = (f"{_json(key)}: {_json(value)}" for key, value in _entries(row))
            file.write("{" + ", ".join(entries) + "}\n")


class _Doubled(dict[str, Any]):
    """An object of JSON that has a key twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(reversed(pairs))  # the first one counts
        self.pairs = pairs


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    return plain if len(plain) == len(pairs) else _Doubled(pairs)


def _entries(row: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    return row.pairs if isinstance(row, _Doubled) else row.items()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _rows(document: Any, kind: FileKind) -> Iterator[dict[str, Any]]:
    entries: Iterable[tuple[Any, Any]] = enumerate(document, 1) if isinstance(document, list) else ()
    if isinstance(document, dict):
        entries = _entries(document)
    for key, value in entries:
        if isinstance(document, list) and isinstance(value, dict):
            yield value
        elif isinstance(document, dict) and kind == "catalogue" and isinstance(value, dict):
            named = ("key" if "id" in value else "id", key)
            yield _Doubled([named, *value.pairs]) if isinstance(value, _Doubled) else {named[0]: key, **value}
        elif isinstance(document, dict) and kind == "catalogue" and isinstance(value, str):
            yield {"id": key, "title": value}
        elif isinstance(document, dict) and kind == "log" and isinstance(value, list):
            yield from ({"user": key, "item": item} for item in value)
        else:
            raise Refused(f"As one JSON document, a {kind} is {_FORMS[kind]}. The entry “{str(key)[:60]}” is neither.")
