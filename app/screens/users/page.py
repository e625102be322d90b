"""Users with a held-out item: where each model ranks it, on whom two models differ, and who is like whom."""

import math

import streamlit as st

from app import export, guard, zoo
from app.analysis import users
from app.components import sections, widgets
from app.figures import metrics as figures
from app.screens.users import listing, user
from app.session import state
from app.text import clean, md
from engine.runtime import Zoo
from engine.writing import count

_CUTOFFS = (1, 5, 10, 20, 50, 100)
_DRAWN = 6  # models at most


def page() -> None:
    st.title("Users")
    models = zoo.open_zoo(state.get().dataset)
    if not models.users.num_rows:
        st.info(
            "This dataset was exported without its users, so there is nobody to list."
            if models.has_log
            else "This is a catalogue without a log, so there are no users."
        )
        return
    who = "simulated users" if models.info.simulated else "users"
    many, total = models.users.num_rows, _with_held_out(models)
    some = count(many, who[:-1], who) if many == total else f"{many:,} of {count(total, who[:-1], who)}"
    drawn = "" if many == total else ", drawn at random"
    st.markdown(
        f"{some} with a held-out item that no model saw{drawn}: where each model ranks it, and on whom models differ."
        + " Of several held-out items, it is the one that the model ranks best." * models.info.sets
    )
    shown = listing.chosen(models)
    rows = users.rows(models, shown)
    choices, figure = st.columns(2, gap="medium")
    listed, beside = st.columns([2, 1], gap="medium")
    with choices, guard.watch("the choice of users"):
        listing.controls(models, shown)
    row = user.chosen_row(models, listing.on_page(rows)[0])
    with listed, guard.watch("the list of users"):
        listing.show(models, shown, rows, row)
    if row is not None:
        with beside, guard.watch("the user"):
            user.show(models, row)
    with figure, guard.watch("the distribution of ranks"):
        _distribution(models, rows, row, shown)


def _with_held_out(models: Zoo) -> int:
    """All users of the dataset with a held-out item; an export holds 2,000 of them unless it was made otherwise."""
    return max(models.users.num_rows, models.info.counts.get("test", 0))


def _distribution(models: Zoo, rows: users.Ints, row: int | None, shown: users.UserFilter) -> None:
    table, some = users.table(models), listing.model_names(models, shown, _DRAWN)
    if not some or not len(rows):
        return
    curves = []
    for name in some:
        title = clean(models.bundles[name].manifest.title, 40)
        at, shares = users.curve(table.of(name)[rows], table.width(name), len(models))
        rank = math.nan if row is None else float(table.of(name)[row])
        mark = rank if math.isfinite(rank) else None
        curves.append(figures.Curve(title, zoo.style(models, name), at, shares, mark))
    if len(rows) == 1:
        listed = "the listed user"
    else:
        everybody = len(rows) == _with_held_out(models)
        listed = f"all {len(rows):,} users" if everybody else f"the {len(rows):,} listed users"
    sections.heading("Ranks over users")
    st.caption(
        f"Share of {listed} whose held-out item is among the first x. Dotted: top {shown.k}. Marks: the chosen user."
    )
    frame = users.summary(table, rows, some, _CUTOFFS)
    frame["model"] = [clean(models.bundles[name].manifest.title) for name in frame["model"]]
    export.figure(
        export.shared_figure(figures.distribution, curves, shown.k, widgets.on_phone()),
        key="users_distribution",
        alt=f"Share of users whose held-out item is among the first x, for {md(count(len(some), 'model'))}.",
        table=frame,
        name="ranks over users",
    )


page()
