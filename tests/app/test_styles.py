"""How models look in figures."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from app.analysis import model_card
from app.styles import _colours, _looks, style
from engine.runtime import Zoo


def test_no_two_of_many_models_look_alike_and_those_of_before_stay_as_they_are() -> None:
    names = ("sasrec", "bert4rec", *(f"other-{number}" for number in range(40)))
    looks = _looks(names, _colours("models"))
    assert len({(look.colour, look.marker) for look in looks.values()}) == len(names)
    assert looks["sasrec"] == _looks(("sasrec",), _colours("models"))["sasrec"]


def test_models_differ_by_colour_or_sign_and_those_of_a_kind_by_both(root: Path) -> None:
    for dataset in ("films", "sample"):
        models = Zoo.open(root / "exports" / dataset)
        looks = [style(models, name) for name in models.bundles]
        assert len({(look.colour, look.sign) for look in looks}) == len(looks)
        kinds = model_card.by_kind(models)
        for names in (model_card.usual(models), *({*some, *kinds["Counting"]} for some in kinds.values())):
            looks = [style(models, name) for name in names]
            assert len({look.sign for look in looks}) == len({look.colour for look in looks}) == len(looks)
        assert len({style(models, name).sign for name in models.bundles}) == len(models.bundles)


def test_colours_of_both_themes_that_the_style_sheet_repeats_are_the_themes_own(root: Path) -> None:
    themes = tomllib.loads((root / ".streamlit" / "config.toml").read_text("utf-8"))["theme"]
    own = {(themes["light"][name], themes["dark"][name]) for name in themes["light"] if name != "sidebar"}
    repeated = re.findall(
        r"light-dark\(([^\s,]+), ([^\s)]+)\)", (root / "app" / "components" / "browser.css").read_text("utf-8")
    )
    assert len(repeated) > 1 and set(repeated) <= own
