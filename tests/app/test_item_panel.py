"""The detail panel: what it says is what the models say, closed sections ask nothing, clicks are checked."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.testing.v1 import AppTest

from app.analysis import recommend
from app.components import item_panel
from app.figures import item_panel as contents
from app.session import state
from app.store.catalogue import Catalogue
from engine.runtime import Zoo
from tests.app.conftest import Open, alone, run_without_fault
from tests.runtime.bundles import PARTS, TOYS, count_repeats, make_zoo, with_parts

HISTORY = (1, 2, 3)
ADDRESS = {"ds": "toys", "h": "toy-1~toy-2~toy-3", "item": "toy-9"}


def panels(app: AppTest) -> list[dict[str, Any]]:
    """What the panels on the screen show, of which there should be one at most."""
    drawn = (json.loads(element.proto.json or "{}") for element in app.get("bidi_component"))
    return [data for data in drawn if isinstance(data, dict) and "sections" in data]


def act(**clicked: object) -> AppTest:
    """As if the panel had been clicked."""
    page = alone("about", **ADDRESS)
    page.session_state["clicked"] = ("app.components.item_panel", {"id": "toy-9", **clicked})
    return run_without_fault(page)


def test_the_panel_shows_the_ranks_and_probabilities_that_the_models_give(models: Zoo) -> None:
    rows = {row["name"]: row for row in contents.ranks(models, list(models.bundles), HISTORY, 9, 10)}
    for name, bundle in models.bundles.items():
        assert float(rows[name]["rank"]) == bundle.ranks(HISTORY, [9])[0]
        everything = recommend.top_k(models, name, HISTORY, 40)
        if everything.share is None:
            assert rows[name]["share"] == "" and bundle.cannot("probability") is not None
        else:
            share = recommend.placement(models, name, HISTORY, 9, 10).share
            assert share == pytest.approx(everything.share[everything.items == 9][0])
    assert list(rows) == list(models.bundles)  # the one order of lists
    (row,) = contents.ranks(models, ["alpha"], (), 9, 10)
    assert "needs at least one item" in row["cannot"]


def test_an_item_is_more_popular_than_those_that_have_fewer_events(root: Path) -> None:
    films = Zoo.open(root / "exports" / "films")
    order, catalogue = np.argsort(films.popularity, kind="stable").tolist(), Catalogue(films.items)
    least, rare, second, most = (contents.card(films, catalogue, order[at])["standing"] for at in (0, 20, -2, -1))
    assert "more popular" not in least and "more popular" not in most
    assert rare.endswith("more popular than 0.18%") and second.endswith("more popular than 99.98%")


def test_leave_one_out_has_a_cell_per_event_and_model_and_the_same_reason_is_said_once(models: Zoo) -> None:
    reasons = contents.why(models, ["alpha", "popular"], HISTORY, 9, slow=False)
    assert [model["name"] for model in reasons["models"]] == ["alpha", "popular"]
    effect = recommend.leave_one_out(models, "alpha", HISTORY, 9)
    assert [event["cells"][0]["text"] for event in reasons["events"]] == [f"{rank:.0f}" for rank in effect.rank_without]
    moves = [event["cells"][0]["move"] for event in reasons["events"]]
    assert np.array_equal(np.sign(moves), np.sign(effect.move))
    (refusal,) = contents.why(models, ["alpha", "beta"], (1,), 9, slow=False)["cannot"]
    assert refusal.startswith("Alpha and Beta: ") and "nothing can be left out" in refusal


def test_parts_that_a_query_adds_up_are_told(exports: Path, tmp_path: Path) -> None:
    shutil.copytree(exports / "toys", tmp_path / "toys")
    with_parts(tmp_path / "toys" / "alpha", TOYS[0])
    models = Zoo.open(tmp_path / "toys")
    (words,) = contents.why(models, ["alpha", "popular"], HISTORY, 9, slow=False)["sums"]
    score = models.bundles["alpha"].scores(HISTORY)[9]
    total, parts = words.removeprefix("Alpha adds up to ").replace("−", "-").split(", exactly: ")
    assert all(f"{part} " in parts for part in PARTS) and float(total) == pytest.approx(score, abs=1e-3)
    assert sum(map(float, re.findall(r"[+-][0-9.]*[0-9]", parts))) == pytest.approx(float(total), abs=1e-9)


def test_parts_that_do_not_add_up_take_no_other_model_along(exports: Path, tmp_path: Path) -> None:
    shutil.copytree(exports / "toys", tmp_path / "toys")
    with_parts(tmp_path / "toys" / "alpha", TOYS[0], (0.5, 0.6))
    reasons = contents.why(Zoo.open(tmp_path / "toys"), ["alpha", "popular"], HISTORY, 9, slow=False)
    assert [model["name"] for model in reasons["models"]] == ["popular"]
    assert "do not add up" in reasons["cannot"][0]


def test_it_stands_beside_every_page_while_an_item_is_selected(open_app: Open) -> None:
    (panel,) = panels(open_app(ds="hostile", item="a.b"))
    assert panel["title"] == "<script>alert(1)</script>"  # its widget writes text
    app = open_app(page="about", **ADDRESS)
    (panel,) = panels(app)
    assert panel["id"] == "toy-9" and not any("failed" in section for section in panel["sections"].values())
    del app.query_params["item"]
    assert not panels(app.run())


def test_an_item_of_the_history_is_ranked_among_others_unless_repeats_count(open_app: Open, tmp_path: Path) -> None:
    notes = []
    for name, change in (("first", Path), ("count", count_repeats)):
        folder = change(make_zoo(tmp_path / name, name="toys")).parent
        (panel,) = panels(open_app(folder, page="about", **ADDRESS | {"item": "toy-1"}))
        notes.append(panel["sections"]["ranks"]["content"]["note"])
    assert "ranked among the items left" in notes[0]
    assert notes[1] == "In the history; repeats count here, so it may come again."


def test_a_run_leaves_it_where_it_is_until_it_is_drawn_anew(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """An element in its place would take the keyboard's focus away with it."""
    app = open_app(page="about", **ADDRESS)
    sent: list[ForwardMsg] = []
    enqueue = ForwardMsgQueue.enqueue

    def note(queue: ForwardMsgQueue, message: ForwardMsg) -> None:
        sent.append(message)
        enqueue(queue, message)

    monkeypatch.setattr(ForwardMsgQueue, "enqueue", note)
    app.run()
    first = [message.delta.WhichOneof("type") for message in sent if list(message.metadata.delta_path) == [0, 0]]
    assert panels(app) and first == ["add_block"]


def test_sections_that_are_closed_compute_nothing(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(page="about", ds="toys")
    computed: list[str] = []
    for section in item_panel.SECTIONS:
        monkeypatch.setattr(contents, section, lambda *args, section=section, **more: computed.append(section))
    app.query_params["item"] = "toy-9"
    for name in ("ranks", "why", "near"):  # toys have no tokenizers
        app.session_state[item_panel._CLOSED] = set(item_panel.SECTIONS) - {name}
        computed.clear()
        app.run()
        assert computed == [name]
        (panel,) = panels(app)
        assert [other for other, section in panel["sections"].items() if section["open"]] == [name]


@pytest.mark.usefixtures("models")
def test_what_is_clicked() -> None:
    assert "item" not in act(do="close").query_params
    assert act(do="select", to="toy-4").query_params["item"] in ("toy-4", ["toy-4"])
    assert act(do="add", added=0).session_state[state._KEY].history == ("toy-1", "toy-2", "toy-3", "toy-9")
    for clicked in (
        {"do": "close", "id": "toy-8"},  # of a panel that is no more
        {"do": "select", "to": "nobody's"},
        {"do": "remove"},  # it is not in the history
        {"do": "add", "added": 1},  # of a panel that saw another history
        {"do": "page", "to": "../secret"},
        {"do": "prefix", "to": "nothing", "prefix": "1"},
        {"do": "toggle", "to": ["why"]},
        {},
    ):
        now = act(**clicked).session_state[state._KEY]
        assert (now.item, now.history) == ("toy-9", ("toy-1", "toy-2", "toy-3"))
