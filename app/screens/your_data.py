"""Your data: what the visitor brought, what models can do with it, and training on it."""

from __future__ import annotations

import streamlit as st

from app import batches, guard, owner, zoo
from app.owner import Owner
from app.parts import batch_jobs, data_add, data_list, you
from app.store.records import keep_days
from app.store.server import open_store
from app.text import count, md
from engine.errors import SeqscopeError


def show() -> None:
    st.title("Your data")
    who = owner.get()
    if who is None:
        st.markdown("Bring a catalogue of your own, and the log of what people took where there is one.")
        st.info("What you bring belongs to your account: sign in first.", icon=":material/login:")
        you.sign_in("page")
        return
    try:
        open_store()
    except SeqscopeError as error:
        st.error(md(guard.shown(error), 1_000), title="Nothing can be kept here now", icon=":material/error:")
        return
    st.markdown(_whose(who))
    with guard.watch("your datasets"):
        there = data_list.show(who.id)
        _room(who.id, there)
    with guard.watch("your lists"):
        _lists(who.id)
    st.header("Add a dataset" if there else "Bring a catalogue", anchor="add")
    with guard.watch("the upload"):
        data_add.show(who.id)


def _whose(who: Owner) -> str:
    if who.kind == "account":
        return "What you bring belongs to your account. It is kept until you delete it, and nobody else sees it."
    days = keep_days()
    kept = count(int(days), "day") if days == int(days) else f"{days:g} days"
    if who.kind == "session":
        return (
            "This browser sent no cookie, so what you bring belongs to this tab alone and is lost to you when it is closed; "
            f"it is deleted after {kept}."
        )
    return (
        f"What you bring belongs to this browser, and nobody else sees it. It is deleted {kept} after it was last used. "
        "With your key (*Yours …* in the sidebar) you have it in another browser, too."
    )


def _lists(who: str) -> None:
    """For many histories, of the server's datasets: those of one's own are on its card."""
    own = {dataset.id for dataset in open_store().datasets.of(who)}
    found = [one for one in batches.of(who) if one.row.dataset not in own]
    if found:
        st.header("Lists for many histories", anchor="lists")
        batch_jobs.show(who, found, zoo.datasets())


def _room(who: str, there: int) -> None:
    if there:
        used, most = open_store().quota.usage(who), open_store().quota.limits
        st.caption(
            f"{there} of {count(most.datasets, 'dataset')}, {data_list.size(used.bytes)} of {data_list.size(most.bytes)}"
        )


show()
