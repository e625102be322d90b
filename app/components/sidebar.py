"""The sidebar on every page: which dataset, how long the lists, the link to all that is shown, and whose things these are."""

import streamlit as st

from app import guard
from app.components import widgets
from app.limits import MAX_K
from app.server import owner
from app.server.links import base_path
from app.session import state
from app.store import records
from app.text import clean, distinct, md
from engine.runtime import Zoo
from engine.writing import count


def show(datasets: dict[str, str], models: Zoo | None) -> None:
    """datasets: name → title; models: of the one that is shown, None where it cannot be opened."""
    now = state.get()
    st.session_state["tray_dataset"], st.session_state["tray_k"] = now.dataset, now.k
    called = distinct({name: clean(title) for name, title in datasets.items()})
    st.selectbox(
        "Dataset",
        list(datasets),
        format_func=lambda name: called.get(name, name),
        key="tray_dataset",
        on_change=guard.callback(_choose_dataset, tuple(datasets)),
    )
    if models is None:
        return
    info = models.info
    users = "simulated user" if info.simulated else "user"
    parts = [count(info.counts["users"], users)] if models.has_log else []
    parts += [count(len(models), "item"), count(len(models.bundles), "model")]
    st.caption(", ".join(parts) + ("" if models.has_log else "; a catalogue without a log"))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.number_input(
            "Top-k",
            1,
            MAX_K,
            key="tray_k",
            on_change=guard.callback(_choose_k),
            help="How many items each model recommends.",
            width=115,
        )
        widgets.copy(
            "Copy link",
            state.link(st.context.url or ""),
            key="tray_link",
            help="Opens exactly this: dataset, history, models and list length",
        )


# --- what a click does; nothing that comes from the browser is believed


def _choose_dataset(allowed: tuple[str, ...]) -> None:
    dataset = st.session_state.get("tray_dataset")
    if dataset in allowed and dataset != state.get().dataset:
        state.choose_dataset(str(dataset))


def _choose_k() -> None:
    k = st.session_state.get("tray_k")
    if isinstance(k, int) and 1 <= k <= MAX_K:
        state.update(k=k)


# --- whose things these are


_SHOWN = "you_key_shown"


def account(who: owner.Owner | None) -> None:
    """Whose uploads and saved things these are: the key of this browser, or the account that is signed in; at the end of the
    sidebar. who: the owner; None where one must sign in first."""
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
    st.caption(
        f"It is kept for {records.kept_for()} after it was last used. With the key you have it in another browser, too."
    )
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
