"""A report on paper, set by Typst: no browser, no system package, and nothing of a report is read as markup.

Latin, Greek, Cyrillic and Hebrew letters are in a font that comes along; others are taken from the fonts of this machine, and
from the folder that SEQSCOPE_FONTS names. Letters that no font has are named on the first page.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from app.reports import words
from app.reports.document import Model, Ranked, Report
from app.reports.figures import Figure, figures
from app.reports.html import linked, parts
from app.reports.svg import Svg
from app.reports.tables import tables, titled
from app.text import clean, listed, percent, short
from engine.errors import SeqscopeError
from engine.runtime import judge

FONTS = ("Libertinus Serif", "DejaVu Sans Mono")  # both come with Typst
_TEMPLATE = Path(__file__).parent / "templates" / "report.typ"
_PROBE = b'#set document(title: "-")\n#set text(font: json(bytes(sys.inputs.fonts)))\n#json(bytes(sys.inputs.text))'
_UNSHOWN = re.compile(r'the text `"(.*)"` could not be displayed', re.DOTALL)
_SCRIPTS = 40  # kinds of letters to look for at most
_PAIRS, _CODED = 30, 40  # rows of a table
Block = dict[str, Any]


def render(report: Report, *, system_fonts: bool = True) -> bytes:
    """The PDF. Accessible (PDF/UA-1: tagged, with alternatives for figures) where every letter can be shown."""
    typst = _typst()
    missing = unshown(texts(report), system_fonts=system_fonts)
    made = datetime.datetime.fromisoformat(report.created).astimezone(datetime.UTC)
    data = {
        "title": clean(report.title),
        "head": words.head(report),
        "foot": f"{clean(report.dataset.title, 60)} · Seqscope {report.program.version} · {words.when(report.created)}",
        "date": {"year": made.year, "month": made.month, "day": made.day},
        "fonts": list(FONTS),
        "blocks": [*_missing(missing), *_blocks(report)],
    }
    try:
        found = typst.compile(
            _TEMPLATE.read_bytes(),
            sys_inputs={"data": json.dumps(data, ensure_ascii=False)},
            font_paths=_folders(),
            ignore_system_fonts=not system_fonts,
            pdf_standards=[] if missing else ["ua-1"],
            timestamp=made,
        )
    except typst.TypstError as error:
        raise SeqscopeError(f"The PDF could not be set: {error.message}.") from None
    assert isinstance(found, bytes)
    return found


def unshown(said: Iterable[str], *, system_fonts: bool = True) -> dict[str, str]:
    """Script → letters of it that no font here has, such as {"Hangul": "기생충"}."""
    typst = _typst()
    letters = sorted({c for text in said for c in text if not c.isascii() and unicodedata.category(c)[0] != "C"})
    found: dict[str, str] = {}
    for _ in range(_SCRIPTS):
        if not letters:
            break
        try:
            typst.compile(
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
            found[script] = "".join(c for c in letters if _script(c) == script)
            letters = [c for c in letters if _script(c) != script]
    return found


def _typst() -> Any:
    try:
        import typst
    except ImportError:
        raise SeqscopeError("PDF needs the package typst: pip install typst. The HTML prints just as well.") from None
    return typst


def _folders() -> list[str]:
    named = os.environ.get("SEQSCOPE_FONTS", "")
    return [named] if named and Path(named).is_dir() else []


def _script(letter: str) -> str:
    """The script of a letter, from its name in Unicode."""
    if ord(letter) >= 0x1F000 and unicodedata.category(letter) == "So":
        return "Emoji"
    name = unicodedata.name(letter, "unnamed sign").split()
    return "Chinese" if name[0] == "CJK" else name[0].capitalize()


def _missing(found: dict[str, str]) -> list[Block]:
    if not found:
        return []
    text = (
        f"No font on the machine that made this file has letters of: {listed(list(found))}. They show as empty boxes here; "
        "the report as HTML and as JSON has them."
    )
    return [{"kind": "warn", "text": text}]


def texts(report: Report) -> list[str]:
    """All foreign texts that stand on its pages."""
    found = [
        report.title,
        report.dataset.title,
        report.dataset.source,
        report.dataset.licence,
        *titled(report).values(),
    ]
    found += [words.titles(report)[one.name] + one.sign + one.device for one in report.models]
    found += [one.title for one in report.codes or []] + report.notes
    found += [item.title for one in report.what_ifs or [] for own in one.models for item in own.items]
    if report.effects is not None:
        found.append(report.effects.title)
    if report.map is not None:
        found += report.map.groups
    if report.history is not None and report.history.person is not None:
        found.append(report.history.person)
    return found


# --- what stands on the pages


def _blocks(report: Report) -> list[Block]:
    drawn = {figure.key: figure for figure in figures(report)}
    found: list[Block] = []
    for part, heading in parts(report):
        found.append({"kind": "h2", "text": heading})
        found += _PARTS[part](report, drawn)
    return [*found, {"kind": "h2", "text": "How it was made"}, *_made(report)]


def _sign(report: Report, name: str) -> Block:
    model = report.model(name)
    svg = Svg(16, 16)
    svg.marker(8, 8, model.marker, model.colour)
    return {"mark": str(svg.done("")), "words": words.titles(report)[name]}


def _figures(found: list[Figure], width: float = 100, *, named: bool = False) -> Block:
    """named: each says what it shows beneath it, where no sentence above does."""
    drawn = [
        {"svg": str(one.draw(FONTS[0])), "alt": one.alt, "width": width, "caption": one.alt if named else ""}
        for one in found
    ]
    return {"kind": "figures", "figures": drawn, "widths": [1] * len(drawn)}


def _table(head: list[str], rows: list[list[Any]], widths: list[int]) -> Block:
    """widths: 0 takes what the content needs. Columns of figures stand to the right."""
    aligns = ["left" if width else "right" for width in widths]
    return {"kind": "table", "head": head, "rows": rows, "widths": widths, "aligns": aligns}


def _history(report: Report, drawn: dict[str, Figure]) -> list[Block]:
    assert report.history is not None
    found: list[Block] = []
    if report.history.person is not None:
        target = report.history.target
        text = f"Of {clean(report.history.person)}; no model has seen what came next"
        found.append({"kind": "p", "text": text + (f": {clean(target.title)}." if target is not None else ".")})
    for title, items in (("", report.history.items), ("Edited", report.history.edited)):
        if items is None:
            continue
        if title:
            found.append({"kind": "h3", "cell": title})
        if items:
            found.append({"kind": "path", "items": [clean(item.title, 120) for item in items]})
        else:
            found.append({"kind": "quiet", "text": "Empty: what models say of somebody nobody knows."})
    return found


def _lists(report: Report, drawn: dict[str, Figure]) -> list[Block]:
    times = words.shared(report.lists or [])
    cards = []
    for one in report.lists or []:
        items = [
            {
                "place": str(item.place),
                "words": short(clean(item.title), 90),
                "tag": ", ".join(_tags(report, item, times)),
                "share": "" if item.share is None or item.strength is not None else percent(item.share),
                "bar": words.bar(one, item),
                "colour": report.model(one.model).colour,
            }
            for item in one.items
        ]
        note = one.cannot or words.listing_note(one, report)
        cards.append({"head": _sign(report, one.model), "note": clean(note), "items": items})
    return [{"kind": "quiet", "text": words.bars(report)}, {"kind": "lists", "lists": cards}]


def _tags(report: Report, item: Ranked, times: Mapping[str, int]) -> list[str]:
    shared = [f"in {times[item.item_id]} of {len(report.lists or [])}"] if times[item.item_id] > 1 else []
    return shared + (["in the history"] if item.item_id in words.taken(report) else [])


def _what_ifs(report: Report, drawn: dict[str, Figure]) -> list[Block]:
    found: list[Block] = []
    for one in report.what_ifs or []:
        found.append({"kind": "h3", "cell": one.words})
        rows: list[list[Any]] = []
        for own in one.models:
            if own.cannot is not None:
                rows.append([_sign(report, own.model), clean(own.cannot, 200), *[""] * len(words.KINDS)])
                continue
            counts = words.moved(own)
            first = short(clean(words.first_of(own)), 60)
            rows.append([_sign(report, own.model), first, *(str(counts[kind]) for kind in words.KINDS)])
        head = ["Model", "first then", *(words.CHANGES[kind] for kind in words.KINDS)]
        found.append(_table(head, rows, [2, 4, *[0] * len(words.KINDS)]))
    return found


def _effects(report: Report, drawn: dict[str, Figure]) -> list[Block]:
    assert report.effects is not None
    found: list[Block] = [{"kind": "p", "text": words.effects(report.effects, report)}]
    if "effects" in drawn:
        found.append(_figures([drawn["effects"]]))
    called = words.titles(report)
    for one in report.effects.models:
        if one.cannot is not None:
            found.append({"kind": "quiet", "text": f"{called[one.model]}: {clean(one.cannot)}"})
    key = ", ".join(
        f"{report.model(one.model).sign} {called[one.model]}" for one in report.effects.models if one.effect
    )
    return [*found, {"kind": "quiet", "text": key}]


def _overlap(report: Report, drawn: dict[str, Figure]) -> list[Block]:
    assert report.overlap is not None
    found: list[Block] = [{"kind": "p", "text": words.overlap(report.overlap, report.asked.k)}]
    table = tables(report).get("overlap")
    found.append(_figures([drawn["overlap"]], 60))
    key = ", ".join(f"{report.model(name).sign} {words.titles(report)[name]}" for name in report.overlap.models)
    found.append({"kind": "quiet", "text": key})
    if table is not None and len(table.rows) <= _PAIRS:
        rows = [[row[0], row[1], str(row[2]), f"{row[3]:.3f}", f"{row[4]:.3f}"] for row in table.rows]
        found.append(_table(list(table.columns), rows, [2, 2, 0, 0, 0]))
    return found


def _attention(report: Report, drawn: dict[str, Figure]) -> list[Block]:
    found: list[Block] = []
    for one in report.attention or []:
        found.append({"kind": "h3", "cell": _sign(report, one.model)})
        if one.cannot is not None:
            found.append({"kind": "quiet", "text": clean(one.cannot)})
            continue
        found.append({"kind": "p", "text": words.attention(one, report, titled(report))})
        found.append(_figures([drawn[f"attention-{one.model}"], drawn[f"attention-{one.model}-map"]]))
    return found


def _codes(report: Report, drawn: dict[str, Figure]) -> list[Block]:
    rows = []
    for one in report.codes or []:
        levels = one.levels
        rows.append(
            [
                clean(one.title, 60),
                f"{len(levels)} × {max((level.size for level in levels), default=0)}",
                " · ".join(str(level.used) for level in levels[:6]),
                *words.normalised(one, report),
                f"{one.excess:.1%} → {one.excess_in_use:.1%}",
                f"{one.sharing:.1%} → {one.sharing_in_use:.1%}",
            ]
        )
    head = ["Tokenizer", "levels × codes", "used", "normalised perplexity", "of random codes", "excess", "sharing"]
    found: list[Block] = [_table(head, rows, [1, 0, 0, 0, 0, 0, 0])]
    usage = [drawn[f"codes-{one.tokenizer}"] for one in report.codes or [] if f"codes-{one.tokenizer}" in drawn]
    for at in range(0, len(usage), 2):
        pair = usage[at : at + 2]
        found.append(_figures(pair, 100 if len(pair) == 2 else 50, named=True))
    by_item: dict[str, list[Any]] = {}
    for at, one in enumerate(report.codes or []):
        for item in one.items[:_CODED]:
            row = by_item.setdefault(item.item_id, [short(clean(item.title), 60), *[""] * len(report.codes or [])])
            row[at + 1] = " · ".join(map(str, item.codes)) + (f" (+{item.shared_with})" if item.shared_with else "")
    if by_item:
        names = [short(clean(one.title), 24) for one in report.codes or []]
        found.append({"kind": "h3", "cell": "Codes of these items"})
        found.append(_table(["item", *names], list(by_item.values()), [1, *[0] * len(names)]))
        found.append({"kind": "quiet", "text": "(+n): n other items have the same codes."})
    return found


def _graph(report: Report, drawn: dict[str, Figure]) -> list[Block]:
    assert report.graph is not None
    blocks: list[Block] = []
    for one in report.graph.models:
        blocks.append({"kind": "h3", "cell": _sign(report, one.model)})
        if one.cannot is not None:
            blocks.append({"kind": "quiet", "text": clean(one.cannot)})
            continue
        blocks.append({"kind": "p", "text": words.graph(report.graph, one, report)})
        if one.branches:
            blocks.append(_figures([drawn[f"graph-{one.model}"]]))
            blocks.append({"kind": "quiet", "text": words.graph_key(report.graph, one)})
        if one.layers is not None:
            shown = [words.layer_rows(one), words.without_rows(one)]
            for text, (head, rows) in zip(words.layers(report.graph, one), shown, strict=True):
                blocks += [{"kind": "p", "text": text}, _table(head, rows, [1, *[0] * (len(head) - 1)])]
    return blocks


def _map(report: Report, drawn: dict[str, Figure]) -> list[Block]:
    assert report.map is not None
    called = words.titles(report)[report.map.model]
    if report.map.cannot is not None:
        return [{"kind": "quiet", "text": f"{called}: {clean(report.map.cannot)}"}]
    return [
        {"kind": "p", "text": f"{words.space(report.map, report)}: {words.place(report.map)}"},
        _figures([drawn["map"]], 92),
    ]


def _metrics(report: Report, drawn: dict[str, Figure]) -> list[Block]:
    assert report.metrics is not None
    texts = [" ".join(map(clean, report.metrics.held_out)), words.metrics(report.metrics, report)]
    found: list[Block] = [{"kind": "p", "text": text} for text in texts if text]
    if "metrics" in drawn:
        found.append(_figures([drawn["metrics"]], 62))
    kinds = list(dict.fromkeys(one.metric for one in report.metrics.estimates))
    rows: list[list[Any]] = []
    told = {(one.model, one.users): one for one in report.metrics.beyond}
    for row, title in words.judged_rows(report).items():
        beyond, why = told[row], report.metrics.cannot(row[0])
        own = [one for one in report.metrics.estimates if (one.model, one.users) == row]
        cells = [f"n/a ({why})"] * len(kinds) if why else []
        for one in own:
            mark = {"best": " *", "level": " ≈", "": ""}[one.mark]
            cells.append(f"{one.mean:.3f}{mark} ({one.low:.3f} – {one.high:.3f})")
        more = [metric.text(beyond.value(metric.field)) for metric in judge.BEYOND.values()]
        rows.append([{**_sign(report, row[0]), "words": title}, *cells, *more])
    head = ["Model", *kinds, *judge.BEYOND]
    found.append(_table(head, rows, [1, *[0] * (len(head) - 1)]))
    if report.metrics.repeats:
        found.append({"kind": "p", "text": words.apart(report.metrics, report)})
    return [*found, {"kind": "quiet", "text": f"* the best. {words.protocol(report.metrics, report)}"}]


def _made(report: Report) -> list[Block]:
    program, data = report.program, report.dataset
    packages = "".join(f", {name} {version}" for name, version in program.packages.items())
    where = f"{program.platform}, Python {program.python}{packages}"
    made = f"{words.when(report.created)}, by Seqscope {program.version} ({where}), seed {report.asked.seed}"
    check = "seqscope report --verify report.json asks the models again and says whether the lists still hold."
    terms = [
        ["Made", made],
        ["Dataset", f"{clean(data.title, 100)}, fingerprint {data.fingerprint}"],
        ["Repeats", words.repeats(report)],
        ["Source", clean(data.source, 2_000)],
        ["Terms", clean(data.licence, 2_000)],
        ["Seal", report.seal],
        ["Check it", check],
    ]
    found: list[Block] = [{"kind": "terms", "terms": terms}]
    if report.address is not None and linked(report.address):
        found.append({"kind": "link", "to": report.address})
    elif report.address is not None:
        found.append({"kind": "quiet", "text": report.address})
    rows: list[list[Any]] = [
        [_sign(report, one.name), f"{one.digest[:16]}…", _commit(one), _trained(one), str(one.seed)]
        for one in report.models
    ]
    found.append(_table(["Model", "Bundle (sha256)", "Commit", "Trained on", "Seed"], rows, [2, 2, 1, 2, 0]))
    if report.notes:
        found.append({"kind": "notes", "notes": [clean(note, 1_000) for note in report.notes]})
    return found


def _trained(model: Model) -> str:
    return clean(model.device, 60) + (f"; {words.STILL_IMPROVING}" if model.improving else "")


def _commit(model: Model) -> str:
    return (model.commit or "unknown")[:10]


_PARTS = {
    "history": _history,
    "lists": _lists,
    "what-ifs": _what_ifs,
    "effects": _effects,
    "overlap": _overlap,
    "attention": _attention,
    "codes": _codes,
    "graph": _graph,
    "map": _map,
    "metrics": _metrics,
}
