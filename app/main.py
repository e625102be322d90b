"""The app's frame: pages, sidebar and address. Everything else lives in screens/, one folder per page.

A page declares itself in its folder (app/screens); this frame iterates over what is declared.

That folder must not be called pages/: Streamlit then takes the app for one of its first form of multipage apps, runs a page
that a link leads to without this file, and AppTest loses the sidebar from the second run on.
"""

from pathlib import Path
from typing import Any

import streamlit as st

from app import guard, work, zoo
from app.analysis.cache import show_waiting
from app.components import item_panel, jobs, saved, sidebar, widgets
from app.screens import PAGES
from app.server import owner, run_queue
from app.session import state
from app.session.pages import Page
from app.text import md
from engine.errors import SeqscopeError
from engine.runtime import Zoo

_HERE = Path(__file__).parent
_FIRST = next(iter(PAGES.values()))


def main() -> None:
    st.set_page_config(page_title="Seqscope", page_icon=str(_HERE / "icon.svg"), layout="wide")
    st.logo(str(_HERE / "logo.svg"), icon_image=str(_HERE / "icon.svg"), size="large")
    who = owner.get()  # what a tab remembers of another owner is forgotten before it is read
    if who is not None:
        work.came(who.id, st.context.ip_address)
    datasets = zoo.datasets()
    menu = _menu(_opened(state.coming(list(datasets))) if datasets else None)
    page = st.navigation(menu)
    pages = {entry.url_path: entry for entries in menu.values() for entry in entries}
    declared = PAGES.get(page.url_path, _FIRST)
    if not datasets:
        _nothing(page, declared, who)
        return
    with guard.watch("the app"):
        not_followed = None
        with guard.watch("what you saved"):
            not_followed = saved.follow(list(datasets), pages)
        state.sync(list(datasets), zoo.open_zoo, declared)
        for words in (not_followed, owner.not_signed_in() if who is None else ""):
            if words:
                state.warn(words)
        zoo.keep(state.get().dataset)
        models = _opened(state.get().dataset)
        stamp = zoo.own_stamp(state.get().dataset)
        with guard.watch("the details of the item"):
            if models is not None:
                item_panel.show(declared.name)  # always the first element
        guard.pending()
        with st.sidebar, guard.watch("the history"):
            widgets.browser()
            sidebar.show(datasets, models)
            with st.container(horizontal=True, gap="xsmall"):
                if models is not None:
                    saved.show(page.url_path, pages)
                sidebar.account(who)
        for problem in state.get().problems:
            st.warning(md(problem, 2_000), icon=":material/link_off:")
        with guard.watch(f"the page {page.title}"):
            page.run()
        if who is not None and stamp and not declared.without_datasets:
            with guard.watch("the jobs"):
                jobs.follow(who.id, state.get().dataset, stamp)
    run_queue.settle(page.title)


def _nothing(page: Any, declared: Page, who: owner.Owner | None) -> None:
    """Where no models were exported, one can still bring data."""
    if who is None and (words := owner.not_signed_in()):
        st.warning(words, icon=":material/link_off:")
    if declared.without_datasets:
        guard.pending()
        with st.sidebar, guard.watch("whose data these are"):
            sidebar.account(who)
        with guard.watch(f"the page {page.title}"):
            page.run()
        return
    st.title("There is nothing to show yet")
    st.markdown("No exported models were found. Those who run this server train and export one:")
    st.code("make exports          # those of the embedded datasets\nseqscope export --help", language="bash")
    for other in PAGES.values():
        if other.without_datasets:
            st.page_link(str(other.script), label="Or bring a catalogue of your own", icon=":material/upload:")


def _opened(dataset: str) -> Zoo | None:
    """None where it cannot be opened: the page alone says what is wrong then."""
    try:
        return zoo.open_zoo(dataset)
    except SeqscopeError:
        return None


def _menu(models: Zoo | None) -> dict[str, list[Any]]:
    """Section → its pages. A hidden page can be had by its address, and says there why it is not in the menu."""
    menu: dict[str, list[Any]] = {}
    for page in PAGES.values():
        with guard.watch(f"the page {page.title}"):  # one of another package must not take the others along
            entry = st.Page(
                page.script,
                url_path=page.name,
                title=page.title,
                icon=page.icon,
                help=page.help,
                default=page is _FIRST,
                visibility="hidden" if page.hidden(models) else "visible",
            )
            menu.setdefault(page.section, []).append(entry)
    return menu


show_waiting(guard.spinner)
zoo.visitors(owner.id_of_visitor)
with run_queue.RUNS.turn(), zoo.looked_at_once():
    main()
