"""The HTML: nothing foreign runs, nothing is asked for, and its rules fit what it holds. The browser's say: tests/browser."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from app.reports import html
from app.reports.blocks import Table
from app.reports.build import build
from app.reports.document import Asked, Report
from engine.runtime import Zoo
from tests.app.conftest import HOSTILE

FETCHING = ("iframe", "object", "embed", "form", "link", "base", "audio", "video", "img", "image", "use")
"""Elements that ask for something, or change what others ask for."""


class Page(HTMLParser):
    """Elements, attributes, and the texts of scripts and styles."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.inside: dict[str, list[tuple[dict[str, str], str]]] = {"script": [], "style": []}
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.elements.append((tag, given))
        self._open.append(tag)
        if tag in self.inside:
            self.inside[tag].append((given, ""))

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open[:-1]

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in self.inside:
            given, text = self.inside[self._open[-1]].pop()
            self.inside[self._open[-1]].append((given, text + data))
        else:
            self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [given for name, given in self.elements if name == tag]

    @property
    def policy(self) -> dict[str, list[str]]:
        (content,) = (g["content"] for g in self.all("meta") if g.get("http-equiv") == "Content-Security-Policy")
        return {rule.split()[0]: rule.split()[1:] for rule in content.split(";")}


@pytest.fixture(scope="module")
def pages(report: Report) -> dict[str, tuple[bytes, Page]]:
    return {kind: (content, Page(content)) for kind in html.KINDS for content in [html.render(report, kind)]}


def hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("kind", html.KINDS)
def test_nothing_is_asked_for(pages: dict[str, tuple[bytes, Page]], kind: str) -> None:
    page = pages[kind][1]
    assert page.policy["default-src"] == ["'none'"] and page.policy["base-uri"] == ["'none'"]
    assert page.policy["form-action"] == ["'none'"]
    for tag, given in page.elements:
        assert tag not in FETCHING, tag
        for name in given:
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "srcset", "style", "xlink:href", "data"), (tag, name)
        if "href" in given:
            assert tag == "a" and re.fullmatch(r"#.*|https://app\.example\.org/report\?v=1&ds=hostile", given["href"])
    style = page.inside["style"][0][1]
    assert set(re.findall(r"url\(.{17}", style)) == {'url("data:font/woff2;'}  # the app's typeface comes along
    assert not re.findall(r"https?://[^\s\"'<>]+", style) and "@import" not in style


@pytest.mark.parametrize("kind", html.KINDS)
def test_only_what_the_rules_name_may_run(pages: dict[str, tuple[bytes, Page]], kind: str) -> None:
    page = pages[kind][1]
    (style,) = page.inside["style"]
    assert hashed(style[1]) in page.policy["style-src"]
    runs = [text for given, text in page.inside["script"] if given.get("type") != "application/json"]
    allowed = page.policy.get("script-src", [])
    assert sorted(map(hashed, runs)) == sorted(allowed)
    assert not {"'unsafe-inline'", "'unsafe-eval'"} & {*allowed, *page.policy["style-src"]}
    assert page.policy["img-src"] == (["data:"] if kind == "static" else ["data:", "blob:"])


def test_static_has_no_script_and_interactive_one_plotly(pages: dict[str, tuple[bytes, Page]]) -> None:
    assert not pages["static"][1].inside["script"]
    content, page = pages["interactive"]
    libraries = [text for _, text in page.inside["script"] if "plotly.js v" in text[:200]]
    assert len(libraries) == 1 and len(page.inside["script"]) == 3
    assert len(pages["static"][0]) < 2_000_000 and len(content) < 6_000_000
    assert b"MathJax.js" not in content and b"mathjax@" not in content


def test_titles_show_as_text(pages: dict[str, tuple[bytes, Page]]) -> None:
    page = pages["static"][1]
    said = "".join(page.texts)
    hostile = ["<img src=x onerror=alert(1)>", "<script>window.hit = 1</script> $x$", "<b>LETTER</b>"]
    for title in (*HOSTILE[:4], *hostile):
        assert title in said, title
    assert not page.all("b")[1:] and not [given for given in page.all("img")]  # Seqscope's own name alone is bold


def test_plotly_gets_titles_as_text(pages: dict[str, tuple[bytes, Page]], report: Report) -> None:
    ((_, text),) = [one for one in pages["interactive"][1].inside["script"] if one[0].get("type") == "application/json"]
    shapes = json.loads(text)
    assert {"effects", "overlap", "map", "metrics", "attention-alpha", "attention-alpha-map", "codes-rqvae"} <= {
        *shapes
    }
    assert not set("<>&") & set(text)
    seen = [one for shape in shapes.values() for one in texts(shape)]
    assert any("&lt;script&gt;alert(1)" in one for one in seen)
    for one in seen:
        assert not re.search(r"<(?!/?(b|extra|br|span)>|span style=\"color:#[0-9a-f]{6}\">)", one), one
        assert "$x$" not in one and "href" not in one.lower()
    drawn = {given["data-figure"] for given in pages["interactive"][1].all("div") if "data-figure" in given}
    assert drawn == set(shapes)
    keys = [given for given in pages["interactive"][1].all("p") if "drawn" in given.get("class", "")]
    assert shapes["map"]["layout"]["showlegend"] is True and len(keys) == 1, "Plotly draws the map's own key"
    assert {trace["type"] for trace in shapes["map"]["data"]} == {"scatter"}  # WebGL's would need code made at run time


def texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [value] if isinstance(value, str) else []


def test_every_part_has_its_section(pages: dict[str, tuple[bytes, Page]], report: Report) -> None:
    page = pages["static"][1]
    sections = [given["id"] for given in page.all("section")]
    assert sections == ["summary", *report.asked.parts, "made"]
    assert [given["href"][1:] for given in page.all("a") if given["href"].startswith("#")] == sections
    assert len(page.all("h1")) == 1
    for given in page.all("svg"):
        assert given.get("aria-hidden") == "true" or given["aria-label"]
    said = " ".join("".join(page.texts).split())
    for word in (
        "Table: semantic IDs",
        report.dataset.fingerprint,
        report.seal,
        "20 November 2026, 12:00 UTC",
        report.models[0].digest[:16],
    ):
        assert word in said


def test_numbers_of_tables_are_not_cut_to_what_they_are_not_and_stand_below_one_another() -> None:
    """Ranks and counts in full, ties with their half, and nothing small as nothing."""
    table = Table("Moves", ("title", "before"), [("new", None), ("up", 3)])
    assert html._aligns(table) == ["left", "right"]
    numbers = (12_345.0, 1_749.5, 1_071.0, 0.0, -0.00003, 0.12345, 2.5, 999.96, -1e20)
    assert [html.cell_text(number) for number in numbers] == [
        "12,345", "1,749.5", "1,071", "0", "−3.0e−05", "0.1235", "2.5000", "999.9600", "−1.0e+20",
    ]  # fmt: skip


def test_an_address_that_is_none_leads_nowhere_and_no_model_answers(models: Zoo) -> None:
    for address in ("javascript:alert(1)", "?v=1&ds=toys", "data:text/html,x"):
        made = build(models, Asked(history=["toy-9"], parts=["history"]), address=address)
        page = Page(html.render(made))
        assert not [given for given in page.all("a") if not given["href"].startswith("#")]
        assert address in "".join(page.texts)
    made = build(models, Asked(history=[], models=["alpha", "beta"]))
    page = Page(html.render(made, "interactive"))
    assert "needs at least one item" in "".join(page.texts)
