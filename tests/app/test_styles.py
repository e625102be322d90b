"""How models look in figures."""

import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
from streamlit.testing.v1 import AppTest

from app.analysis import model_card
from app.analysis.attention import Names
from app.figures import attention, compare, graph_paths
from app.figures.style import signed_scale
from app.styles import _colours, _looks, is_fixed, style
from engine.runtime import Zoo


def test_no_two_of_many_models_look_alike_and_those_of_before_stay_as_they_are_beside_any_others() -> None:
    names = ("sasrec", "bert4rec", *(f"other-{number}" for number in range(40)))
    looks = _looks(names, _colours("models"))
    assert len({(look.colour, look.marker) for look in looks.values()}) == len(names)
    assert looks["sasrec"] == _looks(("sasrec",), _colours("models"))["sasrec"]
    declared = _colours("models")
    looks = _looks(tuple(name for name, _ in declared)[::-1], declared)
    fixed = [name for name, _ in declared if is_fixed(name)]
    assert "sasrec" in fixed and not is_fixed("other")
    assert all(looks[name] == _looks((name,), declared)[name] for name in fixed)


def test_models_differ_by_colour_or_sign_and_those_of_a_kind_by_both(root: Path) -> None:
    for dataset in ("films", "sample"):
        models = Zoo.open(root / "exports" / dataset)
        looks = [style(models, name) for name in models.bundles]
        assert len({(look.colour, look.sign) for look in looks}) == len(looks)
        kinds = model_card.by_kind(models)
        counted = {name for name in kinds["Counting"] if name in dict(_colours("models"))}  # those beside every kind
        for names in (model_card.usual(models), kinds["Counting"], *({*some, *counted} for some in kinds.values())):
            looks = [style(models, name) for name in names]
            assert len({look.sign for look in looks}) == len({look.colour for look in looks}) == len(looks)
        assert len({style(models, name).sign for name in models.bundles}) == len(models.bundles)


def test_numbers_in_the_cells_of_heat_maps_can_be_read() -> None:
    names = Names(("1", "2"), ("One", "Two"))
    weights = np.array([[-1.0, 0.2], [0.5, 1.0]], np.float32)
    figures = (
        compare.agreement(["a", "b"], np.array([[9, 1], [5, 9]]), "shared", 9)["data"][0],
        *(
            draw.data[0]
            for dark in (False, True)
            for draw in (attention.filters(weights, names, dark=dark), graph_paths.layers(weights, dark))
        ),
    )
    for trace in figures:
        text = trace["textfont"]["color"]
        assert all(contrast(text, colour) >= 4.5 for _, colour in trace["colorscale"])


def test_small_numbers_of_a_signed_heat_map_are_near_the_colour_of_the_page(root: Path) -> None:
    themes = tomllib.loads((root / ".streamlit" / "config.toml").read_text("utf-8"))["theme"]
    for dark, theme in ((False, "light"), (True, "dark")):
        _, (_, middle), _ = signed_scale(dark)["colorscale"]
        assert contrast(middle, themes[theme]["backgroundColor"]) < 1.5


def contrast(first: str, second: str) -> float:
    """WCAG 2.2, of colours such as #0072b2."""

    def light(colour: str) -> float:
        parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((light(first), light(second)))
    return (high + 0.05) / (low + 0.05)


def test_signed_numbers_of_tables_have_a_true_minus_and_stay_numbers() -> None:
    def script() -> None:
        import pandas as pd
        import streamlit as st

        from app.components import widgets

        rows = pd.DataFrame({"name": ["a", "b", "c"], "by": [-0.5, 0.25, None], "share": [-1.0, 2.0, 0.0]})
        per_cent = st.column_config.NumberColumn(format="%+.1f%%")
        widgets.table(rows, alt="Numbers", column_config={"by": widgets.SIGNED, "share": per_cent})

    test = AppTest.from_function(script).run()
    assert not test.exception
    (table,) = test.dataframe
    assert table.value["by"].tolist()[:2] == [-0.5, 0.25]
    drawn = pa.ipc.open_stream(table.proto.arrow_data.styler.display_values).read_pandas()
    assert drawn.iloc[:, 1].tolist() == ["−0.5000", "+0.2500", ""]
    assert drawn.iloc[:, 2].tolist() == ["−1.0%", "+2.0%", "0.0%"]
    assert "%+" not in table.proto.columns
