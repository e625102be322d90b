"""Graph: the paths through people and items that carry a recommendation, and what each layer adds to it."""

from __future__ import annotations

import streamlit as st

from app import choices, export, guard, state, zoo
from app.text import clean, md
from app.views import graph as views
from app.views import graph_answers as answers
from app.views import graph_figures as figures
from app.widgets import choice, explained
from engine.runtime import Zoo

_DEPTHS = {"1": "History", "2": "and their people", "3": "and the items of these"}


def page() -> None:
    st.title("Graph")
    now = state.get()
    models = zoo.open_zoo(now.dataset)
    st.markdown(
        "Some models learn along the graph of people and items: whoever shares an item with you shares a path with you. Here the "
        "tree of paths opens from the history, layer by layer."
    )
    able = choices.walkers(models)
    if not able:
        st.info("No model of this dataset carries such a graph. Train and export LightGCN or NGCF.")
        return
    history = state.numbers(models, now.current)
    if not history:
        st.info("No history yet, so no path begins. Load an example, or add items in the sidebar.")
        st.button("Load an example", on_click=guard.callback(state.reset), type="primary")
        return
    name = choice.segmented(
        "Model",
        "model",
        {one: f"{zoo.style(models, one).sign} {md(models.bundles[one].manifest.title)}" for one in able},
        able[0],
        key=f"graph_model_{models.info.name}",
    )
    item = explained.choose(models, name, history, key="graph")
    if item is None:
        st.info("The model has nothing left to recommend after this history, so no path ends anywhere.")
        return
    with guard.watch("the paths"):
        _paths(models, name, history, item)
    with guard.watch("the layers"):
        _layers(models, name, history, item)


def _paths(models: Zoo, name: str, history: tuple[int, ...], item: int) -> None:
    branches = answers.branches(models, name, history, item)
    ends = {step.item for branch in branches for step in branch.steps}
    titles = {number: zoo.titled(models, number) for number in {item, *history, *ends}}
    aimed, title = clean(titles[item]), models.bundles[name].manifest.title
    st.subheader("Paths from the history")
    st.markdown(views.sentence(branches, item, titles, title))
    depth = int(choice.segmented("Layers", "layers", _DEPTHS, "3", key="graph_layers"))
    export.figure(
        figures.tree(branches, item, titles, zoo.style(models, name).colour, depth),
        key="graph_tree",
        alt=f"A tree of paths from the history through its items and their people to other items, {aimed} among them.",
        table=views.table(branches, titles),
        name=f"paths {name}",
        columns={
            "weight": st.column_config.NumberColumn(format="%.5f"),
            "adds": st.column_config.NumberColumn(format="%+.4f"),
        },
    )
    with st.container(key="graph_list"):
        st.markdown(views.phone(branches, item, titles))
    opened = sum(bool(branch.steps) for branch in branches)
    note = "People are counted, nobody is shown. Broad paths add much to the score, brown ones take away from it."
    if opened < len(branches):
        note += f" Drawn are the {opened} items of the history that matter most, of {len(branches)}; the table has all."
    st.caption(md(note))


def _layers(models: Zoo, name: str, history: tuple[int, ...], item: int) -> None:
    found = answers.layers(models, name, history, item)
    title = models.bundles[name].manifest.title
    if found is None:
        st.caption(md(f"{title} does not average its layers, so there is no list without one of them."))
        return
    st.subheader("What each layer adds")
    st.markdown(
        f"The score of **{md(zoo.titled(models, item))}**, {found.by_layer.sum():.3f}, is the sum of these: what layer of the "
        "history meets what layer of the item."
    )
    export.figure(
        figures.layers(found.by_layer),
        key="graph_by_layer",
        alt=f"A table of {len(found.by_layer)} by {len(found.by_layer)} layers with what each pair adds to the score.",
        table=views.layers_table(found.by_layer),
        name=f"layers {name}",
        columns={"adds": st.column_config.NumberColumn(format="%+.5f")},
    )
    titles = {listed: zoo.titled(models, listed) for listed in found.items}
    st.markdown(
        "**The list without a layer**: where its first items would stand if one layer were left out of both means."
    )
    st.dataframe(
        views.without_table(found.ranks, found.items, titles),
        hide_index=True,
        key="graph_without",
        column_config={"item": st.column_config.TextColumn(width="medium")},
    )


page()
