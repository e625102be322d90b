"""How models look in figures."""

from __future__ import annotations

import tomllib
from pathlib import Path

from app.styles import _colours, _looks


def test_no_two_of_many_models_look_alike_and_those_of_before_stay_as_they_are() -> None:
    names = ("sasrec", "bert4rec", *(f"other-{number}" for number in range(40)))
    looks = _looks(names, _colours("models"))
    assert len({(look.colour, look.marker) for look in looks.values()}) == len(names)
    assert looks["sasrec"] == _looks(("sasrec",), _colours("models"))["sasrec"]


def test_the_row_of_sections_covers_what_scrolls_beneath_it_in_the_colours_of_the_themes(root: Path) -> None:
    themes = tomllib.loads((root / ".streamlit" / "config.toml").read_text("utf-8"))["theme"]
    colours = ", ".join(themes[name]["backgroundColor"] for name in ("light", "dark"))
    assert f"light-dark({colours})" in (root / "app" / "components" / "browser.css").read_text("utf-8")
