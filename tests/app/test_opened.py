"""What is open of datasets: opened once, closed when others need the memory, and a failure is not tried again at each visit."""

import gc
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from app import home, serve, zoo
from app.analysis import attention, cache, tokenizers
from app.analysis.cache import Opened, cached, of_opened
from app.store import prepared
from app.store.quota import QuotaReached
from app.store.server import open_store
from engine.bundle import items
from engine.errors import SeqscopeError
from engine.runtime import LeaveOneOut, Zoo
from tests.app.own import ANNA, own_home, ready
from tests.runtime.bundles import make_zoo, rewrite
from tests.runtime.tokenizations import write_tokenization


class Shop:
    """Opens names of so many bytes; counts, and waits where it is told to."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.stamps: dict[str, str] = {}
        self.gates: dict[str, threading.Event] = {}
        self.begun = threading.Event()
        self.fails: Exception | None = None

    def open(self, path: str) -> str:
        self.opened.append(path)
        if path in self.gates:
            self.begun.set()
            assert self.gates[path].wait(20)
        if self.fails is not None:
            raise self.fails
        return path

    def stamp(self, path: str) -> str:
        return self.stamps.get(path, "")

    def shelf(self, most: int = 100) -> Opened[str]:
        return Opened(self.open, stamp=self.stamp, size=lambda value: 40, most=lambda: most)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def run(*calls: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def test_many_who_want_the_same_open_it_once_and_hold_nobody_else_up(shop: Shop) -> None:
    shelf, gate = shop.shelf(), threading.Event()
    shop.gates["slow"] = gate
    threads = run(*[lambda: shelf.get("slow")] * 5)
    assert shop.begun.wait(20)
    assert shelf.get("other") == "other"
    gate.set()
    for thread in threads:
        thread.join(20)
    assert shop.opened == ["slow", "other"] and shelf.get("slow") == "slow"


def test_those_looked_at_last_stay_open_as_far_as_the_memory_goes(shop: Shop) -> None:
    shelf = shop.shelf(most=100)
    for path in ("a", "b", "a", "c"):
        shelf.get(path)
    assert ["a" in shelf, "b" in shelf, "c" in shelf] == [True, False, True]
    assert shop.shelf(most=1).get("larger than all") == "larger than all"


def test_what_has_changed_was_deleted_or_turns_out_to_be_damaged_is_opened_anew(shop: Shop) -> None:
    damaged: list[str] = []
    shelf = Opened(shop.open, stamp=shop.stamp, size=len, most=lambda: 9, sound=lambda value: value not in damaged)
    shelf.get("a")
    shop.stamps["a"] = "other"
    shelf.get("a")
    shelf.clear("a")
    shelf.get("a")
    damaged.append("a")
    shelf.get("a")
    assert shop.opened == ["a"] * 4


@pytest.mark.parametrize("error", [SeqscopeError("It has no items."), MemoryError()])
def test_a_failure_is_said_again_and_not_tried_again(
    shop: Shop, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, shop.fails = shop.shelf(), error
    messages = set()
    for _ in range(3):
        with pytest.raises(SeqscopeError) as raised:
            shelf.get("exports/large")
        messages.add(str(raised.value))
    assert len(messages) == len(shop.opened) == 1 and ("no items" in str(messages) or "large" in str(messages))
    for times, again in ((2, shelf.retry), (3, lambda: monkeypatch.setattr(cache, "AGAIN", -1.0))):
        again()
        with pytest.raises(SeqscopeError):
            shelf.get("exports/large")
        assert len(shop.opened) == times
    monkeypatch.setattr(cache, "AGAIN", 600.0)
    shop.fails, shop.stamps["exports/large"] = None, "mended"
    assert shelf.get("exports/large")


def test_the_first_dataset_is_open_before_anybody_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path))
    monkeypatch.setattr(zoo._session, "visitor", lambda: pytest.fail("no visitor is asked who they are"))
    serve.prepare()  # nothing to open
    first, second = make_zoo(tmp_path, name="a"), make_zoo(tmp_path, name="b")
    serve.prepare()
    assert str(first) in zoo._OPEN and str(second) not in zoo._OPEN


def test_what_is_prepared_of_a_visitors_dataset_counts_as_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "FEW", 10)
    monkeypatch.setattr(prepared, "_run", prepared.prepare)
    with own_home(tmp_path / "home", monkeypatch):
        path = str(home.here().dataset(ANNA, ready(ANNA, "My shop").id).exports)
        before = open_store().quota.usage(ANNA).bytes
        monkeypatch.setenv("SEQSCOPE_QUOTA_BYTES", str(before))
        with pytest.raises(QuotaReached):
            zoo._OPEN.get(path)
        monkeypatch.delenv("SEQSCOPE_QUOTA_BYTES")
        zoo._OPEN.retry()
        assert zoo._OPEN.get(path).catalogue.search("toy") is not None
        assert open_store().quota.usage(ANNA).bytes > before


# --- the cache: computed by one while the others wait, read-only, and how often the models' folder is looked at


def test_one_computes_for_all_who_ask_the_same_and_nobody_else_waits() -> None:
    made: list[int] = []

    @cached(5)
    def seven(key: str) -> int:
        time.sleep(0.02)
        made.append(1)
        return 7

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(seven, ["a"] * 16)) == [7] * 16
    assert made == [1]
    here = threading.Barrier(2, timeout=60)

    @cached(5)
    def make(key: str) -> str:
        here.wait()  # both are inside at once
        return "made"

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(make, ("a", "b"))) == ["made", "made"]


def test_what_is_known_of_an_opened_dataset_does_not_keep_it_alive(tmp_path: Path) -> None:
    @cached(2, by=of_opened)
    def titles(models: Zoo) -> list[str]:
        return list(models.titles)

    models = Zoo.open(make_zoo(tmp_path))
    assert titles(models) is titles(models)
    gone = weakref.ref(models)
    del models
    gc.collect()
    assert gone() is None and len(titles) == 1


def test_what_is_computed_of_a_datasets_own_tables_is_computed_anew_where_one_was_replaced(tmp_path: Path) -> None:
    path = make_zoo(tmp_path)
    write_tokenization(path)

    def ask() -> tuple[float, list[str], int]:
        models = Zoo.open(path)
        question = (models, models.items, models.tokenizations["rqvae"], "genres")
        profile = attention.profile(models, "alpha")
        assert profile is not None
        return tokenizers.purity(*question)[0].purity, tokenizers.colours(*question, ()).words, profile.people

    purity, colours, people = ask()
    rewrite(path / "items.parquet", genres=[["wood"]] * 40)
    rewrite(path / "users.parquet", history=[[1, 2, 3]] * 4)
    assert purity < 1 == ask()[0] and ask()[1] != colours and people < 4 == ask()[2]


def test_the_oldest_question_goes_after_a_deletion_all_do_and_what_goes_wrong_is_tried_again() -> None:
    computed: list[str] = []

    @cached(2, by=lambda key, text: key)
    def record(key: str, text: str) -> None:
        computed.append(key)

    for key in "abacacb":
        record(key, "anything")
    assert computed == ["a", "b", "c", "b"]
    cache.forget()
    record("b", "anything")
    assert computed[-2:] == ["b", "b"]
    divisors = [0, 1]

    @cached(2)
    def divide() -> float:
        return 3 // divisors.pop(0)

    with pytest.raises(ZeroDivisionError):
        divide()
    assert divide() == 3


def test_nobody_can_change_what_others_get() -> None:
    effect = LeaveOneOut(3, 1.0, np.ones(2), -0.5, np.zeros(2, np.float32), 0.5, np.zeros(2, np.float32), range(2))
    (shared,) = cached(2)(lambda: [effect])()
    for array in (shared.effect, shared.rank_without):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    table = cached(2)(lambda: pd.DataFrame({"a": [1, 2]}))
    frame = table()
    frame.loc[0, "a"] = 7
    frame["b"] = 0
    assert table().to_dict("list") == {"a": [1, 2]}


def test_a_run_of_a_page_looks_at_the_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(tmp_path))
    path = make_zoo(tmp_path, name="toys")
    zoo.open_zoo("toys")
    looks = []
    monkeypatch.setattr(zoo._OPEN, "_stamp", lambda path: looks.append(path) or Zoo.stamp(path))
    with zoo.looked_at_once():
        first = zoo.open_zoo("toys")
        (path / "alpha" / "manifest.json").unlink()
        assert zoo.open_zoo("toys") is first and len(looks) == 1
    assert "alpha" in first.bundles and "alpha" not in zoo.open_zoo("toys").bundles
    with zoo.looked_at_once():
        assert "alpha" not in zoo.open_zoo("toys").bundles
