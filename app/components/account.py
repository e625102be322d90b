"""Whose uploads and saved things these are: the key of this browser, or the account that is signed in."""

from __future__ import annotations

import streamlit as st

from app import guard, owner
from app.links import base_path
from app.store.records import keep_days
from app.text import count, md

_SHOWN = "you_key_shown"


def show(who: owner.Owner | None) -> None:
    """At the end of the sidebar. who: the owner; None where one must sign in first."""
    if who is None:
        sign_in("sidebar")
    elif who.kind == "account":
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.caption(f"Signed in as {md(who.name or 'you', 60)}", width="content")
            st.button("Sign out", key="you_sign_out", type="tertiary", on_click=guard.callback(st.logout))
    else:
        if st.button("Access key", key="you", icon=":material/key:", width="stretch", help="Whose uploads these are"):
            st.session_state.pop(_SHOWN, None)
            _dialog(who.kind == "browser")


def sign_in(place: str) -> None:
    """A button for every provider that is configured. place: of a page, which may have such buttons in several."""
    for provider in owner.providers() or []:
        st.button(
            f"Sign in with {md(provider, 40)}" if provider else "Sign in",
            key=f"you_sign_in_{place}_{provider}",
            icon=":material/login:",
            width="stretch",
            on_click=guard.callback(owner.sign_in, provider),
            help="To upload data of your own, and to save histories and comparisons",
        )


@st.dialog("Access key", icon=":material/key:")
def _dialog(has_key: bool) -> None:
    with guard.watch("your key"):
        _key() if has_key else _session()


def _key() -> None:
    st.markdown("What you upload and save belongs to this browser.")
    st.caption(f"It is kept for {kept_for()} after it was last used. With the key you have it in another browser, too.")
    if st.session_state.get(_SHOWN):
        st.code(owner.key() or "", language=None, wrap_lines=True)
        st.caption("Keep it as you keep a password: whoever has it sees all this.")
    else:
        st.button("Show the key", key="you_show", icon=":material/visibility:", on_click=_show)
    st.markdown(f"[Bring a key from another browser]({base_path()}/key)")


def _show() -> None:
    st.session_state[_SHOWN] = True


def _session() -> None:
    st.markdown("What you upload and save belongs to this tab.")
    st.caption("This browser sent no cookie, so it is lost when the tab is closed.")


def kept_for() -> str:
    """How long what belongs to a browser is kept after it was last used: 30 days."""
    days = keep_days()
    return count(int(days), "day") if days == int(days) else f"{days:g} days"
