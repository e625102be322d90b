"""Files that were bent at random: there is always a result or one message, and the sums are right."""

import gzip
import json
import os
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import Refused
from engine.tabular.reading import ENCODINGS, MB, QUOTES, ROLES, FileKind, Guess
from tests.uploads.conftest import ITEMS, LOG, Desk, adds_up

ROUNDS = int(os.environ.get("SEQSCOPE_FUZZ_ROUNDS", "4"))  # mutations of each file
PIECES = [
    b'"', b"'", b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b"\x00", b"\x01", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xe9",
    b"{", b"}", b"[", b"]", b"\\", b"=1+1", b"\x1b[31m", b"\xed\xa0\x80", b"\xf0\x9f\x8e\xac", b"\xb1\xe2", b" " * 50,
    b"a" * 3000, b"1e999", b"-", b"nan", b"NULL", b"%", b"%Y",
    b"''; DROP TABLE rows; --", b"\xc2\x85", b"\xe2\x80\xa8", b"\x1a", b"\x7f",
]  # fmt: skip


def bent(content: bytes, chance: random.Random) -> bytes:
    """The content after a few changes: pieces put in, taken out, repeated, cut off."""
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(content) + 1)
        kind = chance.randrange(6)
        if kind == 0:
            content = content[:at] + chance.choice(PIECES) + content[at:]
        elif kind == 1:
            content = content[:at] + content[at + chance.randint(1, 30) :]
        elif kind == 2:
            content = content[:at] + bytes(chance.randrange(256) for _ in range(chance.randint(1, 5))) + content[at:]
        elif kind == 3:
            content = (
                content[:at] + content[max(0, at - chance.randint(1, 200)) : at] * chance.randint(1, 9) + content[at:]
            )
        elif kind == 4 and chance.random() < 0.3:
            content = content[:at]
        else:
            content = content.replace(chance.choice([b",", b"\n", b"i"]), chance.choice(PIECES), chance.randint(1, 5))
    return content or b"x"


def survives(desk: Desk, content: bytes, what: FileKind, chance: random.Random) -> bool:
    """Guesses and checks; whether both came to a result."""
    fixed: dict[str, str] = {}
    if chance.random() < 0.3:
        fixed["encoding"] = chance.choice(list(ENCODINGS))
    if chance.random() < 0.3:
        fixed["quote"] = chance.choice(list(QUOTES))
    if chance.random() < 0.2:
        fixed["delimiter"] = chance.choice([",", ";", "\t", "|", "::", " ", "a", '"', "\\", "^", "é"])
    if chance.random() < 0.2:
        fixed["header"] = chance.choice(["yes", "no"])
    if chance.random() < 0.2:
        fixed["time"] = chance.choice(["s", "ns", "iso", "%d.%m.%Y", "%Y", "x"])
    desk.readings.clear()
    try:
        guess = desk.guess(content, what, fixed)
        Guess.model_validate_json(guess.model_dump_json())
        if guess.stop:
            return False
        columns = [column.name for column in guess.reading.columns]
        for role in ROLES[what][:2]:
            if guess.reading.column(role) is None and chance.random() < 0.7:
                desk.readings[what] = desk.readings[what].with_role(chance.choice(columns), role)
        checked = desk.check()
    except Refused as refused:
        message = str(refused)
        assert "Traceback" not in message and message.rstrip().endswith((".", "?", "LIST", "list.")), message
        return False
    adds_up(checked)
    assert sum(checked.kept.values()) == 0 or checked.stopped or (desk.last / "clean").is_dir()
    return True


def starts() -> dict[str, tuple[FileKind, bytes]]:
    rows = [{"id": n, "title": f"T {n}", "tags": ["a", "b"], "more": {"x": [n]}} for n in range(40)]
    quoted = "item_id,title,text\n" + "".join(f'{n},"A ""title"", {n}","one\ntwo\n"\n' for n in range(30))
    return {
        "items": ("catalogue", (ITEMS * 5).encode()),
        "quoted": ("catalogue", quoted.encode()),
        "korean": ("catalogue", ("id;title\n" + "".join(f"{n};기생충 {n}\n" for n in range(40))).encode("cp949")),
        "wide": ("catalogue", ("id;title\n" + "".join(f"{n};Été {n}\n" for n in range(40))).encode("utf-16")),
        "json": ("catalogue", "\n".join(json.dumps(row) for row in rows).encode()),
        "log": ("log", LOG.encode()),
        "dates": ("log", ("user,item,date\n" + "".join(f"u{n % 5},i{n},{n % 28 + 1}/03/2024\n" for n in range(60))).encode()),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(starts()))
def test_bent_texts(desk: Desk, name: str) -> None:
    what, content = starts()[name]
    chance = random.Random(name)
    came_through = 0
    for _ in range(ROUNDS):
        data = bent(content, chance)
        came_through += survives(desk, gzip.compress(data) if chance.random() < 0.1 else data, what, chance)
    assert came_through >= max(1, ROUNDS // 6)  # most changes leave something that can be read


def test_bytes_without_any_sense(desk: Desk) -> None:
    chance = random.Random(6)
    for size in (1, 2, 3, 10, 100, 5_000):
        for what in ROLES:
            survives(desk, chance.randbytes(size), what, chance)  # type: ignore[arg-type]
            survives(desk, bytes(chance.choice(b'",;\n\r\t{}[]a1 ') for _ in range(size)), what, chance)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [
    [None, "x", "\x00", "=1"], [1, 2, None, 3], [1.5, float("nan"), float("inf"), -0.0], [True, False, None, True],
    [b"\xff\xfe", b"ok", None, b""], [{"a": 1}, {"a": None}, None, {"a": 2}], [["a", None], [], None, ["[b"]],
    [[["x"]], [["y", "z"]], None, []], [2**62, -(2**62), 0, None],
])  # fmt: skip
def test_columns_of_parquet_of_every_type(desk: Desk, tmp_path: Path, values: list[object]) -> None:
    table = pa.table({"item_id": ["a", "b", "c", "d"], "title": ["A", "B", "C", "D"], 'odd "column"\'': values})
    pq.write_table(table, tmp_path / "x")
    content = (tmp_path / "x").read_bytes()
    try:
        desk.guess(content)
        adds_up(desk.check())
    except Refused as refused:
        assert b"\xff\xfe" in values or "cannot be read" in str(refused)


def test_a_small_memory_is_enough_or_ends_in_words(desk: Desk) -> None:
    desk.limits = desk.limits.model_copy(update={"memory": 256 * MB})
    rows = "".join(f'{n},"Some title, with words {n}",{"text " * 30}\n' for n in range(40_000))
    checked = desk.check("id,title,text\n" + rows)
    assert checked.kept["catalogue"] == 40_000 and not checked.counts
