"""The page Report: what goes in is chosen, kept in the address, and shown as it will be given away."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import home
from app.reports.document import PARTS
from app.server import keys
from app.session.address import encode
from app.store import saved
from app.store.records import Report
from app.store.server import open_store
from tests.app.conftest import ODD_IDS, Open, rename, run_without_fault
from tests.app.writers import make_writers
from tests.runtime.bundles import make_zoo


@pytest.fixture
def page(open_app: Open) -> Open:
    def go(**more: Any) -> AppTest:
        return open_app(page="report", **more)

    return go


def preview(test: AppTest) -> str:
    (frame,) = test.get("iframe")
    return str(frame.proto.srcdoc)


def test_the_preview_is_the_page(page: Open) -> None:
    test = page(ds="hostile", h=encode(ODD_IDS))
    assert test.title[0].value == "Report" and not test.error
    shown = preview(test)
    assert shown.startswith("<!doctype html>") and "default-src &#39;none&#39;" in shown and "<script" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert [part for part in PARTS if f'<section id="{part}">' in shown] == [
        one for one in PARTS if one not in ("codes", "graph")
    ]
    assert "Graph" not in test.pills(key="report_parts").options
    labels = {button.proto.label for button in test.get("download_button")}
    assert {"HTML", "PDF", "JSON", "All, as a zip"} <= labels


def test_the_time_is_that_of_the_visit(page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ["2026-11-20T12:00:00+00:00"]
    monkeypatch.setattr("app.reports.build.now", lambda: clock[0])
    assert "20 November 2026, 12:00 UTC" in preview(page(ds="toys", h="toy-9", parts="history"))
    clock[0] = "2026-11-20T15:30:00+00:00"
    later = page(ds="toys", h="toy-9", parts="history")
    assert "20 November 2026, 15:30 UTC" in preview(later) and "12:00 UTC" not in preview(later)


def test_what_is_chosen_goes_into_the_address_and_the_report(page: Open) -> None:
    test = page(ds="toys", u="u2")
    assert "<h1>Toys: what comes next?</h1>" in preview(test) and "Of u2" not in preview(test)
    assert "u=u2" not in preview(test) and "h=toy-" in preview(test)
    test.text_input(key="report_title").set_value("<b>Mine</b>")
    test.toggle(key="report_rows").set_value(True).run()
    assert test.query_params["rows"] == "yes" and "<h1>&lt;b&gt;Mine&lt;/b&gt;</h1>" in preview(test)
    assert "Of u2; no model has seen what came next" in preview(test) and "u=u2" in preview(test)
    next(one for one in test.multiselect if one.label == "Attention of").set_value(["beta"]).run()
    assert test.query_params["attention"] == "beta"
    assert "What Beta looked at" in preview(test) and "What Alpha looked at" not in preview(test)
    test.query_params["attention"] = ""
    assert "What Beta looked at" not in preview(test.run())
    test.pills(key="report_parts").set_value(["history", "lists"]).run()
    assert test.query_params["parts"] == "history~lists"
    assert '<section id="lists">' in preview(test) and '<section id="metrics">' not in preview(test)
    run_without_fault(test.pills(key="report_parts").set_value(list(PARTS)))
    assert "parts" not in test.query_params
    test.text_input(key="report_title").set_value("ש" * 120).run()
    again = page(**dict(test.query_params))
    assert again.text_input(key="report_title").value == "ש" * 120 and not again.warning


def test_models_that_write_codes_and_a_dataset_without_users(open_app: Open, tmp_path: Path) -> None:
    (make_writers(tmp_path) / "users.parquet").unlink()
    test = open_app(tmp_path, page="report", ds="writers", h="toy-9~toy-12")
    assert not test.error
    assert "Writer" in preview(test)
    assert test.toggle(key="report_slow").label == "Effects of slow models, too"
    batch = next(one for one in test.multiselect if one.label == "Models")
    assert batch.value == ["alpha"]
    source = next(one for one in test.get("button_group") if one.key == "report_batch_source_1")
    assert source.value == "file" and test.button(key="report_batch_start").disabled


def test_a_model_that_goes_while_it_is_chosen_is_left_out(open_app: Open, tmp_path: Path) -> None:
    path = make_zoo(tmp_path, name="toys")
    test = open_app(tmp_path, page="report", ds="toys", h="toy-9", attention="alpha~beta", map="alpha")
    shutil.rmtree(path / "alpha")
    test.run()
    assert not test.error and "What Beta looked at" in preview(test)


def test_a_history_of_one_item_or_none(page: Open) -> None:
    assert "nothing can be left out" in preview(page(ds="toys", h="toy-9", parts="attention~effects"))
    test = page(ds="toys", h="", parts="history")
    assert not test.error and "Cold start: an empty history" in preview(test)


def test_the_name_of_a_table_is_cut_with_an_ellipsis(open_app: Open, tmp_path: Path) -> None:
    rename(make_zoo(tmp_path), ["Very " * 40], ["long"])
    test = open_app(tmp_path, page="report", ds="toys", h="toy-8~toy-9", item="long")
    test.session_state["report_csv"] = True  # its popover is open
    labels = [button.proto.label for button in test.run().get("download_button")]
    (effects,) = (label for label in labels if label.startswith("Leaving events out: Very"))
    assert effects.endswith("Very… (2)")


# --- reports that are kept


def be(monkeypatch: pytest.MonkeyPatch) -> str:
    """Somebody new."""
    key = keys.make()
    monkeypatch.setattr("streamlit.runtime.context.ContextProxy.cookies", {keys.COOKIE: key})
    return keys.owner(key)


def save(test: AppTest, name: str = "") -> None:
    test.text_input(key="report_save_name").set_value(name)
    test.button(key="report_save").click().run()
    assert not test.exception


def only(owner: str) -> Report:
    (one,) = open_store().reports.of(owner)
    return one


def test_a_report_is_saved_and_opened_as_it_was(page: Open, open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    anna = be(monkeypatch)
    test = page(ds="toys", h="toy-9~toy-12", parts="history~lists", title="Before")
    before = preview(test)
    save(test, " My\n own ")
    made = only(anna)
    assert (made.name, made.dataset) == ("My own", "toys") and "Saved the report “My own”." in test.success[0].value
    test.text_input(key="report_title").set_value("After").run()
    test.button(key=f"saved_go_{made.id}").click().run()
    assert test.query_params["saved_report"] == made.id and "as it was saved on" in test.info[0].value
    assert preview(test) == before
    assert not [one for one in test.button if one.key == "report_save"], "what is kept is not kept again"
    test.button(key="report_close").click().run()
    assert "After" in preview(test) and "saved_report" not in test.query_params
    linked = open_app(saved=made.id)
    assert linked.title[0].value == "Report" and "<h1>Before</h1>" in preview(linked) and not linked.warning


def test_rename_and_delete(page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    anna = be(monkeypatch)
    test = page(ds="toys", h="toy-9", parts="history")
    save(test, "אחד")
    made = only(anna)
    test.session_state["saved_doing"] = ("Rename", made.id)  # as its menu does
    test.run()
    assert test.text_input(key=f"saved_new_{made.id}").value == "אחד"
    test.text_input(key=f"saved_new_{made.id}").set_value("Two")
    test.button(key=f"saved_rename_{made.id}").click().run()
    renamed = only(anna)
    assert test.button(key=f"saved_go_{made.id}").label == renamed.name == "Two"
    save(test, "Two")
    assert only(anna).changed == renamed.changed, "a taken name is not replaced unasked"
    assert any("There is a report named “Two” already" in one.value for one in test.markdown)
    test.button(key="report_save_replace").click().run()
    assert only(anna).id == made.id and only(anna).changed > renamed.changed
    open_store().reports.delete(anna, made.id)
    test.run()
    assert not [one for one in test.button if one.key == f"saved_go_{made.id}"]


def test_another_owner_sees_nothing(page: Open, open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    anna = be(monkeypatch)
    save(page(ds="toys", h="toy-9", parts="history", title="Annas secret"))
    id = only(anna).id
    assert only(anna).name == "Annas secret", "the report's own title, where no name is given"
    ben = be(monkeypatch)
    test = page(ds="toys", h="toy-9", parts="history")
    assert "Annas secret" not in str(test) and not open_store().reports.of(ben)
    words = []
    for wanted in (id, home.new_id()):
        test = page(ds="toys", h="toy-9", parts="history", saved_report=wanted)
        assert "Annas secret" not in str(test) and "saved_report" not in test.query_params
        words.append(test.warning[0].value)
        words.append(open_app(saved=wanted).warning[0].value)
    assert words[:2] == words[2:], "what is somebody else's reads like what is not there"
    assert only(anna).id == id


def test_a_report_that_is_too_large_is_one_message(page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    anna = be(monkeypatch)
    monkeypatch.setattr(saved, "MAX_DOCUMENT", 1_000_000)
    test = page(ds="toys", h="toy-9", parts="history", title="Large")
    monkeypatch.setattr(saved, "MAX_DOCUMENT", 1_000)
    save(test)
    assert len(test.warning) == 1 and "A report may have" in test.warning[0].value
    assert not open_store().reports.of(anna)
