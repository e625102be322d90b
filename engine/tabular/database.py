"""DuckDB as tables are read with it: bounded memory, a scratch folder of its own, nothing from the network."""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow.parquet as pq

from engine.errors import Refused, SeqscopeError, first_line
from engine.tabular.reading import MB, Limits

_FOR_PYTHON = 128 * MB  # of the memory that a step may take
_LEFT_OUT = "seqscope_left_out"
TOO_LARGE = (
    "Reading the file takes more memory or disk than one upload may have. Upload a part of it, or leave out long texts."
)


def settings(memory: str, threads: int, spill: Path | None = None) -> dict[str, str | int | float | bool | list[str]]:
    """A configuration of DuckDB with bounded memory, a scratch folder of its own (None: there is none), and nothing from the
    network."""
    return {
        "memory_limit": memory,
        "threads": threads,
        "temp_directory": "" if spill is None else str(spill),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        # A Python variable must never stand in for a table that a query names.
        "python_enable_replacements": False,
    }


@contextlib.contextmanager
def connect(work: Path, limits: Limits, *, readable: Sequence[Path] = ()) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database for files of somebody else: in memory, with nothing of the machine in reach but `work`, which takes what memory
    cannot hold. readable: files beside it."""
    memory = f"{max(96, (limits.memory - _FOR_PYTHON) // MB)}MB"
    most = {"max_temp_directory_size": f"{limits.disk // MB}MB"}
    con = duckdb.connect(":memory:", config=settings(memory, limits.threads, work / "spill") | most)
    try:
        con.execute("SET TimeZone = 'UTC'")  # the zone of this machine must not decide what a date means
        con.execute(f"SET allowed_directories = [{sql(f'{work}/')}]")
        names = [name for path in readable for name in (sql(str(path)), sql_path(path))]
        con.execute(f"SET allowed_paths = [{', '.join(names)}]")
        con.execute("SET enable_external_access = false")
        con.execute("SET lock_configuration = true")
        with _interruptible():
            yield con
    except duckdb.OutOfMemoryException:
        raise Refused(TOO_LARGE)
    finally:
        con.close()


@contextlib.contextmanager
def connect_file(folder: Path, *, memory: str, threads: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database for one's own files, in `folder`, which also takes what does not fit into `memory`; errors become messages."""
    try:
        con = duckdb.connect(str(folder / "import.duckdb"), config=settings(memory, threads, folder / "spill"))
    except duckdb.IOException as error:
        raise SeqscopeError(
            f"DuckDB cannot start in {folder} ({first_line(error)}). Check its permissions and the free space."
        )
    except duckdb.Error as error:
        raise SeqscopeError(f"DuckDB cannot start with --memory {memory} ({first_line(error)}). Write it as 4GB.")
    try:
        con.execute("SET TimeZone = 'UTC'")
        with _interruptible():
            yield con
    except duckdb.OutOfMemoryException as error:
        raise SeqscopeError(
            f"the import needs more memory or disk than it may use ({first_line(error)}). Raise --memory from {memory}."
        )
    except duckdb.Error as error:
        raise SeqscopeError(f"DuckDB could not carry out the import: {first_line(error)}")
    finally:
        con.close()


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """KeyboardInterrupt where a query was interrupted by one, which DuckDB makes a RuntimeError of."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


def sql(text: str) -> str:
    """`text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def sql_path(path: Path) -> str:
    """`path` as an SQL string literal that means this file, whatever wildcards its name contains."""
    return sql(re.sub(r"[*?\[]", lambda match: f"[{match[0]}]", str(path)))


def write_parquet(
    con: duckdb.DuckDBPyConnection, query: str, path: Path, left_out: Mapping[str, int] = MappingProxyType({})
) -> None:
    """left_out: reason → rows that the table lacks, which the file says of itself (`rows_left_out`)."""
    notes = f", KV_METADATA {{{_LEFT_OUT}: {sql(json.dumps(left_out))}}}" if left_out else ""
    con.execute(f"COPY ({query}) TO {sql(str(path))} (FORMAT parquet, COMPRESSION zstd{notes})")


def rows_left_out(path: Path) -> dict[str, int]:
    """Reason → rows that were left out before the file was written, where it says so; it need not be Parquet."""
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            return {}
    try:
        note = json.loads((pq.read_schema(path).metadata or {}).get(_LEFT_OUT.encode(), b"{}"))
    except ValueError:
        return {}
    rows = note.items() if isinstance(note, dict) else ()  # anybody may write one
    return {reason: number for reason, number in rows if isinstance(number, int) and number > 0}


def value(con: duckdb.DuckDBPyConnection, query: str) -> int:
    """The one number that a query finds; 0 for NULL."""
    return int(con.execute(query).fetchall()[0][0] or 0)


BLANKS = " \t\r\n\v\f\u00a0\u200b\ufeff"
"""What is taken off both ends of a field."""
SQL_BLANKS = " || ".join(f"chr({ord(c)})" for c in BLANKS)
_ENDS = r"'^[\s\x{0b}\x{a0}\x{200b}\x{feff}]|[\s\x{0b}\x{a0}\x{200b}\x{feff}]$'"
PICTURES = "␀␁"
"""What stands for NUL and SOH, which no text of a table has."""


def trimmed(field: str) -> str:
    """SQL: a field without blanks at its ends, NULL where nothing is left."""
    # Few fields have any, and the expression looks at the ends alone: trim() with signs of its own costs three times as much.
    return f"nullif(CASE WHEN regexp_matches({field}, {_ENDS}) THEN trim({field}, {SQL_BLANKS}) ELSE {field} END, '')"


_COMMA = r"[-+]?(\d+,(\d{1,2}|\d{4,})|\d{4,},\d{3})"
"""A number with a comma before its fraction; a comma that may separate thousands is none."""


def number(cell: str) -> str:
    """SQL: the number that a text is, with a point or a comma before its fraction; NULL where it is none."""
    comma = f"CASE WHEN regexp_full_match({cell}, {sql(_COMMA)}) THEN replace({cell}, ',', '.') END"
    return f"coalesce(try_cast({cell} AS DOUBLE), try_cast({comma} AS DOUBLE))"


def pictured(cell: str) -> str:
    """SQL: what a text of JSON or Parquet holds that plain lines do not: NUL and SOH as their pictures."""
    return f"translate({cell}, chr(0) || chr(1), {sql(PICTURES)})"


# --- HTML in the texts of a catalogue

_TAGS = (
    "p|br|div|span|b|i|u|em|strong|ul|ol|li|a|h[1-6]|table|tbody|thead|tr|td|th|img|font|center|hr|small|sup|sub|blockquote|pre|"
    "code|iframe|section|article"
)
_TAG = rf"(?i)</?(?:{_TAGS})(?:\s[^<>]*)?/?>"
_SCRIPT = r"(?is)<script\b.*?</script\s*>|<style\b.*?</style\s*>|<!--.*?-->"
_ENTITIES = {"&nbsp;": " ", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&apos;": "'", "&amp;": "&"}


def has_html(cell: str) -> str:
    """SQL: there are tags or entities of HTML in a text."""
    entities = " OR ".join(f"contains({cell}, {sql(entity)})" for entity in _ENTITIES)
    tags = " OR ".join(f"regexp_matches({cell}, {sql(form)})" for form in (_TAG, _SCRIPT))
    return f"((contains({cell}, '<') AND ({tags})) OR (contains({cell}, '&') AND ({entities})))"


def without_html(cell: str) -> str:
    """SQL: a text without its tags, with the characters that its entities stand for."""
    text = f"regexp_replace(regexp_replace({cell}, {sql(_SCRIPT)}, ' ', 'g'), {sql(_TAG)}, ' ', 'g')"
    for entity, sign in _ENTITIES.items():
        text = f"replace({text}, {sql(entity)}, {sql(sign)})"
    return f"trim(regexp_replace({text}, '  +', ' ', 'g'))"
