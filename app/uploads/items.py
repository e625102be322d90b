"""What can be wrong with the rows of a catalogue, as SQL over the table `rows`; and the table `items` of those that are kept."""

from __future__ import annotations

import duckdb

from app.uploads.limits import UploadLimits
from engine.tabular.database import sql, value
from engine.tabular.findings import Cell, Findings
from engine.tabular.problems import CONTROLS, MAX_TITLE, Rule, id_rules
from engine.tabular.reading import FileKind, Reading

_TAGS = (
    "p|br|div|span|b|i|u|em|strong|ul|ol|li|a|h[1-6]|table|tbody|thead|tr|td|th|img|font|center|hr|small|sup|sub|blockquote|pre|"
    "code|iframe|section|article"
)
TAG = rf"(?i)</?(?:{_TAGS})(?:\s[^<>]*)?/?>"
SCRIPT = r"(?is)<script\b.*?</script\s*>|<style\b.*?</style\s*>|<!--.*?-->"
ENTITIES = {"&nbsp;": " ", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&apos;": "'", "&amp;": "&"}
_CELL_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f␀␁]"  # a description may have lines
YES, NO = ("1", "true", "yes"), ("0", "false", "no")
"""What a column of flags says."""
_NONE = ("nan", "null", "none", "na", "n/a", "#n/a", "<na>", "undefined")  # as programs write that there is no value
_NUMBER = r"[-+]?\d{1,18}([.,]\d{1,15})?"
_MIXED = 0.2  # share of texts up to which a column counts as one of numbers


def check_items(con: duckdb.DuckDBPyConnection, reading: Reading, findings: Findings, limits: UploadLimits) -> None:
    """Adds what is wrong to `findings`; makes the table `good` (line) of the rows that are kept."""
    cell_of = {column.name: f"c{number}" for number, column in enumerate(reading.columns)}
    item, title = reading.column("item_id"), reading.column("title")
    assert item is not None and title is not None
    check_ids(findings, "catalogue", "id", cell_of[item.name], item.name)
    _texts(con, reading, cell_of, findings, limits)
    _titles(cell_of[title.name], title.name, findings)
    _repeated(con, reading, cell_of[item.name], item.name, findings)


def check_ids(findings: Findings, file: FileKind, role: str, cell: str, column: str) -> None:
    missing = Rule(f"{role}_nan", f"lower({cell}) IN ({', '.join(map(sql, _NONE))})")
    for problem, bad in (*id_rules(role, cell), missing):
        findings.insert(file, problem, f"SELECT line, {cell} AS value FROM rows WHERE {bad}", column)
    foreign = f"NOT regexp_full_match({cell}, '[\\x00-\\x7f]*')"
    different = f"SELECT min(line) AS line, {cell} AS value FROM rows WHERE {foreign} GROUP BY ALL"
    twins = f"SELECT * FROM ({different}) QUALIFY count(*) OVER (PARTITION BY nfc_normalize(value)) > 1"
    findings.insert(file, f"{role}_twins", twins, column)


def _titles(cell: str, column: str, findings: Findings) -> None:
    rules = (
        ("title_missing", f"{cell} IS NULL"),
        ("title_long", f"length({cell}) > {MAX_TITLE}"),
        ("title_control", f"regexp_matches({cell}, '{CONTROLS}')"),
    )
    for problem, bad in rules:
        findings.insert("catalogue", problem, f"SELECT line, {cell} AS value FROM rows WHERE {bad}", column)


def _texts(
    con: duckdb.DuckDBPyConnection, reading: Reading, cell_of: dict[str, str], findings: Findings, limits: UploadLimits
) -> None:
    undecodable = findings.lines("catalogue", "undecodable")
    known = ", ".join(map(sql, (*YES, *NO)))
    broken: dict[str, list[Cell]] = {
        name: [] for name in ("replaced", "flag_odd", "cell_control", "cell_long", "html", "mixed")
    }
    for column in reading.columns:
        cell = cell_of[column.name]

        def rule(problem: str, bad: str, cell: str = cell, name: str = column.name) -> None:
            broken[problem].append(Cell(name, cell, bad))

        if column.role in ("title", "text", "list"):
            rule("replaced", f"contains({cell}, '�') AND line NOT IN ({undecodable})")
        if column.role == "flag":
            rule("flag_odd", f"lower({cell}) NOT IN ({known})")
        if column.role in ("text", "list"):
            rule("cell_control", f"regexp_matches({cell}, '{_CELL_CONTROLS}')")
            rule("cell_long", f"length({cell}) > {limits.cell}")
        if column.role == "text":
            rule("html", has_html(cell))
            number = f"regexp_full_match({cell}, '{_NUMBER}')"
            count = f"count(*) FILTER (NOT {number})"
            query = f"SELECT CASE WHEN {count} <= {_MIXED} * count({cell}) THEN {count} END FROM rows WHERE {cell} IS NOT NULL"
            if value(con, query):
                rule("mixed", f"{cell} IS NOT NULL AND NOT {number}")
    for problem, cells in broken.items():
        note = f"{limits.cell:,} characters are kept." if problem == "cell_long" else ""
        findings.insert_cells("catalogue", problem, cells, note)


def has_html(cell: str) -> str:
    """SQL: there are tags or entities of HTML in a text."""
    entities = " OR ".join(f"contains({cell}, {sql(entity)})" for entity in ENTITIES)
    tags = " OR ".join(f"regexp_matches({cell}, {sql(form)})" for form in (TAG, SCRIPT))
    return f"((contains({cell}, '<') AND ({tags})) OR (contains({cell}, '&') AND ({entities})))"


def without_html(cell: str) -> str:
    """SQL: a text without its tags, with the characters that its entities stand for."""
    text = f"regexp_replace(regexp_replace({cell}, {sql(SCRIPT)}, ' ', 'g'), {sql(TAG)}, ' ', 'g')"
    for entity, sign in ENTITIES.items():
        text = f"replace({text}, {sql(entity)}, {sql(sign)})"
    return f"trim(regexp_replace({text}, '  +', ' ', 'g'))"


def _repeated(con: duckdb.DuckDBPyConnection, reading: Reading, cell: str, column: str, findings: Findings) -> None:
    """Further rows of an item: the first that is good otherwise is kept."""
    con.execute(
        f"CREATE OR REPLACE TABLE good AS SELECT line FROM rows WHERE line NOT IN ({findings.bad_lines('catalogue')})"
    )
    cells = ", ".join(f"c{number}" for number, used in enumerate(reading.columns) if used.role != "skip")
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE again AS SELECT line, {cell} AS value, "
        "content IS NOT DISTINCT FROM first_value(content) OVER same AS alike FROM ("
        f"SELECT *, row({cells}) AS content FROM rows SEMI JOIN good USING (line) WHERE {cell} IN ("
        f"SELECT {cell} FROM rows SEMI JOIN good USING (line) GROUP BY {cell} HAVING count(*) > 1)"
        f") WINDOW same AS (PARTITION BY {cell} ORDER BY line) QUALIFY row_number() OVER same > 1"
    )
    findings.insert("catalogue", "id_again", "SELECT line, value FROM again WHERE NOT alike", column)
    findings.insert("catalogue", "row_again", "SELECT line, value FROM again WHERE alike", column)
    con.execute("DELETE FROM good WHERE line IN (SELECT line FROM again); DROP TABLE again")
