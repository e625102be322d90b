"""The PDF: its texts, its letters, and nothing read as markup."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdf
import pytest

from app.reports import pdf
from app.reports.build import build
from app.reports.document import Asked, Report
from app.reports.sections import sections
from engine.runtime import Zoo
from tests.app.conftest import ODD_IDS

EMBEDDED = ["Ключ", "Ωμέγα", "שלום", "Übermut", "dvě", "– “x” …", "● ■ ◆ ★"]


def text(content: bytes) -> str:
    pages = pypdf.PdfReader(io.BytesIO(content)).pages
    return " ".join(" ".join(page.extract_text() for page in pages).split())


@pytest.fixture(scope="module")
def content(report: Report) -> bytes:
    return pdf.render(report)


def test_it_says_what_the_report_says(content: bytes, report: Report) -> None:
    said = text(content)
    for word in ("<img src=x onerror=alert(1)>", "<script>window.hit = 1</script> $x$", report.seal):
        assert word in said, word
    for one in report.codes or []:
        assert f"Items per code of {one.title}, the most used first" in said
    assert "20 November 2026, 12:00 UTC" in said
    for one in report.lists or []:
        for item in one.items:
            assert item.title.split(" –")[0] in said
    found = pypdf.PdfReader(io.BytesIO(content))
    assert found.metadata is not None and found.metadata.title == report.title
    assert any("app.example.org" in str(note) for page in found.pages for note in page.get("/Annots", []) or [])


def test_markup_of_typst_in_a_title_is_only_text(models: Zoo) -> None:
    title = '#panic("x") *bold* $x^2$ \\ #read("/etc/passwd") @ref <label>'
    made = build(models, Asked(history=["toy-9"], parts=["history"], title=title))
    assert title in text(pdf.render(made))


def test_letters_that_no_font_has_are_named_on_the_first_page(monkeypatch: pytest.MonkeyPatch, models: Zoo) -> None:
    monkeypatch.setenv("SEQSCOPE_FONTS", "/nowhere")
    assert pdf.unshown(EMBEDDED, system_fonts=False) == {}
    lacking = {"Hangul": "기생충", "Chinese": "".join(sorted("日本")), "Emoji": "🎬"}
    assert pdf.unshown(["기생충", "日本", "🎬 film", "plain"], system_fonts=False) == lacking
    made = build(models, Asked(history=[ODD_IDS[3]], parts=["history"]))
    said = text(pdf.render(made, system_fonts=False))
    assert re.search(r"No font on the machine .* has letters of: Hangul\. They show as empty boxes", said)


def test_a_letter_that_fonts_lack_makes_no_report_fail_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, models: Zoo
) -> None:
    monkeypatch.setenv("SEQSCOPE_FONTS", "/nowhere")
    keycap = build(models, Asked(history=["toy-9"], parts=["history"], title="Top 1\ufe0f\u20e3"))
    assert "has letters of: signs with marks." in text(pdf.render(keycap, system_fonts=False))
    made = build(models, Asked(history=["toy-9"], parts=["map", "attention"], item="toy-12", rows=True))
    looked = next(entry for entry in made.attention or [] if entry.written is not None)
    looked = looked.model_copy(update={"written": looked.written.model_copy(update={"title": "기생충"})})
    for change in ({"map": made.map.model_copy(update={"column": "장르"})}, {"attention": [looked]}):
        written = text(pdf.render(made.model_copy(update=change), system_fonts=False))
        assert re.search(r"has letters of: .*Hangul", written)


def test_a_title_of_one_long_word_stays_in_its_list_and_on_the_page(models: Zoo) -> None:
    word = "deadbeef" * 8
    made = build(models, Asked(history=["toy-9"], parts=["lists"], k=1, title=f"all_about_{word}"))
    lists = [
        listing.model_copy(update={"items": [item.model_copy(update={"title": word}) for item in listing.items]})
        for listing in made.lists or []
    ]
    pages = pypdf.PdfReader(io.BytesIO(pdf.render(made.model_copy(update={"lists": lists})))).pages
    lines = "\n".join(page.extract_text() for page in pages).splitlines()
    assert not any(word in line for line in lines) and any(word[:24] in line for line in lines)


def test_a_heading_and_its_sentences_are_on_the_page_of_what_they_are_of(
    models: Zoo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = build(models, Asked(history=["toy-9"], parts=["lists"], k=3))
    template = pdf._TEMPLATE.read_text("utf-8")
    monkeypatch.setattr(pdf, "_TEMPLATE", tmp_path / "report.typ")
    for height in range(150, 210, 6):  # mm
        pdf._TEMPLATE.write_text(template.replace('paper: "a4"', f"width: 210mm, height: {height}mm"), "utf-8")
        pages = [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(pdf.render(made))).pages]
        (page,) = [page for page in pages if "What each model recommends" in page]
        assert re.search(r"\bAlpha\b.*\bToy", page.split("What each model recommends")[1], re.DOTALL), height


def test_it_is_accessible_and_every_figure_has_its_name(content: bytes, report: Report) -> None:
    """Tagged, with a language and alternatives for figures; the hostile titles have an emoji that this machine may lack."""
    plain = pdf.render(report.model_copy(update={"lists": None, "history": None, "what_ifs": None, "codes": None}))
    root = pypdf.PdfReader(io.BytesIO(plain)).trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"] and root["/Lang"] == "en" and "/StructTreeRoot" in root
    shown = [block for section in sections(report) for block in section.blocks if block["kind"] == "figures"]
    structure = pypdf.PdfReader(io.BytesIO(content)).trailer["/Root"]["/StructTreeRoot"]
    names = [element.get("/Alt") for element in elements(structure) if element.get("/S") == "/Figure"]
    assert names and names == [figure.alt for block in shown for figure in block["figures"]]


def elements(node: Any) -> Iterator[Any]:
    """Of the structure that screen readers follow, from `node` on."""
    node = node.get_object()
    if isinstance(node, list):
        for inner in node:
            yield from elements(inner)
    elif isinstance(node, dict):
        yield node
        if "/K" in node:
            yield from elements(node["/K"])
