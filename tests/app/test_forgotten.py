"""Of a dataset that was deleted nothing stays in the memory of the server."""

from __future__ import annotations

import ast
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import examples, home, kept, looks, spaces, work, zoo
from app.kept import Kept, until_deleted
from app.parts import map_controls
from app.store.database import open_store
from app.store.records import Dataset
from app.views import attention_answers, metrics_answers
from engine.runtime import Zoo
from tests.app.own import ANNA, Nobody, own_home, ready

SERVERS = {"_title", "_settled"}
"""Of zoo.py: titles of the server's own datasets; main.py: code, no data."""
CONSTANTS = {"_template", "_environment", "_read", "_plotly", "_temporary"}
"""Of export.py and reports/html.py: files of the program; store/prepared.py: the name of a folder."""


@pytest.fixture(autouse=True)
def launcher(tmp_path: Path, exports: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nobody]:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(exports))
    kept.forget()  # what other tests have left
    with own_home(tmp_path / "home", monkeypatch) as found:
        yield found


def look_at(dataset: Dataset) -> weakref.ref[Zoo]:
    """Asks what pages ask; everything is then kept somewhere."""
    path = zoo.places(ANNA)[dataset.id].path
    models = zoo._OPEN.get(str(path)).zoo
    name = next(iter(models.bundles))
    zoo.top(models, name, (1, 2, 3), 5)
    zoo.ranks(models, name, (1, 2, 3), (4, 5))
    zoo.neighbours(models, name, 1, 3)
    zoo.leave_one_out(models, name, (1, 2, 3), 4)
    looks.titled(models, 1)
    examples.of(models)
    examples.find_user(models, "1")
    attention_answers.profile(models, name)
    metrics_answers.protocols(models)
    places = spaces.able(models)
    for place in places.values():
        spaces.points(models, place)
    map_controls._colourable(zoo._OPEN.get(str(path)).catalogue, 1)
    return weakref.ref(models)


def test_nothing_of_it_stays_in_memory() -> None:
    dataset = ready(ANNA, "My shop", events=60)
    models = look_at(dataset)
    gc.collect()
    assert models() is not None and len(zoo._TOP) == len(zoo._NEIGHBOURS) == 1  # it is kept as long as it is there
    assert examples.of.cache_info().currsize == 1
    open_store().datasets.delete(ANNA, dataset.id)
    gc.collect()
    assert models() is None, gc.get_referrers(models())
    assert not any(len(one) for one in kept._ALL)
    assert not home.dataset(ANNA, dataset.id).path.exists()


def test_what_has_expired_is_forgotten_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    from app.store import rows
    from app.store.sweep import sweep

    dataset = ready(ANNA, "My shop")
    models = look_at(dataset)
    assert sweep(open_store(), rows.now() + timedelta(days=30)).datasets == 1
    gc.collect()
    assert models() is None and not any(len(one) for one in kept._ALL)


def test_a_function_that_was_kept_is_asked_anew() -> None:
    import functools

    asked = []

    @until_deleted
    @functools.lru_cache(maxsize=2)
    def ask(what: int) -> int:
        asked.append(what)
        return what

    own: Kept[int] = Kept(2)
    for _ in range(2):
        ask(1)
        own.get("a", lambda: 7)
    assert asked == [1] and len(own) == 1
    kept.forget()
    assert ask(1) == 1 and asked == [1, 1] and len(own) == 0


def test_the_queue_keeps_no_job_whose_folder_is_gone() -> None:
    dataset = ready(ANNA, "My shop")
    row = work.prepare(ANNA, dataset.id, exports=zoo.root())
    own = work.queue()
    own.ahead(row.id)
    assert row.id in own._kept
    home.discard(home.job(row.id))
    own.ahead(row.id)
    assert row.id not in own._kept


def decorated(path: Path) -> Iterator[tuple[str, list[str]]]:
    """(function, its decorators) of every function in a file that keeps its answers."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            names = [ast.unparse(one).split("(")[0] for one in node.decorator_list]
            if {"st.cache_data", "st.cache_resource", "functools.lru_cache", "functools.cache"} & set(names):
                yield node.name, names


def test_whatever_keeps_answers_can_forget_them(root: Path) -> None:
    found = {
        f"{path.name}:{name}": names for path in sorted((root / "app").rglob("*.py")) for name, names in decorated(path)
    }
    assert len(found) > 20
    lacking = [name for name, names in found.items() if names[0] != "until_deleted"]
    assert [name for name in lacking if name.split(":")[1] not in SERVERS | CONSTANTS] == []
