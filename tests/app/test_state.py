"""The address says what is on the screen, and a bad one says what it could not find."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner import ScriptRunContext
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from app import zoo
from app.components import sections
from app.screens import PAGES
from app.screens import attention as attention_page
from app.session import state
from app.session.address import MAX_HISTORY, MAX_ID, Address, decode, encode
from app.session.pages import read
from engine.runtime import Zoo
from tests.app.conftest import ODD_IDS, Open, run_without_fault, state_of
from tests.runtime.bundles import TOYS, make_zoo, seal

pytestmark = pytest.mark.usefixtures("models")


def test_the_address_of_a_state_gives_the_state() -> None:
    wanted = state.State("hostile", tuple(ODD_IDS), 7, ("beta", "plain"), ("a~b", "", "a~b"), True)
    address = json.loads(json.dumps(state.params(wanted)))
    assert state.parse(address, ["toys", "hostile"], zoo.open_zoo) == wanted


def test_the_address_of_a_person_is_short_and_an_empty_history_is_not_the_example() -> None:
    found = state.parse({"ds": "toys", "u": "u3"}, ["toys"], zoo.open_zoo)
    assert len(found.history) == 12
    assert found.user == "u3"
    address = state.params(found)
    assert address["u"] == "u3" and "h" not in address
    assert state.parse({"ds": "toys", "h": ""}, ["toys"], zoo.open_zoo).history == ()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"ds": "nowhere"}, "no dataset “nowhere” here; this is Toys."),
        (
            {"ds": "toys", "h": "toy-1~gone~toy-2~../../etc"},
            "2 items in the history that this dataset does not have: “gone”, “../../etc”",
        ),
        ({"ds": "toys", "h": "toy-1", "b": "gone"}, "1 item in the edited history"),
        ({"ds": "toys", "h": "toy-1", "item": "../../etc"}, "item that this dataset does not have: “../../etc”"),
        ({"ds": "toys", "k": "0"}, "length “0”; possible is 1 to 100"),
        ({"ds": "toys", "k": "١٢"}, "length"),
        ({"ds": "toys", "k": "9" * 5_000}, "length"),
        ({"ds": "toys", "m": "beta~zeta"}, "“zeta”"),
        ({"ds": "toys", "u": "nobody"}, "“nobody”"),
        ({"v": "9"}, "another version"),
        ({"ds": "toys", "attention": "zeta", "map": "zeta"}, "“zeta”"),
        ({"ds": "toys", "h": "~".join(["toy-1"] * 500)}, f"A history may have {MAX_HISTORY} items"),
    ],
)
def test_a_bad_address_says_what_it_could_not_find_and_shows_the_rest(address: dict[str, str], said: str) -> None:
    found = state.parse(address, ["toys", "hostile"], zoo.open_zoo, PAGES["report"])
    assert len(found.problems) == 1
    assert said in found.problems[0]
    assert found.dataset == "toys"
    assert len(found.history) <= state.MAX_HISTORY
    assert 1 <= found.k <= state.MAX_K


@pytest.mark.parametrize(("edited", "variant"), [("gone", None), ("gone~toy-2", ("toy-2",)), ("", ())])
def test_an_edited_history_without_a_known_item_is_none(edited: str, variant: tuple[str, ...] | None) -> None:
    now = state.parse({"ds": "toys", "h": "toy-1", "b": edited, "s": "a"}, ["toys"], zoo.open_zoo)
    assert (now.variant, now.shows_a) == (variant, variant is not None)
    assert any("there is no B" in problem for problem in now.problems) == (variant is None)


def test_the_rest_of_a_bad_address_is_on_the_page_and_problems_are_gone_with_a_change(open_app: Open) -> None:
    app = open_app(ds="toys", h="toy-1~gone~toy-3", k="5", m="beta~zeta")
    assert [warning.value for warning in app.warning if "gone" in warning.value]
    assert app.session_state[state._KEY].history == ("toy-1", "toy-3")
    assert app.number_input(key="tray_k").value == 5
    assert app.query_params["h"] == "toy-1~gone~toy-3"  # the address stays as it was asked for, until something changes
    app.number_input(key="tray_k").set_value(7).run()
    assert (app.query_params["k"], app.query_params["h"]) == ("7", "toy-1~toy-3") and not app.warning


def test_what_everybody_sees_first_needs_no_address(open_app: Open) -> None:
    app = open_app()
    first = app.session_state[state._KEY]
    app.button(key="history_clear").click().run()
    assert app.query_params
    app.get_by_key("history_example").set_value(0).run()
    assert not app.query_params
    assert app.session_state[state._KEY] == first


def test_the_browsers_back_button_goes_back_right_after_a_click_too(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app(ds="toys", h="toy-1")
    app.button(key="history_clear").click().run()
    assert app.session_state[state._KEY].history == ()
    app.query_params["h"] = "toy-1~toy-2"  # an address that was not written a moment ago
    app.run()
    assert app.session_state[state._KEY].history == ("toy-1", "toy-2")
    went_back = property(lambda _: True, lambda *_: None)
    sent: list[ForwardMsg] = []
    for history in ("toy-1~toy-2", "toy-1"):
        app.run()
        app.button(key="history_clear").click().run()
        app.query_params["h"] = history  # as a late request has it, but the browser says that it goes back
        with monkeypatch.context() as patched:
            patched.setattr(ScriptRunContext, "is_history_navigation", went_back)
            patched.setattr(ForwardMsgQueue, "enqueue", lambda _, message: sent.append(message))
            app.run()
        assert app.session_state[state._KEY].history == tuple(history.split("~"))
    # The browser is told of the second, to which it did not come from the click's: after it had gone back it may have heard what
    # the click had led to. Of the first it would hear late, and write it over the entry to which it has gone on
    queries = [message.page_info_changed.query_string for message in sent]
    assert any("h=toy-1&" in query for query in queries) and not any("h=toy-1~toy-2" in query for query in queries)


def test_a_late_request_does_not_undo_a_click(open_app: Open) -> None:
    app = open_app(ds="toys", h="toy-1")
    app.button(key="history_clear").click().run()
    told = dict(app.query_params)
    for _ in range(2):  # as requests that were sent before the browser knew, however long that took
        app.query_params["h"] = "toy-1"
        del app.query_params["k"], app.query_params["v"]
        app.run()
        assert app.session_state[state._KEY].history == ()
        assert app.query_params == told
    app.run()  # it names the new address: from now on an old one is meant
    app.query_params["h"] = "toy-1"
    del app.query_params["k"], app.query_params["v"]
    app.run()
    assert app.session_state[state._KEY].history == ("toy-1",)


def test_a_person_stays_known_until_the_history_changes(open_app: Open) -> None:
    app = open_app(ds="toys", u="u2")
    models = Zoo.open(zoo.root() / "toys")
    assert "choose next" in app.title[0].value
    history = tuple(models.item_ids[item] for item in models.users["history"][2].as_py())
    assert app.session_state[state._KEY].history == history
    app.number_input(key="tray_k").set_value(3).run()
    assert app.query_params["u"] == "u2"
    app.button(key="history_clear").click().run()
    assert "u" not in app.query_params
    assert app.session_state[state._KEY].user is None


def test_a_full_history_lets_the_oldest_go(open_app: Open) -> None:
    app = open_app(ds="toys", h="~".join(f"toy-{i % 40}" for i in range(MAX_HISTORY)), k="100")
    assert not app.error
    app.text_input(key="history_search").set_value("toy 22").run()
    app.button(key="history_add_22").click().run()
    history = app.session_state[state._KEY].history
    assert (len(history), history[-1]) == (MAX_HISTORY, "toy-22")
    assert any(f"may have {MAX_HISTORY} items" in warning.value for warning in app.warning)
    app.button(key="history_clear").click().run()
    assert not app.warning


def test_no_exports_at_all(open_app: Open, tmp_path: Path) -> None:
    assert open_app(tmp_path).title[0].value == "There is nothing to show yet"


def test_of_many_models_one_of_each_kind_is_shown_and_whoever_chooses_these_has_a_plain_address(
    open_app: Open, root: Path
) -> None:
    app = open_app(root / "exports", ds="films")
    app.session_state["compare_models_all"] = True  # opens the list of all
    app.run()
    shown, counting = app.button_group(key="compare_models"), app.button_group(key="compare_models_Counting")
    usual = shown.value
    families = [zoo.open_zoo("films").bundles[name].manifest.family for name in usual]
    assert families == ["sasrec", "bert4rec", "lightgcn", "recformer", "encoder-decoder", "counting"]
    counting.set_value([*counting.value, "popularity"]).run()
    assert app.query_params["m"] == "~".join([*usual, "popularity"])
    app.button_group(key="compare_models").set_value(usual).run()
    assert "m" not in app.query_params


# --- decoded without the app


@pytest.mark.parametrize(
    "ids",
    [(), ("",), ("", ""), ("a",), tuple(ODD_IDS), ("~", "%", "%25", "%7E", "a+b", "/?#&=", "기생충", "🎬", "\n")],
)
def test_any_ids_survive_the_address(ids: tuple[str, ...]) -> None:
    assert decode(encode(ids)) == ids


def test_what_is_missing_is_none_and_an_empty_history_is_none_of_these() -> None:
    assert Address.read({}) == Address() and Address().length == 10
    link = Address.read({"ds": "films", "h": "", "b": encode(("a b", "c~d")), "s": "a", "u": "anna", "k": "0"})
    assert link.shows_a and not Address.read({"h": "", "s": "a"}).shows_a
    assert (link.history, link.variant, link.user, link.length) == ((), ("a b", "c~d"), None, None)
    assert Address.read({"u": "anna%20b"}).user == "anna b"
    assert len("".join(Address.read({"h": "x" * 10**6}).history or ())) == MAX_HISTORY * MAX_ID


def test_what_pages_had_for_one_dataset_is_not_taken_to_another(tmp_path: Path, open_app: Open) -> None:
    for name, toys in (("toys", TOYS[:2]), ("others", TOYS[2:])):
        make_zoo(tmp_path, toys, name)
    app = open_app(tmp_path, "users", ds="toys", first="alpha", second="beta")
    assert state_of(app).own
    for page, address in (("", {"ds": "others"}), ("users", {})):  # a link to the first page, then the menu
        app._page_hash = calc_hash(page)
        app.query_params.clear()
        app.query_params.update(address)
        run_without_fault(app)
        assert (state_of(app).dataset, state_of(app).own) == ("others", {})


def test_a_dataset_that_goes_while_it_is_looked_at_is_named(tmp_path: Path, open_app: Open) -> None:
    for name in ("toys", "others"):
        make_zoo(tmp_path, name=name)
    app = open_app(tmp_path, ds="others")
    shutil.rmtree(tmp_path / "others")  # as another tab deletes one
    go(app, ATTENTION)
    assert state_of(app).dataset == "toys" and "no dataset “others”" in app.warning[0].value


def test_what_goes_from_a_dataset_while_it_is_looked_at_is_named_and_the_rest_stays(
    tmp_path: Path, open_app: Open
) -> None:
    make_zoo(tmp_path)
    app = open_app(tmp_path, "report", ds="toys", h="toy-1~toy-35", m="alpha~beta", item="toy-36")
    shutil.rmtree(tmp_path / "toys")
    make_zoo(tmp_path, tuple(dataclasses.replace(toy, items=30) for toy in TOYS[1:]))  # as a new export
    run_without_fault(app)
    now = state_of(app)
    assert (now.history, now.models, now.item) == (("toy-1",), ("beta",), None)
    for word, warning in zip(("changed", "toy-35", "alpha", "toy-36"), app.warning, strict=True):
        assert word in warning.value
    app.number_input(key="tray_k").set_value(7)
    run_without_fault(app)
    assert not app.warning and (app.query_params["h"], app.query_params["m"]) == ("toy-1", "beta")
    shutil.rmtree(tmp_path / "toys" / "beta")
    go(app, "screens/compare/page.py")  # by the menu
    assert state_of(app).models is None and "“beta”" in app.warning[1].value


# --- what a page has for itself: in the address, checked before the page is drawn, and still there on the way back to it


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
