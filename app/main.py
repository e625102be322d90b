"""The app's frame: pages, tray and address. Everything else lives in the pages."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from app import guard, state, tray, zoo
from app.text import md

_HERE = Path(__file__).parent
_PAGES = {
    "Try": [
        ("compare", "Compare", ":material/compare_arrows:", "What each model recommends next, side by side."),
        ("catalogue", "Catalogue", ":material/search:", "Search and filter the items; build a history."),
    ],
    "Look inside": [
        ("attention", "Attention", ":material/visibility:", "What a model looked at while it read the history."),
        ("map", "Map", ":material/scatter_plot:", "Items as a model arranges them, with the history on top."),
    ],
    "Judge": [
        ("metrics", "Metrics", ":material/leaderboard:", "How good the models are, with intervals and tests."),
        ("about", "About", ":material/info:", "The models, the data, and how everything is measured."),
    ],
}


def main() -> None:
    st.set_page_config(page_title="Seqscope", page_icon=":material/timeline:", layout="wide")
    page = st.navigation(
        {
            group: [
                st.Page(_HERE / "pages" / f"{name}.py", title=title, icon=icon, help=words, default=name == "compare")
                for name, title, icon, words in pages
                if (_HERE / "pages" / f"{name}.py").is_file()
            ]
            for group, pages in _PAGES.items()
        }
    )
    found = zoo.datasets()
    if not found:
        st.title("There is nothing to show yet")
        st.markdown(md(f"No exported models were found in {zoo.root()}. Train and export one:"))
        st.code("make exports          # the embedded sample\nseqscope export --help", language="bash")
        return
    with guard.watch("the app"):
        state.sync(list(found))
        guard.pending()
        with st.sidebar, guard.watch("the history"):
            tray.show(found)
        for problem in state.get().problems:
            st.warning(md(problem, 2_000), icon=":material/link_off:")
        with guard.watch(f"the page {page.title}"):
            page.run()


main()
