"""The app's frame: pages, tray and address. Everything else lives in screens/, one file per page.

That folder must not be called pages/: Streamlit then takes the app for one of its first form of multipage apps, runs a page
that a link leads to without this file, and AppTest loses the sidebar from the second run on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from app import guard, owner, run_queue, state, tray, work, zoo
from app.analysis.cache import show_waiting
from app.analysis.graph_paths import carriers
from app.parts import saved, you
from app.text import md
from app.widgets import browser
from engine.errors import SeqscopeError

_HERE = Path(__file__).parent
YOUR_DATA = "your_data"
_PAGES = {
    "Try": [
        ("compare", "Compare", ":material/compare_arrows:", "What each model recommends next, side by side."),
        ("catalogue", "Catalogue", ":material/search:", "Search and filter the items; build a history."),
    ],
    "Look inside": [
        ("attention", "Attention", ":material/visibility:", "What a model looked at while it read the history."),
        ("semantic_ids", "Semantic IDs", ":material/account_tree:", "The codes that tokenizers give to items."),
        ("graph", "Graph", ":material/hub:", "The paths through people and items that carry a recommendation."),
        ("map", "Map", ":material/scatter_plot:", "Items as a model arranges them, with the history on top."),
    ],
    "Judge": [
        ("metrics", "Metrics", ":material/leaderboard:", "How good the models are, with intervals and tests."),
        ("about", "About", ":material/info:", "The models, the data, and how everything is measured."),
    ],
    "Bring & take": [
        (
            YOUR_DATA,
            "Your data",
            ":material/database_upload:",
            "Your own catalogue and log: models for them, trained here.",
        ),
        (
            "report",
            "Report",
            ":material/description:",
            "What you see as a file: HTML, PDF, JSON, CSV; lists for many histories.",
        ),
    ],
}


def main() -> None:
    st.set_page_config(page_title="Seqscope", page_icon=str(_HERE / "icon.svg"), layout="wide")
    st.logo(str(_HERE / "logo.svg"), icon_image=str(_HERE / "icon.svg"), size="large")
    who = owner.get()  # what a tab remembers of another owner is forgotten before it is read
    if who is not None:
        work.came(who.id, st.context.ip_address)
    datasets = zoo.datasets()
    hidden = _hidden(list(datasets)) if datasets else ()
    menu = {group: found for group, pages in _PAGES.items() if (found := _existing(pages, hidden))}
    page = st.navigation(menu)
    pages = {one.url_path: one for group in menu.values() for one in group}
    if not datasets:
        _nothing(page, who)
        return
    with guard.watch("the app"):
        with guard.watch("what you saved"):
            saved.follow(list(datasets), pages)
        state.sync(list(datasets), page.url_path)
        zoo.keep(state.get().dataset)
        guard.pending()
        with st.sidebar, guard.watch("the history"):
            browser.show()
            tray.show(datasets)
            with st.container(horizontal=True, gap="xsmall"):
                saved.show(page.url_path, pages)
                you.show(who)
        saved.problem()
        for problem in state.get().problems:
            st.warning(md(problem, 2_000), icon=":material/link_off:")
        with guard.watch(f"the page {page.title}"):
            page.run()
    run_queue.settle(page.title)


def _nothing(page: Any, who: owner.Owner | None) -> None:
    """Where no models were exported, one can still bring data."""
    if page.url_path == YOUR_DATA:
        guard.pending()
        with st.sidebar, guard.watch("whose data these are"):
            you.show(who)
        with guard.watch(f"the page {page.title}"):
            page.run()
        return
    st.title("There is nothing to show yet")
    st.markdown("No exported models were found. Those who run this server train and export one:")
    st.code("make exports          # those of the embedded datasets\nseqscope export --help", language="bash")
    st.page_link(
        str(_HERE / "screens" / f"{YOUR_DATA}.py"), label="Or bring a catalogue of your own", icon=":material/upload:"
    )


def _hidden(datasets: list[str]) -> list[str]:
    """Pages that have nothing to show of the dataset that will be shown: the menu need not speak of them."""
    try:
        models = zoo.open_zoo(state.coming(datasets))
    except SeqscopeError:
        return ["semantic_ids", "graph"]  # the page says what is wrong when it opens the dataset itself
    return ["semantic_ids"] * (not models.tokenizations) + ["graph"] * (not carriers(models))


def _existing(pages: list[tuple[str, str, str, str]], hidden: Sequence[str]) -> list[Any]:
    """A hidden page can be had by its address, and says there why it is not in the menu."""
    return [
        st.Page(
            path,
            title=title,
            icon=icon,
            help=words,
            default=name == "compare",
            visibility="hidden" if name in hidden else "visible",
        )
        for name, title, icon, words in pages
        if (path := _HERE / "screens" / f"{name}.py").is_file()
    ]


show_waiting(guard.spinner)
zoo.visitors(owner.id_of_visitor)
with run_queue.RUNS.turn(), zoo.looked_at_once():
    main()
