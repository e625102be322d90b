"""Graph: the paths through users and items that carry a recommendation, and what each layer adds to it."""

import streamlit as st

from app import export, guard, zoo
from app.analysis import graph_paths
from app.components import choice, item_picker, sections, widgets
from app.components import history as history_strip
from app.figures import graph_paths as figures
from app.session import state
from app.text import clean, md
from engine.runtime import Zoo, judge
from engine.writing import count

_DEPTHS = {"1": "History", "2": "+ users of its items", "3": "+ items of these users"}


def page() -> None:
    st.title("Graph")
    now = state.get()
    models = zoo.open_zoo(now.dataset)
    st.markdown(
        "Graph models propagate embeddings over user–item interactions. A path links an item of the history, through a user "
        "who interacted with it, to another item of that user. Below are the paths behind one recommendation."
    )
    able = graph_paths.carriers(models)
    if not able:
        st.info("No model of this dataset carries such a graph. Train and export LightGCN or NGCF.")
        return
    history_strip.show()
    history = state.numbers(models, now.current)
    if not history:
        item_picker.no_history("no path begins")
        return
    name = choice.segmented(
        "Model",
        "model",
        {model: f"{zoo.style(models, model).sign} {md(models.bundles[model].manifest.title)}" for model in able},
        able[0],
        key=f"graph_model_{models.info.name}",
    )
    item = item_picker.choose_explained(models, name, history, key="graph")
    if item is None:
        st.info("The model has nothing left to recommend after this history, so no path ends anywhere.")
        return
    with guard.watch("the paths"):
        _paths(models, name, history, item)
    with guard.watch("the layers"):
        _layers(models, name, history, item)


def _paths(models: Zoo, name: str, history: tuple[int, ...], item: int) -> None:
    branches = graph_paths.branches(models, name, history, item)
    ends = {step.item for branch in branches for step in branch.steps}
    titles = {number: zoo.titled(models, number) for number in {item, *history, *ends}}
    aimed, title = clean(titles[item]), models.bundles[name].manifest.title
    sections.heading("Paths from the history")
    if len(read := models.bundles[name].used(history)) < len(history):
        st.caption(md(f"{title} reads the latest {count(len(read), 'item')} of {len(history):,}."))
    st.markdown(graph_paths.sentence(branches, item, titles, md(title)))
    depth = int(choice.segmented("Length of the paths", "layers", _DEPTHS, "3", key="graph_layers"))
    with st.container(key="graph_list"):
        st.markdown(graph_paths.phone(branches, item, titles))
    export.figure(
        figures.tree(branches, item, titles, zoo.style(models, name).colour, depth),
        key="graph_tree",
        on_select=guard.callback(_select_node),
        alt=f"A tree of paths from the history through its items and their users to other items, {aimed} among them.",
        table=graph_paths.table(branches, titles),
        name=f"paths {name}",
        columns={
            "weight": st.column_config.NumberColumn(format="%.5f"),
            "adds": widgets.SIGNED,
        },
    )
    sums = models.bundles[name].paths is not None
    with st.container(key="graph_key"):
        st.caption(md(graph_paths.key(sums, len(figures.opened_branches(branches)), len(branches))))


def _select_node() -> None:
    """A click on an item of the tree. What comes from the browser is not believed: it must be an item."""
    models = zoo.open_zoo(state.get().dataset)
    chosen = getattr(st.session_state.get("graph_tree"), "selection", None) or {}
    for point in chosen.get("points", ()):
        _, item = [*(point.get("customdata") or ()), None, None][:2]
        if isinstance(item, int) and 0 <= item < len(models):
            state.select(models.item_ids[item])


def _layers(models: Zoo, name: str, history: tuple[int, ...], item: int) -> None:
    layers = graph_paths.layers(models, name, history, item)
    title = models.bundles[name].manifest.title
    if layers is None:
        st.caption(
            md(f"This bundle of {title} does not say which layer its numbers are of. Export it again to see them.")
        )
        return
    sections.heading("What each layer adds")
    meeting, left_out = graph_paths.layers_words(layers.by_layer)
    score = judge.signed(layers.by_layer.sum(), ".3f")
    st.markdown(f"The score of **{md(zoo.titled(models, item))}**, {score}, is the sum of these: {meeting}.")
    export.figure(
        figures.layers(layers.by_layer, widgets.dark()),
        key="graph_by_layer",
        alt=f"A table of {len(layers.by_layer)} layers with what each adds to the score.",
        table=graph_paths.layers_table(layers.by_layer),
        name=f"layers {name}",
        columns={"adds": st.column_config.NumberColumn(format="%+.5f")},
    )
    titles = {listed: zoo.titled(models, listed) for listed in layers.items}
    st.markdown(f"**The list without a layer**: where its first items would stand if one layer were {left_out}.")
    without, phone = graph_paths.without_table(layers.ranks, layers.items, titles), widgets.on_phone()
    item_picker.table(
        without,
        [models.item_ids[listed] for listed in layers.items],
        alt="The first items of the list with their ranks without each layer",
        key="graph_without",
        column_config={
            "item": st.column_config.TextColumn(width=140 if phone else 270),
            **{
                name: st.column_config.NumberColumn(_brief(name) if phone else None, width=54 if phone else "small")
                for name in without.columns[1:]
            },
        },
    )


def _brief(column: str) -> str:
    """A column of `without_table`, as it is called where there is little room."""
    return column.replace("all layers", "all").replace("without", "no")


page()
