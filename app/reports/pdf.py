"""A report on paper, set by Typst: no browser, no system package, and nothing of a report is read as markup.

Latin, Greek, Cyrillic and Hebrew letters are in a font that comes along; others are taken from the fonts of this machine, and
from the folder that SEQSCOPE_FONTS names. Letters that no font has are named on the first page.
"""

import datetime
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typst

from app.analysis.cache import cached
from app.reports import provenance
from app.reports.blocks import Block
from app.reports.document import Report
from app.reports.sections import Section, sections
from app.reports.svg import Svg
from app.text import clean, listed
from engine.errors import SeqscopeError

FONTS = ("Libertinus Serif", "DejaVu Sans Mono")  # both come with Typst
_TEMPLATE = Path(__file__).parent / "templates" / "report.typ"
_PROBE = b'#set document(title: "-")\n#set text(font: json(bytes(sys.inputs.fonts)))\n#json(bytes(sys.inputs.text))'
_UNSHOWN = re.compile(r'the text `"(.*)"` could not be displayed', re.DOTALL)
_SCRIPTS = 40  # kinds of letters to look for at most


def render(report: Report, *, system_fonts: bool = True) -> bytes:
    """The PDF. Accessible (PDF/UA-1: tagged, with alternatives for figures) where every letter can be shown."""
    missing = unshown(texts(report), system_fonts=system_fonts)
    try:
        return _set_in_type(report, missing, system_fonts)
    except typst.TypstError as error:
        named = None if missing else _UNSHOWN.search(error.message)
        if named is None:
            raise SeqscopeError(f"The PDF could not be set: {error.message}.") from None
    # fonts may have a sign and a mark, and not one on the other
    return _set_in_type(report, {"signs with marks": named[1]}, system_fonts)


def _set_in_type(report: Report, missing: dict[str, str], system_fonts: bool) -> bytes:
    made = datetime.datetime.fromisoformat(report.created).astimezone(datetime.UTC)
    data: dict[str, Any] = {
        "title": clean(report.title),
        "head": provenance.head(report),
        "foot": f"{clean(report.dataset.title, 60)} · Seqscope {report.program.version} · {provenance.when(report.created)}",
        "date": {"year": made.year, "month": made.month, "day": made.day},
        "fonts": list(FONTS),
        "blocks": _missing(missing),
    }
    for section in sections(report):
        data["blocks"] += [{"kind": "h2", "text": section.heading}, *map(_set, _on_paper(section))]
    content = typst.compile(  # type: ignore[misc]
        _TEMPLATE.read_bytes(),
        sys_inputs={"data": json.dumps(data, ensure_ascii=False)},
        font_paths=_folders(),
        ignore_system_fonts=not system_fonts,
        pdf_standards=[] if missing else ["ua-1"],
        timestamp=made,
    )
    assert isinstance(content, bytes)
    return content


def unshown(strings: Iterable[str], *, system_fonts: bool = True) -> dict[str, str]:
    """Script → letters of it that no font here has, such as {"Hangul": "기생충"}."""
    letters = sorted({c for text in strings for c in text if not c.isascii() and unicodedata.category(c)[0] != "C"})
    scripts: dict[str, str] = {}
    for _ in range(_SCRIPTS):
        if not letters:
            break
        try:
            typst.compile(  # type: ignore[misc]
                _PROBE,
                sys_inputs={"text": json.dumps(" ".join(letters)), "fonts": json.dumps(FONTS)},
                font_paths=_folders(),
                ignore_system_fonts=not system_fonts,
                pdf_standards=["ua-1"],
                timestamp=0,
            )
            break
        except typst.TypstError as error:
            named = _UNSHOWN.search(error.message)
            if named is None:
                raise SeqscopeError(f"The fonts could not be looked through: {error.message}.") from None
            first = next((c for c in named[1] if not c.isascii()), None)
            if first is None or first not in letters:
                break
            script = _script(first)
            scripts[script] = "".join(c for c in letters if _script(c) == script)
            letters = [c for c in letters if _script(c) != script]
    return scripts


@cached(50, by=lambda report: report.seal)
def lacks(report: Report) -> str:
    """The scripts of a report that no font here has, in words; "" where all its letters can be shown."""
    try:
        return listed(list(unshown(texts(report))))
    except SeqscopeError as reason:
        return str(reason)


def _folders() -> list[str]:
    named = os.environ.get("SEQSCOPE_FONTS", "")
    return [named] if named and Path(named).is_dir() else []


def _script(letter: str) -> str:
    """The script of a letter, from its name in Unicode."""
    if ord(letter) >= 0x1F000 and unicodedata.category(letter) == "So":
        return "Emoji"
    name = unicodedata.name(letter, "unnamed sign").split()
    return "Chinese" if name[0] == "CJK" else name[0].capitalize()


def _missing(scripts: dict[str, str]) -> list[Block]:
    if not scripts:
        return []
    text = (
        f"No font on the machine that made this file has letters of: {listed(list(scripts))}. They show as empty boxes here; "
        "the report as HTML and as JSON has them."
    )
    return [{"kind": "warn", "text": text}]


def texts(report: Report) -> Iterator[str]:
    """All that is written on its pages, and the titles that stand in its figures."""
    yield from (report.title, provenance.head(report), *report.item_titles.values())
    for section in sections(report):
        yield from _strings(_on_paper(section))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


# --- blocks, as the template takes them


def _on_paper(section: Section) -> list[Block]:
    return [block for block in section.blocks if block["kind"] != "grid" and block.get("only") != "html"]


def _set(value: Any) -> Any:
    """The same with drawn figures and signs."""
    if isinstance(value, list | tuple):
        return [_set(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "figures":
        drawn = [
            {
                "svg": str(inner.draw(FONTS[0])), "alt": inner.alt, "width": value["width"],
                "caption": inner.alt if value["named"] else "",
            }
            for inner in value["figures"]
        ]  # fmt: skip
        return {"kind": "figures", "figures": drawn, "widths": [1] * len(drawn)}
    if "marker" in value:
        svg = Svg(16, 16)
        svg.marker(8, 8, value["marker"], value["colour"])
        return {"mark": str(svg.done("")), "words": value["words"]}
    return {key: _set(inner) for key, inner in value.items()}
