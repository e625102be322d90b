"""Users: one of them, with the history, the ranks of the held-out item in all models, and users with similar histories."""

import math

import streamlit as st

from app import examples, guard, zoo
from app.analysis import users
from app.components import item_picker, sections, widgets
from app.session import state
from app.text import clean, md, percent, whole_rank
from engine.runtime import Zoo
from engine.writing import count

_LATEST = 8  # items of the history that are listed
_LIKE = "Users like this one"
_JACCARD = "By the Jaccard similarity of histories: shared items ÷ items of either"


def chosen_row(models: Zoo, rows: users.Ints) -> int | None:
    """The user that the address names, else the first of those that are listed."""
    row = examples.user_row(models, state.get().own.get("user"))
    return row if row is not None else next(iter(rows.tolist()), None)


def held_out(models: Zoo, row: int) -> str:
    """What the held-out item is called; of several how many there are is not known here."""
    item = models.next_item(row)
    return "several" if item is None else clean(zoo.titled(models, item), 80)


def show(models: Zoo, row: int) -> None:
    user_id = models.users["user_id"][row].as_py()
    with st.container(key="users_user", border=True):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            sections.heading(md(user_id, 60), width="content")
            if st.button("Open in Compare", icon=":material/compare_arrows:", key="users_compare"):
                state.choose_user(models, user_id)
                st.switch_page("screens/compare/page.py", query_params=state.link_params())
        target = models.next_item(row)
        if target is not None:
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                st.markdown("Held-out item:", width="content")
                item_picker.titles(models, [target], key="users_target")
        ranks = _ranks(models, row)
        if ranks:
            st.caption(ranks)
        _history(models, row)
        if not widgets.on_phone():
            st.markdown(f"**{_LIKE}**", help=_JACCARD)
            _similar(models, row)
            return
        folded = st.expander(_LIKE, key="users_like", on_change="rerun", type="compact")  # at the end of a long page
        if folded.open:
            with folded:
                _similar(models, row)


def _ranks(models: Zoo, row: int) -> str:
    """Its rank in every model, the best first, as Markdown."""
    table = users.table(models)
    known = [(float(table.of(name)[row]), name) for name in table.models if not math.isnan(table.of(name)[row])]
    entries = []
    for rank, name in sorted(known, key=lambda entry: entry[0]):
        place = whole_rank(rank) if math.isfinite(rank) else f"> {table.width(name):,}"
        entries.append(
            f"{zoo.style(models, name).sign}\u00a0{md(models.bundles[name].manifest.title)}\u00a0**{place}**"
        )
    return "Rank: " + " · ".join(entries) if entries else ""


def _history(models: Zoo, row: int) -> None:
    items = models.users["history"][row].as_py()
    rest, order = f", the latest {_LATEST}" * (len(items) > _LATEST), ", latest first"
    if not models.info.ordered:
        rest, order = f", {_LATEST} of them" * (len(items) > _LATEST), ", in no order"
    st.caption(f"**History**, {count(len(items), 'item')}{rest}{order}")
    with st.container(horizontal=True, gap="xsmall"):
        item_picker.titles(models, items[-_LATEST:][::-1], key="users_history")


def _similar(models: Zoo, row: int) -> None:
    similar = users.similar(models, row)
    if not len(similar.rows):
        st.caption("None of the other users listed here has an item of this history.")
        return
    if not models.info.sets:
        st.caption(f"Histories with this user's held-out item: {similar.have_target} of these {len(similar.rows)}.")
    with st.container(gap=None):
        for other, similarity, shared in zip(similar.rows, similar.similarity, similar.shared, strict=True):
            other_id = models.users["user_id"][int(other)].as_py()
            st.button(
                f"{md(other_id, 60)} :gray[· {count(int(shared), 'item')} shared, {percent(float(similarity))}]",
                key=f"users_like_{other}",
                type="tertiary",
                on_click=guard.callback(choose, other_id),
            )


def choose(user_id: str) -> None:
    if examples.user_row(zoo.open_zoo(state.get().dataset), user_id) is not None:
        state.choose(user=user_id)
