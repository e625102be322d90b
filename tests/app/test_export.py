"""What can be taken away: tables that no spreadsheet runs, file names, figures that send nothing anywhere."""

import json

import pandas as pd
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from app.export import _csv, config, file_name, json_rows, shared_figure
from app.text import csv_bytes


def test_tables_in_utf8_with_neutralised_cells() -> None:
    rows = [
        ("=HYPERLINK(1)", -1.5, ["Drama"]),
        ("기생충, 2019", 2.0, ["-x", "y"]),
        ('say "hi"', float("nan"), []),
        (None, 0.1, None),
    ]
    content = csv_bytes(("=title", "score", "genres"), rows)
    lines = [
        "'=title,score,genres",
        "'=HYPERLINK(1),-1.5,Drama",
        '"기생충, 2019",2.0,\'-x; y',
        '"say ""hi""",,',
        ",0.1,",
        "",
    ]
    assert content.decode("utf-8-sig").split("\r\n") == lines
    assert content.startswith(b"\xef\xbb\xbf")


def test_tables_as_json_keep_numbers_lists_and_columns_of_one_name() -> None:
    table = pd.DataFrame([["=1", 0.1, 2, ["기생충"]], [None, float("nan"), 3, []]], columns=["a", "b", "b", "c"])
    rows = json.loads(json_rows(table))
    assert rows == [{"a": "=1", "b": 0.1, "b (2)": 2, "c": ["기생충"]}, {"a": None, "b": None, "b (2)": 3, "c": []}]


def test_columns_that_are_called_as_others_are_numbered_are_columns_of_their_own() -> None:
    table = pd.DataFrame([[1, 2, 3]], columns=["a", "a", "a (2)"])
    assert sorted(json.loads(json_rows(table))[0].values()) == [1, 2, 3]


def test_a_whole_number_that_is_missing_is_an_empty_field() -> None:
    table = pd.DataFrame({"place": pd.array([1, None], "Int64"), "day": [pd.NaT, pd.Timestamp("2026-01-02")]})
    assert _csv(table).decode("utf-8-sig").split("\r\n") == ["place,day", "1,", ",2026-01-02 00:00:00", ""]


def test_file_names_and_figures_that_send_nothing_anywhere() -> None:
    assert file_name("Leave one out", "../../etc/passwd", ending="csv") == "leave-one-out-etc-passwd.csv"
    assert file_name("/ \u202e..", ending="csv") == file_name(ending="csv") == "seqscope.csv"
    assert file_name("Café · 羅生門_2, हिन्दी", ending="csv") == "café-羅生門-2-हिन्दी.csv"
    assert file_name("a" * 500, ending="csv") == f"{'a' * 80}.csv"
    found = config("a figure")
    assert not (found["showSendToCloud"] or found["displaylogo"] or found["typesetMath"])
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
    (shown,) = app.dataframe
    assert shown.proto.HasField("placeholder") and shown.proto.placeholder == ""  # a cell without a value is empty
    assert len(app.get("download_button")) == 2


def test_a_download_of_what_has_an_empty_or_an_odd_name() -> None:
    def script() -> None:
        from app.components import widgets

        for key in (
            "tree_genres__csv",
            "model_a__b_csv",
        ):  # of Streamlit's components none may have two underscores in a row
            widgets.download("CSV", "/file", key=key)

    assert not AppTest.from_function(script).run().exception


def test_a_table_is_filtered_by_a_column_and_taken_away_so(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[pd.DataFrame] = []
    monkeypatch.setattr("app.export.table_buttons", lambda table, name, *, key: taken.append(table))

    def script() -> None:
        import pandas as pd

        from app import export

        title = [f"Film {place}" for place in range(200)]
        table = pd.DataFrame({"title": title, "kind": ["a", "b"] * 100, "score": [place / 200 for place in range(200)]})
        export.under(table, key="t", alt="films", name="films")

    app = AppTest.from_function(script)
    app.session_state["t_twin"] = True
    app.run()
    assert len(taken[-1]) == 200
    app.selectbox(key="t_filter").set_value("kind").run()
    app.multiselect(key="t_filter_kind").set_value(["b"]).run()
    assert len(taken[-1]) == 100 and set(taken[-1]["kind"]) == {"b"}
    app.selectbox(key="t_filter").set_value("score").run()
    app.slider(key="t_filter_score").set_value((0.5, 0.6)).run()
    assert taken[-1]["score"].between(0.5, 0.6).all() and len(taken[-1]) == 21
    app.slider(key="t_filter_score").set_value((0.5, 0.995 - 1e-15)).run()
    assert taken[-1]["score"].max() == 0.995  # the last step is one beside it in the browser
    app.selectbox(key="t_filter").set_value("title").run()
    app.text_input(key="t_filter_title").set_value("film 19").run()
    assert list(taken[-1]["title"]) == ["Film 19", *(f"Film {place}" for place in range(190, 200))]
    assert not app.exception


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
