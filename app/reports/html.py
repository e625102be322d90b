"""A report as one HTML file that opens anywhere: it asks for nothing, and nothing in it can run that was not put there.

Everything is inlined, and the page's own rules (Content-Security-Policy) forbid the rest: no request at all, no style and no
script but those whose hashes stand in them. Foreign text is escaped by Jinja, in figures by `svg` and `app.text.label`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from pathlib import Path
from typing import Any, Literal

import jinja2
from markupsafe import Markup

from app.reports import words
from app.reports.document import Report
from app.reports.figures import Figure, figures, group_colours
from app.reports.tables import tables, titled
from app.text import clean, percent, short
from engine.runtime import judge

Kind = Literal["static", "interactive"]
KINDS: tuple[Kind, ...] = ("static", "interactive")
MAX_BYTES = 6_000_000
_HERE = Path(__file__).parent / "templates"
_ROWS = 200  # of a table in the page; the CSV has all
# plotly.js brings the style of geographic maps along, unless an element of this name says that it is there already.
_STYLED = re.compile(r'getElementById\("([0-9a-f]{64})"\)')


def render(
    report: Report, kind: Kind = "static", *, scheme: Literal["", "light", "dark"] = "", framed: bool = False
) -> bytes:
    """kind: figures as SVG alone, or with plotly.js to point at and zoom. scheme: "" follows that of the reader's machine.

    framed: the page will stand in another one (as an iframe's srcdoc), where its links within it need to be told so.
    """
    drawn = figures(report)
    style = _read("report.css")
    scripts, shapes = [], ""
    if kind == "interactive":
        scripts, shapes = [_plotly(), _read("report.js")], _shapes(drawn)
    page = (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            scheme=scheme,
            framed=framed,
            policy=_policy(style, scripts, framed),
            style=Markup(style),
            scripts=[Markup(script) for script in scripts],
            unneeded=_STYLED.findall(scripts[0])[:1] if scripts else [],
            shapes=Markup(shapes),
            figures={figure.key: figure for figure in drawn},
            tables=tables(report),
            parts=parts(report),
            called=words.titles(report),
            names=titled(report),
            times=words.shared(report.lists or []),
            words=words,
            beyond_accuracy=list(judge.BEYOND.values()),
            most=_ROWS,
        )
    )
    return page.encode("utf-8")


def parts(report: Report) -> list[tuple[str, str]]:
    """(anchor, heading) of what the report has, in its order."""
    headings = {
        "history": ("History", report.history),
        "lists": ("What each model recommends", report.lists),
        "what-ifs": ("What if the history had been another?", report.what_ifs),
        "effects": ("Why this item?", report.effects),
        "overlap": ("How much do they agree?", report.overlap),
        "attention": ("What they looked at", report.attention),
        "codes": ("Codes of the items", report.codes),
        "graph": ("Paths through people and items", report.graph),
        "map": ("Where the items lie", report.map),
        "metrics": ("How good the models are", report.metrics),
    }
    return [(part, title) for part, (title, found) in headings.items() if found is not None and found != []]


def _shapes(drawn: list[Figure]) -> str:
    """The figures for Plotly, as text that cannot end the element it stands in."""
    found = {}
    for figure in drawn:
        made = figure.live()
        made.layout.template = None
        found[figure.key] = json.loads(made.to_json())
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _policy(style: str, scripts: list[str], framed: bool) -> str:
    base = "base-uri about:" if framed else "base-uri 'none'"
    rules = [
        "default-src 'none'",
        f"style-src {_hash(style)}",
        "img-src data:",
        base,
        "form-action 'none'",
    ]
    if (
        scripts
    ):  # plotly.js keeps its rules in an empty style element, sets style attributes, and makes pictures of figures
        rules[1] += f" {_hash('')}; style-src-attr 'unsafe-inline'"
        rules[2] += " blob:"
        rules.append(f"script-src {' '.join(map(_hash, scripts))}")
    return "; ".join(rules)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@functools.lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "clean": clean,
        "short": lambda text, limit: short(clean(text), limit),
        "told": told,
        "percent": percent,
        "zip": zip,
    }
    found.globals |= {"palette": group_colours, "linked": linked}
    return found


@functools.cache
def _read(name: str) -> str:
    return (_HERE / name).read_text("utf-8").strip()


@functools.lru_cache(maxsize=1)
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("\r\n", "\n").strip()


def linked(address: str) -> bool:
    """Whether an address is one that a reader may be led to."""
    return address.startswith(("http://", "https://"))


def told(value: Any) -> str:
    """A table's cell for people."""
    if value is None or value == "":
        return "–"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) >= 1_000 or value == int(value) else f"{value:.4f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return "; ".join(map(str, value)) or "–"
    return clean(value, 300)
