"""Metrics: for whom models are good, and the people on whom two of them differ."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import export, zoo
from app.analysis import evaluation, floor, metrics
from app.components import choice
from app.figures import metrics as figures
from app.screens.metrics.choices import MetricsChoices
from app.session import state
from app.text import clean, count, md
from engine.runtime import protocols as naming

_FOUR = st.column_config.NumberColumn(format="%.4f")


def slices(this: MetricsChoices) -> None:
    st.subheader("For whom")
    options = evaluation.sliceable(this.models, this.protocol)
    by = choice.selected(
        "Group people by",
        "by",
        {by: clean(words, 80) for by, words in options.items()},
        next(iter(options)),
        key=f"metrics_slice_{this.models.info.name}",
        width=420,
    )
    table = this.of_kind(evaluation.slices(this.models, this.protocol, by, this.metric))
    if table.empty:
        st.info(f"No held-out item has a value here, so there are no groups. Choose another attribute. {this.beams()}")
        return
    export.figure(
        export.shared_figure(figures.slices, table, this.metric, this.titles, this.looks),
        key="metrics_slices",
        alt=f"{this.metric} of every model by {clean(options[by], 80).lower()}, with 95 % intervals.",
        table=this.named(table),
        name=f"slices {by} {this.metric}",
        columns={"mean": _FOUR, "low": _FOUR, "high": _FOUR},
    )
    note = (
        "Slices overlap: a user whose held-out item has several values counts in each of them."
        if evaluation.overlap(this.models, by)
        else "By the value of the held-out item."
        if by.startswith("attribute:")
        else "Of an item in nobody's training only those models can have learned anything that read what is said of it, or "
        "write codes made from that."
        if by == evaluation.COLD
        else "Two questions: does the user come back to an item, or take a new one? Of people whose histories are part of this "
        "export."
        if by == evaluation.REPEATED
        else "Groups of about equal size."
    )
    if table["few"].any():
        note += f" Grey: fewer than {metrics.FEW} people, too few to say much."
    if (table["high"] == 0).any():
        note += (
            " Where nobody's item was found the interval has no width; up to 3 in n are still possible (rule of three)."
        )
    st.caption(note)


def disputed(this: MetricsChoices) -> None:
    if naming.parse(this.protocol).sets:
        return  # one rank per person is what the two are compared by
    st.subheader("People on whom two models differ")
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
        f"{md(titled[first])} ranks the held-out item higher for **{count(better, 'person', 'people')}**, "
        f"{md(titled[second])} for **{worse:,}**; {level:,} are level.{this.below([first, second])}"
    )
    ids = dict(zip(this.models.users["user"].to_pylist(), this.models.users["user_id"].to_pylist(), strict=True))
    rows = metrics.among(ours, list(ids))
    if len(rows):  # those whose histories can be opened
        ours, theirs = ours.take(rows), theirs.take(rows)
    table = metrics.disputed(ours, theirs)
    if table.empty:
        st.info("The two models rank every held-out item alike, so there is nobody to show. Choose two others.")
        return
    shown = pd.DataFrame(
        {
            "person": [clean(ids.get(user, f"no. {user}"), 60) for user in table["user"]],
            "what truly came next": [clean(zoo.titled(this.models, item), 120) for item in table["target"]],
            "history": table["length"],
            f"rank, {titled[first]}": table["first"],
            f"rank, {titled[second]} ": table["second"],
        }
    )
    st.dataframe(
        shown,
        hide_index=True,
        alt="People for whom the ranks of the held-out item differ most.",
        height=min(400, 40 + 35 * len(shown)),
        key="metrics_people",
    )
    export.csv_button(shown, f"people {first} {second}", key="metrics_people")
    widths = [ranks.width for ranks in (ours, theirs) if ranks.width]
    if widths:
        st.caption(f"No rank: beyond the beam of {min(widths)}, where nobody's place is known.")
    if not len(rows):
        st.caption("Their histories are not part of this export, so they cannot be opened in Compare.")
        return
    if len(rows) < better + worse + level:
        st.caption(
            "Listed are the most disputed of those whose histories are part of this export, "
            f"{count(len(rows), 'person', 'people')}."
        )
    people = {ids[user]: clean(ids[user], 60) for user in table["user"]}
    user_id = state.get().own.get("person")  # a link may name somebody on whom the two models agree
    if user_id is not None:
        people.setdefault(user_id, clean(user_id, 60))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        person = choice.selected(
            "Open somebody's history",
            "person",
            people,
            next(iter(people)),
            key=f"metrics_person_{first}_{second}",
            width=320,
        )
        if st.button("Open in Compare", icon=":material/compare_arrows:", key="metrics_open"):
            state.choose_user(this.models, person)
            st.switch_page("screens/compare/page.py", query_params=state.link_params())
