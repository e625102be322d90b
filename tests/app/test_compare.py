"""Compare: the answers behind the page, what the lists say, and the page itself. Clicks are in tests/browser/test_compare.py."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app import examples, zoo
from app.analysis import beam_search, model_card, model_flow, next_in_log, recommend
from app.figures import compare
from app.screens.compare import actions
from app.session import history_edits, state
from app.text import percent
from engine.runtime import Zoo
from tests.app.conftest import Open, told
from tests.runtime.bundles import TOYS, count_repeats, make_zoo, seal

LETTERS = ("a", "b", "c", "d")


@pytest.fixture
def hostile(exports: Path, monkeypatch: pytest.MonkeyPatch) -> Zoo:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(exports))
    return zoo.open_zoo("hostile")


def cards(models: Zoo, history: tuple[int, ...], k: int = 5, **more: Any) -> list[dict[str, Any]]:
    target = more.pop("target", None)
    found = recommend.ask(models, list(models.bundles), history, k, target=target, **more)
    return compare.cards(models, found, history, target=target)


# --- answers


def test_where_repeats_count_lists_hold_items_of_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(count_repeats(make_zoo(tmp_path / "exports")).parent))
    models = zoo.open_zoo(next(iter(zoo.datasets())))
    (found,) = (card for card in cards(models, (1, 2), 40) if card["name"] == "alpha")
    assert {row["id"] for row in found["rows"] if row["known"]} == {"toy-1", "toy-2"} and found["repeats"]
    assert sum(recommend.top_k(models, "alpha", (1, 2), 40).share) == pytest.approx(1)


@pytest.mark.parametrize("name", ["alpha", "popular"])
def test_shares_are_probabilities_of_all_that_could_be_recommended(models: Zoo, name: str) -> None:
    everything = recommend.top_k(models, name, (1, 2), 100)
    assert len(everything.items) == 38
    assert everything.share.sum() == pytest.approx(1)
    scores = everything.scores.astype(float)
    weights = scores if name == "popular" else np.exp(scores)  # counts, and logits of a softmax
    assert everything.share / everything.share[0] == pytest.approx(weights / weights[0])


def test_bars_compare_probabilities_with_the_first_item_and_a_model_of_distances_has_none(models: Zoo) -> None:
    shown = {card["name"]: card for card in cards(models, (1, 2))}
    shares = recommend.top_k(models, "alpha", (1, 2), 5).share
    assert [row["bar"] for row in shown["alpha"]["rows"]] == pytest.approx(shares / shares[0], abs=1e-3)
    assert [row["share"] for row in shown["alpha"]["rows"]] == [percent(share) for share in shares]
    assert [row.get("bar") for row in shown["beta"]["rows"]] == [None] * 5
    assert "no probabilities" in shown["beta"]["note"] and "no probabilities" not in shown["alpha"]["note"]


def test_a_model_that_cannot_answer_says_why_and_the_others_go_on(models: Zoo) -> None:
    found = {answer.name: answer for answer in recommend.ask(models, list(models.bundles), (), 5)}
    assert "needs at least one item" in str(found["alpha"].cannot)
    assert found["popular"].cannot is None
    assert len(found["popular"].items) == 5
    shown = compare.cards(models, list(found.values()), ())
    assert [bool(card["rows"]) for card in shown] == [answer.cannot is None for answer in found.values()]
    reasons = recommend.why(models, recommend.ask(models, list(models.bundles), (1,), 5), (1,), 9)
    assert any("Alpha" in reason for reason in reasons.cannot)
    assert [answer.name for answer in reasons.answers] == ["plain", "popular"]


def test_agreement_of_a_pair(models: Zoo) -> None:
    found = recommend.ask(models, ["alpha", "beta", "alpha"], (1, 2), 10)
    frame = recommend.agreement(found, 10)
    same = frame[(frame["first"] == "Alpha") & (frame["second"] == "Alpha")]
    assert (same["shared"] == 10).all() and same[["jaccard", "rbo"]].to_numpy() == pytest.approx(1)
    beta = set(found[1].items)
    assert frame.iloc[1]["shared"] == len(beta & set(found[0].items))

    assert "50 places carry 99.92% of its weight" in recommend.rbo_words(50)
    assert "10 places carry 86%" in recommend.rbo_words(10)
    shared = recommend.spread_words(recommend.Spread(4, 4, 0), 2)
    assert shared.endswith("4 are recommended by both models and none by one alone.")


# --- what is shown


def test_badges_count_the_lists_an_item_is_in_and_what_came_next_is_marked(models: Zoo) -> None:
    shown = cards(models, (1, 2), 20)
    lists = [[row["id"] for row in card["rows"]] for card in shown]
    for card in shown:
        for row in card["rows"]:
            times = sum(row["id"] in ids for ids in lists)
            assert row.get("badge") == (f"{times} of 5" if times > 1 else None)
    for target in range(0, 40, 3):
        for card in cards(models, (1, 2, 3), 5, target=target):
            truths = [row for row in card["rows"] if row.get("truth")]
            assert len(truths) == 1
            rank = models.bundles[card["name"]].ranks([1, 2, 3], [target])[0]
            # level items share a rank, a list has an order
            assert float(truths[0]["rank"]) == pytest.approx(rank, abs=20)
            assert bool(truths[0].get("beyond")) == (truths[0] is card["rows"][5] if len(card["rows"]) > 5 else False)


def test_movements(models: Zoo) -> None:
    before = recommend.top_k(models, "alpha", (1, 2, 3), 8).items.tolist()
    for row in (card := cards(models, (1, 2), 8, pinned=(1, 2, 3))[0])["rows"]:
        item = models.item_ids.index(row["id"])
        now = int(row["rank"])
        if item not in before:
            assert (row["change"], row["moved"]) == ("new", "new")
        elif before.index(item) + 1 == now:
            assert "change" not in row
        else:
            steps = before.index(item) + 1 - now
            assert row["moved"] == (f"↑{steps}" if steps > 0 else f"↓{-steps}")
    now_listed = {row["id"] for row in card["rows"]}
    assert [row["id"] for row in card["before"]] == [models.item_ids[item] for item in before]
    assert [row["dropped"] for row in card["before"]] == [row["id"] not in now_listed for row in card["before"]]


def test_a_list_says_what_its_model_can_and_cannot_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_zoo(tmp_path / "exports")
    able = json.loads((path / "alpha" / "manifest.json").read_text("utf-8"))["capabilities"]
    seal(path / "alpha", capabilities=able | {"reads_order": False})
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(path.parent))
    models = zoo.open_zoo("toys")
    for card in cards(models, (1, 2), 3):
        bundle, said = models.bundles[card["name"]], card["can"]
        assert said["How it works"] == model_card.summary(bundle)
        assert {"Items it has never seen", "Ties", "Invalid codes", "Can show"} <= said.keys()
        for name in ("attention", "neighbours", "map"):
            reason = model_card.cannot(bundle, name)
            assert (name in said["Can show"]) == (reason is None) and said.get(f"No {name}") == reason
        unordered = card["name"] == "alpha"
        assert ("does not read order" in card["note"]) == ("Order of the history" in said) == unordered


def test_cards_are_plain_data_figures_escape_titles_and_a_move_is_as_long_for_every_model(hostile: Zoo) -> None:
    shown = cards(hostile, (0, 1, 2), 40, target=3)
    assert json.loads(json.dumps(shown)) == shown
    titles = {row["title"] for card in shown for row in card["rows"]}
    assert "기생충" in titles  # as it is: the widget writes text, never HTML
    assert any(title.startswith("\u2068") for title in titles)
    history = tuple(range(8))
    answers = recommend.ask(hostile, list(hostile.bundles), history, 5)
    found = recommend.why(hostile, answers, history, 9)
    pairs = zip(found.answers, found.effects, strict=True)
    columns = [(answer.title, answer.style, effect) for answer, effect in pairs]
    figure = go.Figure(compare.effect_bars(columns, [hostile.titles[event] for event in history], range(8)))
    assert "<script" not in figure.to_json() and "$" not in figure.to_json().replace("&#36;", "")
    reach = max(np.abs(effect.move).max() for effect in found.effects)
    for bars, effect in zip(figure.data, found.effects, strict=True):
        assert np.array(bars.x) == pytest.approx(effect.move / reach)
    able = [answer for answer in answers if answer.top is not None]
    for name, measure in recommend.MEASURES.items():
        values = measure([answer.items for answer in able], 5)
        z = go.Figure(compare.agreement([answer.title for answer in able], values, name, 5)).data[0].z
        assert [[value is not None for value in row] for row in z] == np.tri(4, dtype=bool).tolist()
    layouts = [compare.agreement(["SASRec"] * many, np.eye(many), "rbo", 5)["layout"] for many in (6, 22)]
    assert [layout["xaxis"]["tickangle"] for layout in layouts] == [-30, -90], "names that stand too near to slant"


def test_long_histories_show_the_strongest_events(models: Zoo) -> None:
    history = tuple(range(30))
    (effect,) = recommend.why(models, recommend.ask(models, ["plain"], history, 5), history, 35).effects
    places = recommend.strongest([effect], 16)
    rest = sorted(set(range(30)) - set(places))
    assert len(places) == 16 and np.abs(effect.move[rest]).max() <= np.abs(effect.move[places]).min()


def test_the_rank_table_has_what_the_models_say(models: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = recommend.ask(models, list(models.bundles), (1, 2), 5, pinned=(1, 2, 3))
    table = recommend.rank_table(models, answers, (1, 2), 5, pinned=(1, 2, 3), target=30)
    assert set(table.items) == {30}.union(*(answer.items for answer in answers))
    for column, answer in enumerate(table.answers):
        assert table.ranks[:, column].tolist() == models.bundles[answer.name].ranks([1, 2], table.items).tolist()
        assert table.before is not None
        assert table.before[:, column].tolist() == models.bundles[answer.name].ranks([1, 2, 3], table.items).tolist()
    assert table.mean == pytest.approx(np.minimum(table.ranks, 6).mean(axis=1)) and (np.diff(table.mean) >= 0).all()
    monkeypatch.setattr(recommend, "known_ranks", lambda *asked: [5.5] * len(asked[3]))  # two share places 5 and 6
    assert set(recommend.rank_table(models, answers, (1, 2), 5).mean) == {6}
    monkeypatch.undo()
    shown = compare.rank_table(models, table, (1, 2), 5, target=30)
    assert json.loads(json.dumps(shown)) == shown and sum(row["truth"] for row in shown["rows"]) == 1


def test_items_that_a_generator_cannot_tell_apart_share_a_rank(models: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beam_search, "slow", lambda *asked: True)
    written = recommend.TopK(np.array([4, 7, 9]), np.array([-1.0, -2.0, -2.0]), None)
    assert recommend.known_ranks(models, "plain", (1, 2), [7, 9, 4, 1], written) == [2.5, 2.5, 1.0, None]


def test_the_flow_of_every_model_goes_from_the_history_to_its_list(models: Zoo, root: Path) -> None:
    for answer in recommend.ask(models, list(models.bundles), (1, 2), 5):
        assert answer.top is not None
        flow = model_flow.steps(models, answer.name, (1, 2), answer.top)
        assert flow[0].title == "History" and models.titles[answer.items[0]][:6] in flow[-1].detail
        attention, words = models.bundles[answer.name].manifest.attention, {step.title: step.detail for step in flow}
        assert (attention is not None) == ("Self-attention" in words)
        assert (attention is not None and attention.next_token) == ("[MASK]" in words.get("Self-attention", ""))
    films = Zoo.open(root / "exports" / "films")
    tops = {name: recommend.top_k(films, name, (1, 2), 30) for name in ("markov", "tiger", "transrec")}
    last, wide, step = (model_flow.steps(films, name, (1, 2), top) for name, top in tops.items())
    assert last[0].detail == "The last of 2 items." and wide[3].detail.startswith("Width 30, ")  # of a list of 30
    assert last[1].title == "Item-to-item" and "whole history" not in step[2].detail  # of which it reads one item


def test_a_score_of_nothing_is_of_the_items_that_are_read(root: Path) -> None:
    films = Zoo.open(root / "exports" / "films")
    led_to = int(recommend.top_k(films, "item-knn", (0,), 1).items[0])  # by an item that is not among the latest two
    parts = recommend.contributions(films, "item-knn", (0, 1, 2), led_to)
    assert parts is not None and not parts.events.any()
    assert recommend.sum_words("Item-kNN", parts, ["a", "b", "c"]).endswith("no item that it reads leads there.")


def test_a_network_that_scores_every_item_is_no_table_of_counts(tmp_path: Path) -> None:
    path = make_zoo(tmp_path, (TOYS[3],)) / "popular"
    training = json.loads((path / "manifest.json").read_text("utf-8"))["training"]
    seal(path, family="neumf", training=training | {"parameters": 7})
    models = Zoo.open(path.parent)
    flow = model_flow.steps(models, "popular", (1, 2), recommend.top_k(models, "popular", (1, 2), 3))
    assert [step.title for step in flow] == ["History", "Network", "List"]


# --- the page


def test_the_page_shows_a_result_before_any_click_and_which_models_were_refused(open_app: Open, root: Path) -> None:
    app = open_app(ds="hostile")
    assert app.title[0].value.endswith("?")
    assert any("broken/manifest.json" in warning.value for warning in app.warning)
    assert not app.get("plotly_chart") and not app.error  # no figure before somebody opens one
    app.query_params["section"] = "agreement"
    assert len(app.run().get("plotly_chart")) == 1
    alone = open_app(ds="toys", h="toy-1", m="alpha", section="agreement")
    assert "With one list there is nothing to compare." in told(alone)
    empty = open_app(root / "exports", ds="films", h="", m="tiger", section="beam")
    assert "TIGER needs at least one item" in told(empty)
    empty.query_params["section"] = "flow"
    assert "No model has a list" in told(empty.run())


def test_picking_a_held_out_user_closes_their_list_and_what_came_next_stands_under_the_title(open_app: Open) -> None:
    app = open_app(ds="toys", h="toy-1")
    for key, value in (("history_random", None), ("history_user", "u3")):
        app.session_state["history_user_open"] = True
        app.run()
        widget = app.button(key=key).click() if value is None else app.text_input(key=key).set_value(value)
        widget.run()
        assert not app.exception and not app.session_state["history_user_open"]
    words = [element.value for element in app.markdown]
    answer = next(place for place, text in enumerate(words) if text.startswith("What came next"))
    assert "rank" in words[answer] and answer < words.index(":gray[What if:]")
    app.session_state["history_user_open"] = True
    app.run()
    app.text_input(key="history_user").set_value("nobody").run()
    assert app.session_state["history_user_open"]  # it says that there is nobody of that name


def test_a_users_history_that_is_cut_says_so(open_app: Open, models: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = len(models.users["history"][examples.user_row(models, "u3")])
    cut = f"the latest {whole - 1} of its {whole} items"
    assert not any(cut in caption.value for caption in open_app(ds="toys", u="u3").caption)
    monkeypatch.setattr(examples, "MAX_HISTORY", whole - 1)
    assert any(cut in caption.value for caption in open_app(ds="toys", u="u3").caption)


def test_people_are_found_by_name_or_number(models: Zoo) -> None:
    assert [examples.find_user(models, text) for text in ("u3", " 3 ", "9", "")] == ["u3", "u3", None, None]


def test_edits_go_to_the_history_of_a_what_if_that_is_looked_at(open_app: Open) -> None:
    app = open_app(ds="toys", h="toy-1~toy-2~toy-3", b="toy-2~toy-1", k="1")
    assert "2 items of B" in app.title[0].value
    app.get_by_key("history_side").set_value("A").run()
    assert "3 items of A" in app.title[0].value and any("for B" in caption.value for caption in app.caption)
    assert app.query_params["s"] == "a" and app.session_state[state._KEY].current == ("toy-1", "toy-2", "toy-3")
    app.button(key="history_clear").click().run()
    assert (app.query_params["h"], app.query_params["b"]) == ("", "toy-2~toy-1")
    app.get_by_key("history_side").set_value("B").run()
    app.button(key="history_clear").click().run()
    assert (app.query_params["h"], app.query_params["b"]) == ("", "") and "s" not in app.query_params
    assert "empty" in app.title[0].value and "B" in app.title[0].value and not app.error


def test_an_example_or_a_user_takes_the_place_of_both_histories_and_says_so(open_app: Open) -> None:
    app = open_app(ds="toys", h="toy-1~toy-2", b="toy-2")
    app.get_by_key("history_example").set_value(0).run()
    assert "b" not in app.query_params and not app.error
    assert [toast.value for toast in app.toast if toast.value.endswith("B was discarded.")]
    app.button(key="history_clear").click().run()
    app.get_by_key("history_example").set_value(0).run()
    assert not app.toast
    app = open_app(ds="toys", u="u3", b="toy-2")  # a user whose history is A already
    app.session_state["history_user_open"] = True
    app.run()
    app.text_input(key="history_user").set_value("u3").run()
    assert [toast.value for toast in app.toast if toast.value.endswith("B was discarded.")]
    assert "b" not in app.query_params and app.query_params["u"] == "u3"


def test_clicks_in_the_lists(models: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, str]] = []
    monkeypatch.setattr(state, "get", lambda: state.State("toys", history=("toy-4", "toy-5")))
    for name in ("select", "add"):
        monkeypatch.setattr(state, name, lambda item_id, name=name: done.append((name, item_id)))
    for said in (
        {"do": "explain", "id": "toy-9"},
        {"do": "explain", "id": "nobody's"},
        {"do": "add", "id": "toy-6", "known": 0},
        {"do": "add", "id": "toy-4", "known": 1},  # of a list that repeats items
        {"do": "add", "id": "toy-5", "known": 0},  # a second click, before the first was answered
        {"do": "add", "id": "toy-7"},
    ):
        actions.act(said)
    assert done == [("select", "toy-9"), ("add", "toy-6"), ("add", "toy-4")]


def test_experiments_make_a_variant_that_adds_up_until_it_is_discarded_or_kept(open_app: Open) -> None:
    app = open_app(ds="toys", h="toy-1~toy-2~toy-3")
    edits = {"compare_drop_last": "toy-1~toy-2", "compare_swap_last": "toy-2~toy-1", "compare_nothing": ""}
    for button, variant in edits.items():
        app.button(key=button).click().run()
        assert (app.query_params["h"], app.query_params["b"]) == ("toy-1~toy-2~toy-3", variant)
        assert not app.exception and not app.error
    app.button(key="history_discard").click().run()
    assert "b" not in app.query_params
    app.button(key="compare_swap_last").click().run()
    app.button(key="history_keep").click().run()
    assert app.query_params["h"] == "toy-1~toy-3~toy-2" and "b" not in app.query_params
    app.session_state["compare_more"] = True  # what needs to be told with what
    app.run()
    app.selectbox(key="compare_kind").set_value("Keep the latest").run()
    app.number_input(key="compare_count").set_value(2).run()
    app.button(key="compare_do").click().run()
    assert app.query_params["b"] == "toy-3~toy-2"
    app.selectbox(key="compare_kind").set_value("Swap two").run()
    for variant in ("toy-2~toy-3", "toy-3~toy-2"):  # it is applied again to what it made
        app.button(key="compare_do").click().run()
        item = app.selectbox(key="compare_first")
        assert app.query_params["b"] == variant
        assert item.proto.set_value  # the browser is told anew: another item is there
        assert item.options[item.index].startswith(f"2  Toy {variant[-1]}")


@pytest.mark.parametrize(
    ("said", "variant"),
    [
        ({"kind": "Remove one", "first": 1}, ("toy-1", "toy-3")),
        ({"kind": "Swap two", "first": 0, "second": 2}, ("toy-3", "toy-2", "toy-1")),
        ({"kind": "Keep the latest", "count": 1}, ("toy-3",)),
        ({"kind": "Keep the latest", "count": 0}, ()),
        ({"kind": "Reverse"}, ("toy-3", "toy-2", "toy-1")),
        ({"kind": "Remove one", "first": 99}, ("toy-1", "toy-2", "toy-3")),
        ({"kind": "Swap two", "first": 0, "second": -1}, ("toy-1", "toy-2", "toy-3")),
        ({"first": "x"}, ("toy-1", "toy-2", "toy-3")),
    ],
)
def test_described_experiments(models: Zoo, said: dict[str, object], variant: tuple[str, ...]) -> None:
    assert history_edits.edited(("toy-1", "toy-2", "toy-3"), models, said) == variant


def test_the_nearest_neighbour_takes_an_items_place_if_there_is_one(models: Zoo, tmp_path: Path) -> None:
    said = {"kind": "Replace one by its nearest neighbour", "first": 1, "space": "alpha"}
    near = models.bundles["alpha"].neighbours(2, 3).items
    nearest = next(models.item_ids[item] for item in near if item != 1)
    assert history_edits.edited(("toy-1", "toy-2"), models, said) == ("toy-1", nearest)
    for name in ("nothing", "popular"):  # unknown; cannot
        assert history_edits.edited(("toy-1", "toy-2"), models, {**said, "space": name}) == ("toy-1", "toy-2")
    path = make_zoo(tmp_path)
    index = np.load(path / "alpha" / "index.npy")
    index[2] = 0
    np.save(path / "alpha" / "index.npy", index)
    seal(path / "alpha")
    history = ("toy-1", "toy-2")
    assert history_edits.neighboured(history, 1, Zoo.open(path), "alpha") == history


def test_moves_stop_at_the_ends_and_a_shuffle_changes_the_order_alone() -> None:
    assert history_edits.moved(LETTERS, 0, -1) == LETTERS
    assert history_edits.moved(LETTERS, 0, 1) == ("b", "a", "c", "d")
    assert history_edits.moved(LETTERS, 1, 99) == ("a", "c", "d", "b")
    assert history_edits.moved(LETTERS, 9, 1) == LETTERS
    found = history_edits.shuffled(LETTERS, random.Random(1))
    assert sorted(found) == sorted(LETTERS)
    assert found != LETTERS
    assert history_edits.shuffled(("a", "a"), random.Random(1)) == ("a", "a")


# --- what people of a log had next: as counted person by person, and said where it cannot be known


def opened(path: Path, logs: list[list[int]]) -> Zoo:
    """A zoo whose people have these events, the last one held out; in several row groups, as large files come."""
    make_zoo(path.parent, TOYS[:1], name=path.name)
    users = {
        "user": pa.array(range(len(logs)), pa.int32()),
        "user_id": [f"u{row}" for row in range(len(logs))],
        "history": pa.array([log[:-1] for log in logs], pa.list_(pa.int32())),
        "target": pa.array([log[-1] for log in logs], pa.int32()),
    }
    pq.write_table(pa.table(users), path / "users.parquet", row_group_size=7)
    return Zoo.open(path)


@pytest.mark.parametrize(
    "items", [3, 30]
)  # so few that two in a row are common and repeat, and so many that they are not
def test_people_are_counted_by_what_came_directly_after(tmp_path: Path, items: int) -> None:
    rng = np.random.default_rng(items)
    logs = [rng.integers(0, items, rng.integers(1, 15)).tolist() for _ in range(40)]
    models = opened(tmp_path / "toys", logs)
    for history in ((1,), (0, 1), (2, 2), (0, 2, 1)):
        after_history = next_in_log.count_next(models, history)
        assert after_history is not None
        size = len(after_history.after)
        expected = [
            {log[at] for at in range(size, len(log)) if tuple(log[at - size : at]) == after_history.after}
            for log in logs
        ]
        people = sum(map(bool, expected))
        times = Counter(item for following in expected for item in following)
        assert after_history.after == history[-size:] and after_history.people == people
        assert size == 1 or people >= next_in_log.ENOUGH
        assert dict(zip(after_history.items, after_history.shares, strict=True)) == pytest.approx(
            {item: times[item] / people for item in after_history.items}
        )
        most = sorted((n for n in times.values() if n > 1), reverse=True)[: next_in_log.SHOWN]
        assert [times[item] for item in after_history.items] == most
    assert (len(next_in_log.count_next(models, (0, 1)).after) == 2) is (items == 3)  # type: ignore[union-attr]


def test_what_cannot_be_known_is_said(tmp_path: Path) -> None:
    models = opened(tmp_path / "toys", [[1, 2, 3, 5], [2, 1, 4]])
    assert next_in_log.sentence(models, ()) == ""
    assert "No user" in next_in_log.sentence(models, (9,))
    assert "each a different one" in next_in_log.sentence(models, (2,))
    words = next_in_log.sentence(models, (3,))
    assert "1 simulated user had an item after" in words and words.endswith("*.")
    (tmp_path / "toys" / "users.parquet").unlink()
    assert "not exported" in next_in_log.sentence(Zoo.open(tmp_path / "toys"), (2,))
