"""Models that write codes, on the pages that there were before them: what is asked of them, what is said of them."""

import dataclasses
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from app import zoo
from app.analysis import attention as views
from app.analysis import beam_search, model_card, model_flow, recommend
from app.figures import beam_search as beam_figures
from app.figures import compare
from engine.runtime import AttentionMap, Bundle, Zoo, generator
from tests.app.conftest import HOSTILE, ODD_IDS, Open, rename, run_without_fault
from tests.app.writers import RAGGED, WRITER, make_writers
from tests.runtime.bundles import seal
from tests.runtime.generators import ended

HISTORY = (1, 2, 5)
ADDRESS = "toy-1~toy-2~toy-5"


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_writers(tmp_path_factory.mktemp("exports")).parent


@pytest.fixture
def models(writers: Path, monkeypatch: pytest.MonkeyPatch) -> Zoo:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(writers))
    found = zoo.open_zoo("writers")
    assert not found.refused
    return found


@pytest.fixture
def opened(open_app: Open, writers: Path) -> Open:
    """opened(page, **address): a page where one model writes codes."""

    def start(page: str = "", **address: str) -> AppTest:
        test = open_app(writers, page=page, ds="writers", **{"h": ADDRESS, **address})
        assert not test.error
        return test

    return start


def grown(models: Zoo, name: str, width: int = 5, constrained: bool = True, dropped: int = 3) -> beam_search.BeamTree:
    trace = models.bundles[name].trace(HISTORY, width, constrained=constrained, dropped=10)
    return beam_search.tree(models, trace, models.bundles[name].items_with, dropped)


# --- lists


def test_a_list_comes_with_probabilities_and_without_scores_of_all_items(
    models: Zoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = np.exp(WRITER.scores(list(HISTORY)))
    monkeypatch.setattr(Bundle, "scores", lambda *_: pytest.fail("all items were scored"))
    top = recommend.top_k(models, "writer", HISTORY, 7)
    assert top.share == pytest.approx(exact[top.items], rel=1e-4)
    assert len(recommend.top_k(models, "writer", tuple(range(40)), 7).share) == 0


def test_what_is_said_of_a_list_is_how_it_was_made(models: Zoo, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a small tree it is exact; where a beam makes it, places are not ranks, and exact ranks beside it say so."""
    found, bundle = recommend.ask(models, ["alpha", "writer"], HISTORY, 7), models.bundles["writer"]

    def said() -> str:
        steps = model_flow.steps(models, "writer", HISTORY, found[1].top)
        return f"{steps} {model_card.writes(bundle)} {recommend.approximate_lists(models, found, 7)}"

    assert bundle.beam(7) is None and "beam" not in said().lower().replace("the beam on compare", "")
    monkeypatch.setattr(generator, "WALK", 0)
    width = bundle.beam(7)
    assert width is not None and said().count(f"{width}") >= 1 and "beam of" in said() and "Beam search" in said()
    assert "Alpha" not in (words := recommend.approximate_lists(models, found, 7)) and "Writer" in words
    assert any(words in caption.value for caption in opened(view="ranks", m="alpha~writer").caption)
    monkeypatch.setattr(beam_search, "CELLS", 1)  # then ranks are those within the list
    assert recommend.approximate_lists(models, found, 7) == ""


def test_items_that_share_their_codes_say_so(models: Zoo) -> None:
    found = recommend.ask(models, ["alpha", "writer"], HISTORY, 40)
    assert not found[0].ties and 7 in found[1].ties[3]
    rows = {row["id"]: row for row in compare.cards(models, found, HISTORY)[1]["rows"]}
    assert rows["toy-3"]["tie"] == f"tied with {len(found[1].ties[3])}"
    assert models.titles[7] in rows["toy-3"]["tie_help"] and "cannot tell them apart" in rows["toy-3"]["tie_help"]
    alone = next(item for item in found[1].items if item not in found[1].ties)
    assert "tie" not in rows[models.item_ids[alone]]
    assert recommend.tie_words(models, [1, 2, 3, 4, 5]).count("2 more") == 1


def test_where_exact_scores_take_long_they_wait_until_they_are_asked_for(
    models: Zoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beam_search, "CELLS", 1)
    target = int(recommend.top_k(models, "writer", HISTORY, 5).items[2])
    (found,) = recommend.ask(models, ["writer"], HISTORY, 5, target=target)
    assert found.target_rank == recommend.ranks(models, "writer", HISTORY, (target,))[0]
    (found,) = recommend.ask(models, ["writer"], HISTORY, 1, target=target)
    assert found.target_rank is None


def test_models_of_one_title_are_told_apart(tmp_path: Path) -> None:
    path = make_writers(tmp_path)
    seal(path / "ragged", title="Writer")
    models = Zoo.open(path)
    found = recommend.ask(models, list(models.bundles), HISTORY, 5)
    assert [answer.title for answer in found] == ["Alpha", "Writer (ragged)", "Writer (writer)"]
    titles = [answer.title for answer in found]
    assert [len(row) for row in compare.agreement(titles, np.ones((3, 3)), "shared", 5)["data"][0]["z"]] == [2, 2]


# --- the beam


@pytest.mark.parametrize("name", ["writer", "ragged"])
def test_the_tree_is_the_search(models: Zoo, name: str) -> None:
    found, toy = grown(models, name), WRITER if name == "writer" else RAGGED
    searched = toy.beam_search(list(HISTORY), 40)
    reached = {way: np.exp(score) for way, score in searched}
    frame = beam_search.table(found)
    written = frame[frame["fate"] == "generated"].sort_values("place")
    assert written["place"].tolist() == list(range(1, len(written) + 1))
    assert written["probability of all codes"].is_monotonic_decreasing
    for row in written.index:
        items = found.trace.items[row]
        assert written["items"][row] == len(items)
        assert written["probability of all codes"][row] == pytest.approx(reached[toy.ways[items[0]]], rel=1e-4)
        path = [part for part in found.paths[row] if part != "end"]
        codes = toy.identifiers.codes[items[0]]
        assert path == [str(code) for code in codes[codes >= 0].tolist()]
    assert found.ends == written.index.tolist()


def test_the_drawing_has_a_line_for_each_end_and_parents_among_their_children(models: Zoo) -> None:
    found = grown(models, "writer", dropped=2)
    trace, at = found.trace, found.heights
    assert np.isfinite(at).tolist() == found.drawn.tolist()
    for depth in np.unique(trace.depths):
        own = np.sort(at[found.drawn & (trace.depths == depth)])
        assert (np.diff(own) >= 0.39).all()  # nothing lies on anything else
        assert np.count_nonzero(found.drawn & ~trace.kept & (trace.depths == depth)) <= 2
    for row in np.flatnonzero(found.alive):
        own = [child for child in np.flatnonzero(trace.parents == row) if trace.kept[child]]
        if own:
            assert at[own].min() - 1e-9 <= at[row] <= at[own].max() + 1e-9
    assert found.alive.sum() >= len(found.ends) and not found.alive[~trace.kept].any()


def test_free_to_write_anything_it_counts_what_nobody_has(models: Zoo) -> None:
    found = grown(models, "writer", 20, constrained=False)
    trace = models.bundles["writer"].trace(HISTORY, 20, constrained=False)
    nobody_has = sum(not len(trace.items[row]) for row in ended(trace))
    assert found.invalid == nobody_has > 0
    for width, pruned in ((20, "<1%"), (99, "0%")):
        assert f"hold {pruned} of" in beam_search.words(grown(models, "writer", width), "Writer", width, True)
    flat = dataclasses.replace(found, trace=dataclasses.replace(trace, scores=trace.scores - 9))
    assert "has 0.0%" not in beam_search.words(flat, "Writer", 20, False)
    words = beam_search.words(found, "Writer", 20, False)
    assert f"**{nobody_has} of its 20 semantic IDs**" in words
    drawn = go.Figure(beam_figures.beam(found, "#0072b2", [])).to_json()
    assert "no item" in drawn and drawn.count('"symbol":"x"') == 1


def test_what_is_weighed_is_told_for_each_way_of_writing(models: Zoo) -> None:
    told = {
        (width, held): "likeliest are scored"
        in beam_search.words(grown(models, "writer", width, held), "W", width, held)
        for width, held in ((3, False), (3, True), (99, False))
    }
    assert told == {(3, False): True, (3, True): False, (99, False): False}
    trace = grown(models, "writer", 3, False).trace
    kept = [np.count_nonzero((trace.depths == step) & trace.kept) for step in (0, 1, 2)]
    assert list(trace.considered) == [3 * max(many, 1) for many in kept]  # three codes after each prefix


def test_items_of_the_history_are_marked_where_they_are_written(models: Zoo) -> None:
    # 7 shares its codes with 3 and may be recommended for that; free to write anything, items of the history come again
    for name, history, constrained, width in (("writer", (1, 3), True, 40), ("ragged", (3, 6, 8, 38), False, 100)):
        trace = models.bundles[name].trace(history, width, constrained=constrained, dropped=10)
        found = beam_search.tree(models, trace, models.bundles[name].items_with, 3, history)
        known = [bool(set(items.tolist()) & set(history)) for items in trace.items]
        assert found.known.tolist() == known == beam_search.table(found)["in the history"].tolist()
        drawn = beam_figures.beam(found, "#0072b2", [])["layout"]["yaxis"]["ticktext"]
        assert [text.endswith("†") for text in drawn] == [known[row] for row in found.ends]
        assert any(known[row] for row in found.ends) and "†" in beam_search.known_words(found, constrained, True)
    assert not grown(models, "writer").known.any()  # nobody said what the history is


def test_hostile_titles_are_text_in_the_tree(tmp_path: Path) -> None:
    path = make_writers(tmp_path)
    rename(path, HOSTILE * 5, ODD_IDS)
    models = Zoo.open(path)
    found = grown(models, "writer", 20)
    drawn = go.Figure(beam_figures.beam(found, "#0072b2", ["<b>x</b>"])).to_json()
    assert "<script" not in drawn and "<b>x" not in drawn and "$\\\\frac" not in drawn


def test_the_beam_is_computed_in_its_section_alone_and_stands_in_the_address(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    trace = Bundle.trace
    monkeypatch.setattr(Bundle, "trace", lambda self, *a, **b: asked.append(b) or trace(self, *a, **b))
    opened()
    assert not asked
    app = opened(section="beam")
    assert len(asked) == 1
    app.get_by_key("compare_beam").set_value("writer").run()
    assert app.query_params["beam"] == "writer"
    app.get_by_key("compare_width_writer").set_value("10").run()
    app.get_by_key("compare_temperature_writer").set_value("2.5").run()
    assert app.query_params["temperature"] == "2.5" and asked[-1]["temperature"] == 2.5
    app.get_by_key("compare_write").set_value("anything").run()
    assert (app.query_params["width"], app.query_params["write"]) == ("10", "anything")
    assert any("belong to no item" in text.value or "belongs to no item" in text.value for text in app.markdown)
    app.button(key="compare_drop_last").click().run()  # it stays while the history changes
    assert app.query_params["beam"] == "writer" and len(app.get("plotly_chart")) == 1
    run_without_fault(app.get_by_key("compare_beam").set_value("ragged"))
    assert not {"temperature", "width", "write"} & set(app.query_params)


def test_a_beam_is_held_against_no_more_items_than_there_are(opened: Open) -> None:
    app = opened(section="beam", beam="writer", k="100")
    (words,) = (text.value for text in app.markdown if "By beam width" in text.value)
    assert "of the first 37." in words and words.endswith("of 37.")  # of 40 items, 3 are in the history


# --- attention


def codes(weights: np.ndarray, positions: list[int], levels: list[int], causal: bool = False) -> AttentionMap:
    items = tuple(positions)
    return AttentionMap(weights.astype(np.float32), items, items, causal, False, False, False, tuple(levels))


def test_codes_are_grouped_by_item_and_cells_are_blank_only_where_all_are() -> None:
    weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]])[None, None]
    found = views.by_item(codes(weights, [4, 4, 5], [0, 1, 0]))
    assert found.weights[0, 0] == pytest.approx(np.array([[0.45, 0.55], [0.75, 0.25]]), abs=1e-6)
    assert found.positions == (4, 5) and not found.levels
    same = codes(weights, [4, 5, 6], [])
    assert views.by_item(same) is same
    twice = AttentionMap(weights.astype(np.float32), (0, 0, 1), (7, 7, 7), False, False, False, False, (0, 1, 0))
    assert views.by_item(twice).positions == (0, 1)  # an item that stands twice is two events
    nan = np.nan
    weights = np.array([[1.0, nan, nan], [0.5, 0.5, nan], [0.2, 0.3, 0.5]])[None, None]
    found = views.by_item(codes(weights, [0, 0, 1], [0, 1, 0], causal=True)).weights[0, 0]
    assert np.isnan(found[0, 1]) and np.isfinite(found[[0, 1, 1], [0, 0, 1]]).all()
    assert np.nansum(found, axis=1) == pytest.approx(1)
    assert not views.sees_whole_items(codes(weights, [0, 0, 1], [0, 1, 0], causal=True))
    weights[..., 0, 1] = 0.25
    assert views.sees_whole_items(codes(weights, [0, 0, 1], [0, 1, 0], causal=True))


def test_positions_of_codes_are_told_apart_and_the_mean_over_people_is_of_items(models: Zoo) -> None:
    named = views.names([0, 0, 1, None], [0, 0, 1, None], ["a", "b"], [0, 1, -1, None])
    assert named.numbers == ("1a", "1b", "2", "next")
    profile = views.measure(models, models.bundles["writer"])
    assert profile is not None and profile.rows.shape[-1] == len(profile.back)


def test_what_a_written_code_looked_at_is_the_sum_over_the_codes_of_an_item(models: Zoo) -> None:
    found = models.bundles["writer"].cross_attention([1, 2, 1], 9)
    whole, called, places = beam_search.weights(found, models.titles, None, False)
    parts, names, _ = beam_search.weights(found, models.titles, 1, True)
    assert places == [0, 1, 2] and len(called) == 3
    assert parts.shape == (3, 12) and len(set(names.numbers)) == 12  # one place before the three codes of each item
    assert whole == pytest.approx(np.full((3, 3), 1 / 3), abs=1e-5)  # the toy looks at all alike
    rows = beam_search.steps(found, [])
    assert rows[0].startswith("code 1: ")
    assert "almost evenly" in beam_search.sentence("Writer", "Nine", whole, called)
    assert "40% of its attention went to the codes" in beam_search.sentence("Writer", "Nine", 0.6 * whole, called)
    assert beam_search.wide(whole, called, rows)["mean"].sum() == pytest.approx(1, abs=1e-5)
    assert list(beam_search.by_event(found).values()) == pytest.approx(whole.mean(axis=0))


def test_the_page_attention_by_item_and_by_code(opened: Open) -> None:
    page = opened("attention", model="writer")
    assert [heading.value for heading in page.header] == ["What the generated codes looked at"]
    page.get_by_key("attention_unit").set_value("codes").run()
    page.get_by_key("attention_decoder_writer").set_value("2").run()
    assert (page.query_params["unit"], page.query_params["decoder"]) == ("codes", "2")
    page = opened("attention", model="writer", section="positions", decoder="2")
    assert any("grouped" in caption.value for caption in page.caption)
    run_without_fault(page.get_by_key("attention_view").set_value("rollout"))
    run_without_fault(page.get_by_key("attention_model_writers").set_value("alpha"))
    assert not {"unit", "decoder"} & set(page.query_params)
    told = " ".join(info.value for info in opened("attention", model="ragged").info)
    assert "no attention between the codes it generates and the history" in told and "has no attention to show" in told


def test_pages_say_what_a_model_that_writes_codes_has(opened: Open) -> None:
    page = opened("map", item="toy-3", space="writer")
    assert "Writer: its tokenizer's latents" in page.selectbox(key="map_space").options
    assert any("generates semantic IDs and has no item vectors" in caption.value for caption in page.caption)
    page = opened("metrics", section="protocol")
    told = " ".join(map(str, page.table[0].value.to_numpy().ravel()))
    assert "Writer: ranks from a beam" in told and "Ragged: exact ranks" in told
