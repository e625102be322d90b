"""What a page has for itself: in the address, checked before the page is drawn, and still there on the way back to it."""

from __future__ import annotations

import json

import pytest
from streamlit.runtime.scriptrunner import ScriptRunContext
from streamlit.testing.v1 import AppTest

from app import zoo
from app.components import sections
from app.screens import PAGES
from app.screens import attention as attention_page
from app.session import state
from app.session.pages import read
from engine.runtime import Zoo
from tests.app.conftest import Open
from tests.runtime.bundles import seal

ATTENTION = "screens/attention/page.py"


def go(app: AppTest, page: str, **address: str) -> AppTest:
    """As the menu does without an address, and a link with one."""
    app.switch_page(page)
    app.query_params.clear()
    app.query_params.update(address)
    return app.run()


def test_layers_are_those_of_the_model_that_is_shown(models: Zoo) -> None:
    own, problems = read(PAGES["attention"].parameters, {"model": "popular", "layer": "2"}, models)
    assert own == {"model": "popular"} and len(problems) == 1  # it has none
    assert attention_page.attended(models, {}) == "alpha"
    assert attention_page.attended(models, {"model": "gone"}) == "alpha"


def test_a_page_remembers_its_own_and_does_not_lend_it(open_app: Open) -> None:
    app = go(open_app(), ATTENTION)
    assert not app.query_params  # from the front, nothing needs an address
    go(app, ATTENTION, ds="toys", h="toy-1~toy-2", model="beta", item="toy-9", k="3")
    go(app, "screens/metrics/page.py")
    assert "model" not in app.query_params and app.query_params["item"] == "toy-9"  # the item is of all pages
    go(app, ATTENTION)
    assert (app.query_params["model"], app.query_params["item"]) == ("beta", "toy-9")
    app.selectbox(key="tray_dataset").set_value("hostile").run()  # another dataset, other items and models
    assert "item" not in app.query_params and not app.warning
    assert app.query_params["k"] == "3"  # the length of lists is of no dataset


def test_a_link_to_a_page_has_the_selected_item_and_what_the_page_last_had(open_app: Open) -> None:
    app = go(open_app(ds="toys", h="toy-1"), "screens/map/page.py", ds="toys", h="toy-1", space="beta")
    go(app, "screens/catalogue/page.py", ds="toys", h="toy-1", item="toy-3")
    (panel,) = [one for one in app.get("bidi_component") if '"sections"' in one.proto.json]
    (link,) = [link for link in json.loads(panel.proto.json)["links"] if link["page"] == "map"]
    assert {"space=beta", "item=toy-3", "h=toy-1"} <= set(link["href"].partition("?")[2].split("&"))


def test_back_to_a_page_of_the_menu_does_not_lose_the_history(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = go(open_app(ds="toys", h="toy-1~toy-2", k="5"), ATTENTION)  # as the menu does: the address says so
    assert (app.query_params["h"], app.query_params["k"]) == ("toy-1~toy-2", "5")
    monkeypatch.setattr(ScriptRunContext, "is_history_navigation", property(lambda _: True, lambda *_: None))
    go(app, ATTENTION)  # the browser's own step to the page, before the address was there
    assert (app.query_params["h"], app.query_params["k"]) == ("toy-1~toy-2", "5")
    go(app, "screens/compare/page.py")  # where the visitor's way began without an address
    assert app.session_state[state._KEY] == state.default(next(iter(zoo.datasets())), zoo.open_zoo)


def test_of_two_models_of_one_title_either_can_be_chosen(open_changed: Open) -> None:
    app = open_changed("map", lambda path: seal(path / "alpha", title="Beta"), ds="toys", space="beta")
    app.selectbox(key="map_space").set_value("alpha").run()
    assert app.session_state[state._KEY].own["space"] == "alpha"


def test_a_section_that_the_browser_sends_must_be_one_of_the_tabs(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[object] = []
    monkeypatch.setattr(state, "choose", lambda **parameters: chosen.append(parameters))
    for sent in ("The second", "<b>", None):
        monkeypatch.setattr(sections.st, "session_state", {"tabs": sent})
        sections._take("tabs", {"first": "The first", "second": "The second"})
    assert chosen == [{"section": "second"}]


def test_another_dataset_is_searched_anew(open_app: Open) -> None:
    app = open_app(ds="toys", h="toy-1")
    app.text_input(key="history_search").set_value("Toy 4").run()
    assert app.get_by_key("history_add_4")
    app.selectbox(key="tray_dataset").set_value("hostile").run()
    assert app.text_input(key="history_search").value == "" and not app.exception
    go(app, "screens/catalogue/page.py", ds="toys", h="toy-1", find="Toy 4")
    app.selectbox(key="tray_dataset").set_value("hostile").run()
    assert app.text_input(key="catalogue_search").value == "" and "find" not in app.query_params
