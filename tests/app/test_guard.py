"""No traceback reaches a visitor."""

import errno
import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import guard, home
from app.screens import PAGES
from engine.errors import SeqscopeError
from tests.app.conftest import Open


def test_what_fails_becomes_one_message_and_the_rest_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    def script() -> None:
        import streamlit as st

        from app import guard

        with guard.watch("the figure"):
            raise ZeroDivisionError("secret path /home/x")
        st.write("the rest")

    with caplog.at_level(logging.ERROR, logger="seqscope.app"):
        app = AppTest.from_function(script).run()
    assert not app.exception
    assert app.markdown[0].value == "the rest"
    assert len(app.error) == 1
    assert "secret" not in app.error[0].value
    number = app.error[0].value.split("Reference ")[1][:6]
    assert number in caplog.text and "ZeroDivisionError" in caplog.text


def test_a_message_made_for_people_is_shown_as_it_stands() -> None:
    def script() -> None:
        from app import guard
        from engine.errors import SeqscopeError

        with guard.watch("the map"):
            raise SeqscopeError("items.parquet is missing. Export *again*.")

    app = AppTest.from_function(script).run()
    assert "items.parquet is missing" in app.error[0].value
    assert "\\*again\\*" in app.error[0].value


def test_reruns_and_stops_are_no_failures() -> None:
    def script() -> None:
        import streamlit as st

        from app import guard

        with guard.watch("the page"):
            if "again" not in st.session_state:
                st.session_state["again"] = True
                st.rerun()
            st.stop()

    app = AppTest.from_function(script).run()
    assert not app.error and not app.exception


def test_what_fails_in_a_callback_is_shown_once() -> None:
    def script() -> None:
        import streamlit as st

        from app import guard

        def fail() -> None:
            raise ValueError("no")

        guard.pending()
        st.button("Go", on_click=guard.callback(fail))

    app = AppTest.from_function(script).run()
    app.button[0].click().run()
    assert len(app.error) == 1 and not app.exception
    app.run()
    assert not app.error


def test_a_full_disk_is_said_whoever_met_it() -> None:
    with pytest.raises(SeqscopeError) as raised:
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "/srv/home")
        except OSError as error:
            raise SeqscopeError(f"The job cannot be written ({error}).") from None
    _, words = guard.noted(raised.value, "the map")
    assert "disk of this server is full" in words and "srv" not in words
    assert guard.shown(raised.value) == home.DISK_FULL


def test_a_page_of_another_package_does_not_take_the_others_along(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(PAGES, "odd", replace(PAGES["users"], name="odd", title="Odd", icon="nonsense"))
    test = open_app()
    assert len(test.error) == 1 and "the page Odd" in caplog.text
    assert "what comes next" in test.title[0].value


@pytest.mark.parametrize("page", ["", "catalogue"])
def test_a_dataset_that_is_damaged_is_told_once_and_another_can_be_chosen(
    open_app: Open, exports: Path, tmp_path: Path, page: str
) -> None:
    damaged = Path(shutil.copytree(exports, tmp_path / "exports"))
    (damaged / "toys" / "items.parquet").write_bytes(b"")
    app = open_app(damaged, page, ds="toys")
    (error,) = app.error
    assert "toys/items.parquet" in error.value and not app.warning
    app.selectbox(key="tray_dataset").set_value("hostile").run()
    assert not app.exception and not app.error
