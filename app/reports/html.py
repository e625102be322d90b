"""A report as one HTML file that opens anywhere: it asks for nothing, and nothing in it can run that was not put there.

Everything is inlined, and the page's own rules (Content-Security-Policy) forbid the rest: no request at all, no style and no
script but those whose hashes stand in them. Foreign text is escaped by Jinja, in figures by `svg` and `app.text.label`.
"""

import base64
import functools
import hashlib
import importlib.util
import json
import re
from pathlib import Path
from typing import Any, Literal

import jinja2
from markupsafe import Markup
from plotly.utils import PlotlyJSONEncoder

from app.reports import provenance
from app.reports.blocks import Figure, Table
from app.reports.document import Report
from app.reports.sections import figures, sections
from app.text import clean
from engine.runtime import judge

Kind = Literal["static", "interactive"]
KINDS: tuple[Kind, ...] = ("static", "interactive")
_HERE = Path(__file__).parent / "templates"
_ROWS = 200  # of a table in the page; the CSV has all
# plotly.js brings the style of geographic maps along, unless an element of this name says that it is there already.
_STYLED = re.compile(r'getElementById\("([0-9a-f]{64})"\)')


def render(
    report: Report, kind: Kind = "static", *, scheme: Literal["", "light", "dark"] = "", framed: bool = False
) -> bytes:
    """kind: figures as SVG alone, or with plotly.js to point at and zoom. scheme: "" follows that of the reader's machine.

    framed: the page will stand in another one (as an iframe's srcdoc), where its links within it need to be told so. Titles are
    buttons there, which that page may listen to.
    """
    shown = sections(report)
    style = _typeface() + _read("report.css") + (_BUTTONS if framed else "")
    scripts, shapes = [], ""
    if kind == "interactive":
        scripts, shapes = [_plotly(), _read("report.js")], _shapes(figures(shown))
    page = (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            head=provenance.head(report),
            sections=shown,
            scheme=scheme,
            framed=framed,
            policy=_policy(style, scripts, framed),
            style=Markup(style),
            scripts=[Markup(script) for script in scripts],
            unneeded=_STYLED.findall(scripts[0])[:1] if scripts else [],
            shapes=Markup(shapes),
            most=_ROWS,
        )
    )
    return page.encode("utf-8")


_BUTTONS = """
[data-item] { all: unset; cursor: pointer; }
[data-item]:hover, [data-item]:focus-visible { text-decoration: underline; }
[data-item]:focus-visible { outline: 2px solid; outline-offset: 2px; }"""


def _shapes(drawn: list[Figure]) -> str:
    """The figures for Plotly, as text that cannot end the element it stands in."""
    shapes = {}
    for figure in drawn:
        shape = json.loads(PlotlyJSONEncoder().encode(figure.live()))
        shape["layout"].pop("template", None)
        shapes[figure.key] = shape
    text = json.dumps(shapes, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _policy(style: str, scripts: list[str], framed: bool) -> str:
    base = "base-uri about:" if framed else "base-uri 'none'"
    rules = [
        "default-src 'none'",
        f"style-src {_hash(style)}",
        "img-src data:",
        "font-src data:",
        base,
        "form-action 'none'",
    ]
    # plotly.js keeps its rules in an empty style element, sets style attributes, and makes pictures of figures
    if scripts:
        rules[1] += f" {_hash('')}; style-src-attr 'unsafe-inline'"
        rules[2] += " blob:"
        rules.append(f"script-src {' '.join(map(_hash, scripts))}")
    return "; ".join(rules)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@functools.lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"clean": clean, "cell_text": cell_text}
    environment.globals |= {"aligns": _aligns}
    return environment


def _aligns(numbers: Table) -> list[str]:
    """Columns that have a number stand to the right."""
    columns = zip(*numbers.rows, strict=True)
    return ["right" if any(isinstance(value, int | float) for value in column) else "left" for column in columns]


@functools.cache
def _read(name: str) -> str:
    return (_HERE / name).read_text("utf-8").strip()


@functools.lru_cache(maxsize=1)
def _typeface() -> str:
    """Source Sans (SIL Open Font License), as Streamlit brings it for the app; "" where it brings another."""
    streamlit = importlib.util.find_spec("streamlit")
    assert streamlit is not None and streamlit.origin is not None
    for file in Path(streamlit.origin).parent.glob("static/static/media/SourceSansVF-Upright.*.woff2"):
        source = f"data:font/woff2;base64,{base64.b64encode(file.read_bytes()).decode()}"
        return f'@font-face {{ font-family: "Source Sans"; font-weight: 200 900; src: url("{source}") format("woff2"); }}\n'
    return ""


@functools.lru_cache(maxsize=1)
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("\r\n", "\n").strip()


def cell_text(value: Any) -> str:
    """A table's cell for people."""
    if value is None or value == "":
        return "–"
    if isinstance(value, float):
        size = abs(value)
        if value.is_integer() and size < 1e15:
            return judge.signed(value, ",.0f")
        return judge.signed(value, ",.1f" if 1_000 <= size < 1e15 else ".4f" if 0.00005 <= size < 1_000 else ".1e")
    if isinstance(value, int):
        return judge.signed(value, ",")
    if isinstance(value, (list, tuple)):
        return "; ".join(map(str, value)) or "–"
    return clean(value, 300)
