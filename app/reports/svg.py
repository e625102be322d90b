"""A writer of SVG without any script or style of its own: its figures live in a page, on paper and in a PDF alike.

Text and lines carry a class, so that a page may colour them by its scheme, and an attribute for where there is no stylesheet:
`ink` (text), `quiet` (text of less weight), `rule` (lines), `paper` (what stands out of a point). Numbers are coordinates, in
pixels of a figure as wide as `WIDTH` unless it says so. Foreign text is escaped here.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape
from plotly.colors import sample_colorscale, unlabel_rgb

from app.styles import GREY, SCALE
from app.text import clean, short

WIDTH = 480
FILL = {"ink": "#0f181a", "quiet": "#556264", "paper": "#fcfcfb"}
_RULE = GREY
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Look = Mapping[str, object]


class Svg:
    """A figure in the making."""

    def __init__(self, height: float, width: float = WIDTH) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def add(self, tag: str, look: Look | None = None, *, hint: str = "", inside: str = "", **where: object) -> None:
        """hint: what a reader sees who points at it. An attribute's last _ goes, others become a dash."""
        said = {**where, **(look or {})}
        given = "".join(f' {name.rstrip("_").replace("_", "-")}="{_told(value)}"' for name, value in said.items())
        title = f"<title>{_told(hint)}</title>" if hint else ""
        self._parts.append(f"<{tag}{given}>{title}{_told(inside)}</{tag}>")

    def text(
        self,
        x: float,
        y: float,
        words: str,
        kind: str = "ink",
        *,
        size: int = 13,
        anchor: str = "start",
        fill: str = "",
    ) -> None:
        look = {"fill": fill} if fill else {"class_": kind, "fill": FILL[kind]}
        self.add("text", look, x=x, y=y, font_size=size, text_anchor=anchor, inside=words)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str = "", *, width: float = 1, dash: str = ""
    ) -> None:
        look: Look = {"stroke": colour} if colour else {"class_": "rule", "stroke": _RULE}
        look = {**look, "stroke_dasharray": dash} if dash else look
        self.add("line", look, x1=x1, y1=y1, x2=x2, y2=y2, stroke_width=width)

    def marker(self, x: float, y: float, shape: str, colour: str, *, hint: str = "") -> None:
        """A name of Plotly's; with -open behind it, it is an outline, with -dot behind that, it has a hole."""
        outline = shape.removesuffix("-dot").endswith("-open")
        path = _shape(shape.removesuffix("-dot").removesuffix("-open"), x, y, 6 - outline)
        look: Look = {"fill": "none", "stroke": colour, "stroke_width": 2} if outline else {"fill": colour}
        self.add("path", look, hint=hint, d=path)
        if shape.endswith("-dot"):
            self.add("circle", {"class_": "paper", "fill": FILL["paper"]}, cx=x, cy=y, r=2)

    def done(self, alt: str, font: str = "") -> Markup:
        """font: a font family, for where the figure stands alone."""
        family = f' font-family="{escape(font)}"' if font else ""
        return Markup(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_told(self.width)} {_told(self.height)}" '
            f'width="{_told(self.width)}" height="{_told(self.height)}" role="img" aria-label="{_told(alt)}"{family}>'
            + "".join(self._parts)
            + "</svg>"
        )


# --- helpers


def fit(words: str, pixels: float, size: int = 13) -> str:
    """As much of a text as has room, on one line: letters of East Asia are twice as wide as others."""
    words = clean(words, 200)
    room = pixels / (0.56 * size)
    wide = 0.0
    for at, c in enumerate(words):
        wide += 2 if unicodedata.east_asian_width(c) in "WF" else 1
        if wide > room:
            return short(words, max(1, at), isolate=False)
    return words


def viridis(share: float) -> str:
    """0 to 1 → a colour."""
    (colour,) = sample_colorscale(SCALE, [min(max(share, 0.0), 1.0)])
    return "#" + "".join(f"{round(value):02x}" for value in unlabel_rgb(colour))


def readable(share: float) -> str:
    """What can be read on that colour."""
    return "#ffffff" if share < 0.55 else "#0f181a"


def _told(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(escape(_NOT_XML.sub("", str(value))))


_STARS = {"star": 5, "star-diamond": 4, "hexagram": 6}
_CORNERS = {
    "diamond": (4, 90),
    "triangle-up": (3, 90),
    "triangle-down": (3, -90),
    "triangle-left": (3, 180),
    "triangle-right": (3, 0),
    "pentagon": (5, 90),
    "hexagon": (6, 90),
}


def _shape(name: str, x: float, y: float, r: float) -> str:
    """The marker of that name (Plotly's), as a path."""
    if name == "square":
        return f"M{x - r:.2f} {y - r:.2f}h{2 * r}v{2 * r}h{-2 * r}z"
    if name in ("cross", "x"):
        a, b = r * 0.4, r
        corners = [(-a, -b), (a, -b), (a, -a)]  # of one arm
        for _ in range(3):
            corners += [(-dy, dx) for dx, dy in corners[-3:]]  # the next arm, turned by 90°
        if name == "x":  # the same, turned by 45°
            corners = [((dx - dy) / math.sqrt(2), (dx + dy) / math.sqrt(2)) for dx, dy in corners]
        return _polygon([(x + dx, y + dy) for dx, dy in corners])
    if name in _STARS:
        rays = _STARS[name]
        turn = [(r * (0.5 if at % 2 else 1.25), math.pi / 2 + at * math.pi / rays) for at in range(2 * rays)]
        return _polygon([(x + far * math.cos(way), y - far * math.sin(way)) for far, way in turn])
    if name in _CORNERS:
        many, first = _CORNERS[name]
        ways = [math.radians(first + 360 * at / many) for at in range(many)]
        return _polygon([(x + 1.2 * r * math.cos(way), y - 1.2 * r * math.sin(way)) for way in ways])
    return f"M{x - r:.2f} {y:.2f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z"


def _polygon(corners: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in corners) + "z"
