"""What can be taken away: tables that no spreadsheet runs, file names, figures that send nothing anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from app.export import config, file_name, shared_figure
from app.text import csv_bytes


def test_tables_in_utf8_with_neutralised_cells() -> None:
    table = pd.DataFrame(
        {
            "=title": ["=HYPERLINK(1)", "기생충, 2019", 'say "hi"', None],
            "score": [-1.5, 2.0, float("nan"), 0.1],
            "genres": [["Drama"], ["-x", "y"], [], None],
        }
    )
    content = csv_bytes(table.columns, table.itertuples(index=False, name=None))
    text = content.decode("utf-8-sig")
    assert text.split("\r\n") == [
        "'=title,score,genres",
        "'=HYPERLINK(1),-1.5,Drama",
        '"기생충, 2019",2.0,\'-x; y',
        '"say ""hi""",,',
        ",0.1,",
        "",
    ]
    assert content.startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("Leave one out", "../../etc/passwd"), "leave-one-out-etc-passwd.csv"),
        (("기생충",), "seqscope.csv"),
        (("a" * 500,), f"{'a' * 80}.csv"),
        ((), "seqscope.csv"),
    ],
)
def test_file_names(words: tuple[str, ...], name: str) -> None:
    assert file_name(*words, ending="csv") == name


def test_figures_send_nothing_anywhere() -> None:
    found = config("a figure")
    assert found["showSendToCloud"] is False
    assert found["displaylogo"] is False
    assert found["typesetMath"] is False
    assert found["toImageButtonOptions"]["filename"] == "seqscope-a-figure"


def test_a_figure_comes_with_a_description_a_table_and_downloads() -> None:
    def script() -> None:
        import pandas as pd
        import plotly.graph_objects as go

        from app import export

        export.figure(go.Figure(), key="f", alt="A line", table=pd.DataFrame({"a": ["=1"]}), name="line")

    app = AppTest.from_function(script).run()
    assert not app.exception
    chart = app.get("plotly_chart")[0].proto
    assert json.loads(chart.spec)["layout"]["paper_bgcolor"] == "rgba(0,0,0,0)"
    assert "A line" in str(chart)
    assert not app.dataframe  # folded away, not made
    app.session_state["f_twin"] = True
    app.run()
    assert len(app.dataframe) == 1
    assert app.get("download_button")


def test_a_figure_written_as_a_dictionary_is_drawn_as_plotly_would() -> None:
    def script() -> None:
        import pandas as pd
        import plotly.graph_objects as go

        from app import export

        def written() -> dict:
            bars = {"type": "bar", "x": [1, None, 0.1], "y": ["a", "b", "기생충"], "marker": {"color": "#0072b2"}}
            return {"data": [bars], "layout": {"height": 200, "yaxis": {"autorange": "reversed"}}}

        for key, fig in (("ours", written()), ("plotly", go.Figure(written()))):
            export.figure(fig, key=key, alt="Bars", table=pd.DataFrame(), name="bars")

    app = AppTest.from_function(script).run()
    assert not app.exception
    ours, plotly = (json.loads(chart.proto.spec) for chart in app.get("plotly_chart"))
    assert ours == plotly and ours["layout"]["template"]["layout"]["colorway"]


def test_a_figure_is_drawn_once_for_the_same_data() -> None:
    made: list[list[int]] = []

    def bars(table: pd.DataFrame) -> go.Figure:
        made.append(table["x"].tolist())
        return go.Figure(go.Bar(x=table["x"]))

    first, again, other = (shared_figure(bars, pd.DataFrame({"x": x})) for x in ([1, 2], [1, 2], [1, 3]))
    assert made == [[1, 2], [1, 3]]
    assert first.to_dict() == again.to_dict() != other.to_dict()
    shared_figure(bars, pd.DataFrame({"x": [1, 4]}), about="the same dataset")
    shared_figure(bars, pd.DataFrame({"x": [1, 5]}), about="the same dataset")
    assert made[2:] == [[1, 4]]


def test_a_cell_without_a_value_is_empty() -> None:
    def script() -> None:
        import pandas as pd

        from app.components import widgets

        widgets.table(pd.DataFrame({"year": [1999, None], "title": ["Alien", None]}), alt="Items")

    (table,) = AppTest.from_function(script).run().dataframe
    assert table.proto.placeholder == ""
    assert table.proto.HasField("placeholder")


def test_every_table_of_rows_is_shown_by_one_function() -> None:
    """st.dataframe by itself reads None where a cell has no value."""
    app = Path(__file__).parents[2] / "app"
    assert [
        path.relative_to(app).as_posix()
        for path in sorted(app.rglob("*.py"))
        if "st.dataframe(" in path.read_text("utf-8")
    ] == ["components/widgets.py"]
