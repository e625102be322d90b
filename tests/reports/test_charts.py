"""SVG figures: numbers become coordinates, texts stay texts."""

import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from app.figures import graph_paths
from app.figures.style import ticks
from app.reports import charts, svg
from app.reports.document import Report
from app.reports.parts import codes
from app.reports.sections import figures, sections
from app.styles import PALETTE
from engine.runtime.graph_paths import Branch, Step

NS = "{http://www.w3.org/2000/svg}"
EVIL = '</title></text><script>alert("1")</script>'


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # raises where it is not well formed


def test_a_control_character_of_a_title_breaks_no_figure() -> None:
    """Typst, which sets the PDF, refuses an image that is not well-formed XML."""
    title = "Alien\x0b\x01\uffff"
    drawn = parsed(
        charts.points([0.0], [0.0], ["#000000"], title, hints=[title], path=[charts.Spot(1, 1, title, title)])
    )
    assert drawn.get("aria-label") == "Alien" and "".join(drawn.itertext()) == "Alien" * 3


def test_every_figure_of_a_report_is_well_formed_and_has_no_code(report: Report) -> None:
    found = figures(sections(report))
    assert len({figure.key for figure in found}) == len(found) > 10
    for figure in found:
        root = parsed(figure.draw(""))
        assert root.get("aria-label") == figure.alt and root.get("role") == "img"
        for element in root.iter():
            assert element.tag.removeprefix(NS) in ("svg", "text", "rect", "line", "path", "circle", "title")
            assert not {"style", "href", "onclick"} & set(element.attrib)
            for name in ("x", "y", "width", "height", "cx", "cy", "x1", "x2", "y1", "y2"):
                assert math.isfinite(float(element.get(name, "0")))


def test_bars_are_as_long_as_their_values_and_signed_ones_start_in_the_middle() -> None:
    rows = [charts.Bar(EVIL, 0.5, "0.500"), charts.Bar("b", 0.25, "0.250"), charts.Bar("c", 0.0, "0.000")]
    root = parsed(charts.bars(rows, "#0072b2", EVIL, even=0.25))
    lengths = [float(bar.get("width", "")) for bar in root.iter(f"{NS}rect")]
    assert lengths[1] == pytest.approx(lengths[0] / 2) and lengths[2] < 1
    (even,) = root.iter(f"{NS}line")
    assert float(even.get("x1", "")) == pytest.approx(190 + lengths[1])
    assert EVIL in (root.get("aria-label") or "")
    texts, ranks = ["one", "two", "three"], ["41", "2", "10,000,000"]
    columns = [
        charts.Column("●", "#0072b2", [1.0, -2.0, None], texts, ranks),
        charts.Column("■", "#d55e00", [4.0, 0.0, -1.0], texts, ranks),
    ]
    root = parsed(charts.effects(["a", "b", "c"], columns, "x"))
    bars = [(float(bar.get("x", "")), float(bar.get("width", ""))) for bar in root.iter(f"{NS}rect")]
    middles = [float(line.get("x1", "")) for line in root.iter(f"{NS}line")]
    assert len(bars) == 5
    assert bars[0][0] == pytest.approx(middles[0]) and bars[1][0] + bars[1][1] == pytest.approx(middles[0])
    assert bars[1][1] == pytest.approx(2 * bars[0][1]) and bars[2][1] == pytest.approx(2 * bars[1][1])
    beside = [(text.text, float(text.get("x", ""))) for text in root.iter(f"{NS}text") if text.text in ranks]
    assert [words for words, _ in beside] == ["41", "2", "41", "2"], "those for which there is room"
    assert beside[0][1] < middles[0] < beside[1][1], "on the side that the bar leaves free"


def test_lines_of_a_tree_join_its_nodes_and_the_explained_item_has_the_colour_of_the_model() -> None:
    steps = [Step(9, 2, 0.3, 0.5), Step(5, 1, 0.1, -0.2)]
    branches = [Branch(1, 0.5, 3, 1.0, 0.1, steps, 0, 0.0, 0.0)]
    root = parsed(charts.tree(graph_paths.tree_layout(branches, 9, {1: EVIL, 5: "five", 9: "nine"}, "#123456"), "x"))
    nodes = {(node.get("cx"), node.get("cy")): node.get("fill") for node in root.iter(f"{NS}circle")}
    ends = [re.findall(r"-?[\d.]+", line.get("d", "")) for line in root.iter(f"{NS}path")]
    assert len(nodes) == 5 and len(ends) == 4
    at = {(float(x or 0), float(y or 0)) for x, y in nodes}
    for end in ends:
        assert {(float(end[0]), float(end[1])), (float(end[-2]), float(end[-1]))} <= at
    assert list(nodes.values()).count("#123456") == 1
    shades = [line.get("stroke") for line in root.iter(f"{NS}path")]
    assert shades.count("#123456") == 1 and shades.count(graph_paths.AGAINST) == 1


def test_cells_are_blank_where_there_is_nothing_dots_lie_on_one_axis_and_points_upwards() -> None:
    root = parsed(charts.heatmap(["a", "b"], ["c", "d"], [[0.0, None], [5.0, 10.0]], "x", top=10.0, form="{:.0f}"))
    cells = list(root.iter(f"{NS}rect"))
    assert [cell.get("fill") for cell in cells] == ["#440154", svg.viridis(0.5), "#fde725"]
    assert [text.text for text in root.iter(f"{NS}text")] == ["a", "0", "b", "5", "10", "c", "d"]
    upper = charts.Dot("a", 0.3, 0.2, 0.4, "#0072b2", "circle", "best")
    lower = charts.Dot("b", 0.1, 0.0, 0.2, "#d55e00", "star", "")
    root = parsed(charts.dots([upper, lower], "NDCG@10", "x"))
    lines = [line for line in root.iter(f"{NS}line") if line.get("stroke") in (upper.colour, lower.colour)]
    (middle, high), (low, middle_too) = ((float(line.get("x1", "")), float(line.get("x2", ""))) for line in lines)
    assert middle == pytest.approx(middle_too, abs=0.02) and high - middle == pytest.approx(middle - low, abs=0.04)
    spots = [charts.Spot(0.0, 1000.0, "1", EVIL)]
    root = parsed(charts.points([0.0, 1000.0], [0.0, 500.0], ["#0072b2", "#d55e00"], "x", path=spots))
    low, right, spot = list(root.iter(f"{NS}circle"))
    assert float(spot.get("cy", "")) < float(right.get("cy", "")) < float(low.get("cy", ""))
    assert float(low.get("cx", "")) == float(spot.get("cx", "")) < float(right.get("cx", ""))
    assert spot.findtext(f"{NS}title") == EVIL


def test_every_marker_has_a_shape_of_its_own_and_outlines_are_empty() -> None:
    def drawn(marker: str) -> ET.Element:
        art = svg.Svg(20, 20)
        art.marker(10, 10, marker, "#0072b2")
        (path,) = parsed(art.done("x")).iter(f"{NS}path")
        return path

    shapes = {look.marker: drawn(look.marker).get("d") for look in PALETTE.values()}
    assert len(set(shapes.values())) == len(shapes)
    assert drawn("square").get("fill") == drawn("square-open").get("stroke") == "#0072b2"
    assert drawn("square-open").get("fill") == "none"
    assert (drawn("new").get("d") or "").startswith("M")  # of a report of another version


def test_even_use_is_drawn_of_each_size_of_level_where_all_its_codes_are_known(report: Report) -> None:
    levels = [
        codes.Level(size=size, used=3, perplexity=2.0, gini=0.5, counts=[4, 2, 2, *[0] * (min(size, 8) - 3)])
        for size in (4, 8, 600)
    ]
    unused: dict[str, Any] = dict.fromkeys(
        ("excess", "sharing", "excess_in_use", "sharing_in_use", "reconstruction"), 0.0
    )
    for first, last, lines, sizes in ((0, 1, 1, "1 × 4"), (0, 2, 2, "4 · 8"), (2, 3, 0, "1 × 600")):
        entry = codes.Codes(
            tokenizer="t", title="T", digest="0" * 64, kind="p5", levels=levels[first:last], items=[], **unused
        )
        assert codes.PART.blocks([entry], report)[0]["rows"][0][1] == sizes
        figure = codes.usage(entry)
        assert len(re.findall('stroke-dasharray="2 3"', figure.draw(""))) == lines
        assert len([line for line in figure.live().data if line.name == "evenly used"]) == lines


def test_ticks_are_round_and_wide_letters_take_more_room() -> None:
    assert ticks(0, 1, 5) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(0.013, 0.047, 4) == [0.02, 0.03, 0.04]
    assert ticks(3, 3, 4) == [3]
    assert svg.fit("abcdefgh", 80) == "abcdefgh"
    assert svg.fit("가나다라마바사아", 80).endswith("…") and len(svg.fit("가나다라마바사아", 80)) <= 6
    assert "\n" not in svg.fit("a\nb\x00c", 100)
