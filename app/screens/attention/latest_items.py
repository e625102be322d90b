"""What a model makes of each of its latest items before it looks at all of them: gates that let it through, filters that weigh
it."""

import numpy as np
import pandas as pd
import streamlit as st

from app import export, zoo
from app.analysis import attention, model_card
from app.components import sections, widgets
from app.figures import attention as figures
from app.text import clean, md
from engine.runtime import Zoo
from engine.writing import count


def gates(models: Zoo, name: str, history: tuple[int, ...]) -> None:
    """A bar per item that has a gate, oldest on top."""
    sections.heading("Instance gates")
    openings = attention.gates(models, name, history)
    called = _called(models, history, list(openings))
    values, title = np.array(list(openings.values())), models.bundles[name].manifest.title
    st.markdown(attention.gate_words(title, values, called))
    table = pd.DataFrame({"position": called.numbers, "title": called.titles, "gate": values})
    export.figure(
        figures.bars(table, zoo.style(models, name).colour, None, narrow=widgets.on_phone(), quantity="gate"),
        key=f"attention_gates_{name}",
        alt=f"Gates of {clean(title)} by position, oldest on top; furthest open at {called.titles[int(values.argmax())]}.",
        table=table,
        name=f"attention {name} gates",
        columns={"gate": widgets.FOUR_DIGITS},
    )
    read = (
        f"The latest {count(len(openings), f'item of {len(history)} has', f'items of {len(history)} have')} a gate. "
        if len(openings) < len(history)
        else ""
    )
    reason = model_card.cannot(models.bundles[name], "attention") or ""
    st.caption(
        md(
            f"{read}0 is closed, 1 is open: for this user, the gate multiplies the item’s vector before averaging. "
            f"{reason} Gates do not sum to 1 and are no explanation; an item’s details show what each part of the model "
            "adds to its score."
        )
    )


def filters(models: Zoo, name: str, history: tuple[int, ...]) -> None:
    """A map of weights, a row per filter, a column per item, oldest first."""
    sections.heading("Vertical filters")
    bundle = models.bundles[name]
    weights = np.array(bundle.manifest.encoder.filters, np.float32)
    read = min(len(history), weights.shape[1])
    called = _called(models, history, list(range(len(history) - read, len(history))))
    weights = weights[:, -read:]
    st.markdown(attention.filter_words(bundle.manifest.title, weights, called))
    export.figure(
        figures.filters(weights, called, narrow=widgets.on_phone(), dark=widgets.dark()),
        key=f"attention_filters_{name}",
        alt=f"Weights of {count(read, 'item')} in {count(len(weights), 'vertical filter')} of {clean(bundle.manifest.title)}.",
        table=_table(weights, "filter", called),
        name=f"attention {name} filters",
    )
    st.caption(
        md(
            f"Each vertical filter adds up the vectors of the latest {count(read, 'item')}, weighed by place. "
            f"{model_card.cannot(bundle, 'attention') or ''} One layer goes on from these sums and from what the horizontal "
            "filters find: the weights are no explanation."
        )
    )
    if bundle.cannot("matches") is None:
        _best_rows(models, name, history)


def _best_rows(models: Zoo, name: str, history: tuple[int, ...]) -> None:
    """A map of shares, a column per height of filters, a row per item."""
    sections.heading("Horizontal filters")
    title = models.bundles[name].manifest.title
    matches = attention.matches(models, name, history)
    shares = attention.best_rows(matches)
    if np.isnan(shares).all():
        st.caption("No filter matches anything in this history.")
        return
    called = _called(models, history, list(range(len(history) - shares.shape[1], len(history))))
    st.markdown(attention.row_words(title, shares, called))
    export.figure(
        figures.best_rows(shares, called, narrow=widgets.on_phone()),
        key=f"attention_matches_{name}",
        alt=f"Which items in a row the horizontal filters of {clean(title)} match best, by how many items they look at.",
        table=_table(shares, "items in a row", called),
        name=f"attention {name} horizontal filters",
    )
    st.caption(
        md(
            f"{count(matches[0].shape[1], 'horizontal filter')} of each height: each slides over the items and keeps its best "
            "match (max pooling). A cell is the share of what the filters of that height keep that comes from the row that ends "
            "with that item; each column adds up to 100%. Rows that begin before the history are filled up with nothing. How a "
            "match counts is up to the layer that follows."
        )
    )


def _table(values: attention.Float, counted: str, called: attention.Names) -> pd.DataFrame:
    """A row per filter or height, with its number in the column `counted`, and a column per item. values: [rows, items]."""
    table = pd.DataFrame(values, columns=figures.events_of(called.numbers, called.titles))
    table.insert(0, counted, range(1, len(values) + 1))
    return table


def _called(models: Zoo, history: tuple[int, ...], places: list[int]) -> attention.Names:
    titles = {history[place]: zoo.titled(models, history[place]) for place in places}
    return attention.names(places, [history[place] for place in places], titles)  # type: ignore[arg-type]
