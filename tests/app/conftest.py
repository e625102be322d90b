"""A folder of exports whose titles and ids try to be more than text, and the app opened on it."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Widget
from streamlit.util import calc_hash

from app import zoo
from app.session.state import State
from engine.runtime import Zoo
from tests.runtime.bundles import make_zoo, rewrite

if TYPE_CHECKING:
    from tests.app.own import Nobody

Open = Callable[..., AppTest]
HOSTILE = [
    "<script>alert(1)</script>",
    "$\\frac{a}{b}$ and $x$",
    '=HYPERLINK("http://example.org")',
    "기생충",
    "שלום (2020)",
    "🎬 :tada: **bold** [a](http://b.org)",
    ":red[not red] :material/home: www.example.org",
    "1984. A -> B -- C",
]
# Every AppTest reads the metadata of all installed packages anew, in search of components: longer than most pages take.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
ODD_IDS = ["a.b", "a,b", "a~b", "a%2Cb", "", "%", "ключ", "a b&c=d#e"]


def rename(path: Path, titles: list[str], item_ids: list[str]) -> None:
    """Gives the first items of a zoo other titles and ids."""
    items = pq.read_table(path / "items.parquet")
    first = {"title": titles, "item_id": item_ids}
    columns = {name: [*values, *items[name].to_pylist()[len(values) :]] for name, values in first.items()}
    rewrite(path / "items.parquet", **columns)


def at_page(root: Path, page: str, **address: str) -> AppTest:
    """The app before its first run, as a link leads to it: switch_page would have it draw the first page before."""
    test = AppTest.from_file(str(root / "app" / "main.py"), default_timeout=60)
    if page:
        test._page_hash = calc_hash(page)
    test.query_params.update(address)
    return test


def alone(page: str, **address: str) -> AppTest:
    """A page without the frame around it, before its first run. What a test puts into the session as "clicked", a module and a
    click, goes to the `act` of that module before the page is drawn."""

    def script(name: str) -> None:
        import importlib
        import runpy

        import streamlit as st

        from app import zoo
        from app.screens import PAGES
        from app.session import state

        state.sync(list(zoo.datasets()), zoo.open_zoo, PAGES[name])
        if "clicked" in st.session_state:
            module, click = st.session_state.pop("clicked")
            importlib.import_module(module).act(click)
        runpy.run_path(str(PAGES[name].script), run_name=name)

    test = AppTest.from_function(script, default_timeout=120, args=(page,))
    test.query_params.update(address)
    return test


def run_without_fault(changed: AppTest | Widget) -> AppTest:
    """The page after a run in which nothing failed."""
    test = changed.run()
    assert not test.exception and not test.error
    return test


def told(test: AppTest) -> str:
    """What a page says in sentences."""
    return " ".join(part.value for kind in ("markdown", "caption", "info") for part in getattr(test, kind))


def plain(test: AppTest) -> str:
    """The same without what keeps Streamlit from reading it as Markdown."""
    return told(test).replace("\\", "").replace("\u2060", "")


def state_of(test: AppTest) -> State:
    """What the visitor looks at, as the address says it."""
    now: State = test.session_state["seqscope_state"]
    return now


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """hostile: odd titles and ids, one bundle refused; toys: plain."""
    root = tmp_path_factory.mktemp("exports")
    path = make_zoo(root, name="hostile")
    rename(path, HOSTILE, ODD_IDS)
    (path / "broken").mkdir()
    (path / "broken" / "manifest.json").write_text("{}")
    make_zoo(root, name="toys")
    return root


@pytest.fixture
def open_app(root: Path, exports: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """open_app(**address) runs the app on `exports` at that address; page: its first one unless told."""

    def start(folder: Path = exports, page: str = "", **address: str) -> AppTest:
        monkeypatch.setenv("SEQSCOPE_EXPORTS", str(folder))
        test = at_page(root, page, **address)
        test.run()
        assert not test.exception
        return test

    return start


@pytest.fixture
def open_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """open_changed(page, change, **address) draws a page alone, over a zoo that `change` may alter before."""

    def start(page: str, change: Callable[[Path], object] = lambda path: None, **address: str) -> AppTest:
        path = make_zoo(tmp_path / "exports")
        change(path)
        monkeypatch.setenv("SEQSCOPE_EXPORTS", str(path.parent))
        return run_without_fault(alone(page, **address))

    return start


@pytest.fixture
def shown(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The zoo that a file of tests makes for all of them, its `made`, as the app shows it."""
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(made.parent))
    return made


@pytest.fixture
def changed(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, to be changed, shown in its place."""
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path))
    return shutil.copytree(made, tmp_path / made.name)


@pytest.fixture
def models(exports: Path, monkeypatch: pytest.MonkeyPatch) -> Zoo:
    """The plain dataset of `exports`, as the app has it open."""
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(exports))
    return zoo.open_zoo("toys")


@pytest.fixture
def launcher(tmp_path: Path, exports: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nobody]:
    """What visitors keep begins empty, and no job begins but in words."""
    from tests.app import own

    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(exports))
    with own.own_home(tmp_path / "home", monkeypatch) as nobody:
        yield nobody
