"""Metrics: the users on whom two models differ most."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import export, zoo
from app.analysis import floor, metrics
from app.components import choice
from app.screens.metrics.choices import MetricsChoices
from app.session import state
from app.text import clean, count, md


def show(this: MetricsChoices) -> None:
    models = [*floor.learned(this.people, this.families)]
    models += [row for row in this.people if row not in models]
    if len(models) < 2:
        st.info("Only one model was evaluated under this protocol. Choose another protocol to compare two.")
        return
    titled = {name: clean(this.titles[name]) for name in models}
    left, right = st.columns(2)
    with left:
        first = choice.selected(
            "First model", "first", titled, models[0], key=f"metrics_first_{len(models)}", clears=("second", "person")
        )
    rest = {name: title for name, title in titled.items() if name != first}
    with right:
        second = choice.selected(
            "Second model",
            "second",
            rest,
            next(iter(rest)),
            key=f"metrics_second_{first}_{len(models)}",
            clears=("person",),
        )
    ours, theirs = this.people[first], this.people[second]
    better, worse, level = metrics.wins(ours, theirs)
    st.markdown(
        f"{md(titled[first])} ranks the held-out item higher for **{count(better, 'user')}**, "
        f"{md(titled[second])} for **{worse:,}**; for {level:,} the ranks are equal.{this.below([first, second])}"
    )
    ids = dict(zip(this.models.users["user"].to_pylist(), this.models.users["user_id"].to_pylist(), strict=True))
    rows = metrics.among(ours, list(ids))
    if len(rows):  # those whose histories can be opened
        ours, theirs = ours.take(rows), theirs.take(rows)
    table = metrics.disputed(ours, theirs)
    if table.empty:
        st.info("The two models rank every held-out item alike, so there is no user to show. Choose two others.")
        return
    shown = pd.DataFrame(
        {
            "user": [clean(ids.get(user, f"no. {user}"), 60) for user in table["user"]],
            "held-out item": [clean(zoo.titled(this.models, item), 120) for item in table["target"]],
            "history length": table["length"],
            f"rank, {titled[first]}": table["first"],
            f"rank, {titled[second]} ": table["second"],
        }
    )
    st.dataframe(
        shown,
        hide_index=True,
        alt="Users for whom the ranks of the held-out item differ most.",
        height=min(400, 40 + 35 * len(shown)),
        key="metrics_people",
    )
    export.csv_button(shown, f"users {first} {second}", key="metrics_people")
    widths = [ranks.width for ranks in (ours, theirs) if ranks.width]
    if widths:
        st.caption(f"No rank: beyond the beam of {min(widths)}, where ranks are unknown.")
    if not len(rows):
        st.caption("Their histories are not part of this export, so they cannot be opened in Compare.")
        return
    if len(rows) < better + worse + level:
        st.caption(
            f"The largest differences among those whose histories are part of this export, {count(len(rows), 'user')}."
        )
    people = {ids[user]: clean(ids[user], 60) for user in table["user"]}
    user_id = state.get().own.get("person")  # a link may name somebody on whom the two models agree
    if user_id is not None:
        people.setdefault(user_id, clean(user_id, 60))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        person = choice.selected(
            "User",
            "person",
            people,
            next(iter(people)),
            key=f"metrics_person_{first}_{second}",
            width=320,
        )
        if st.button("Open in Compare", icon=":material/compare_arrows:", key="metrics_open"):
            state.choose_user(this.models, person)
            st.switch_page("screens/compare/page.py", query_params=state.link_params())
