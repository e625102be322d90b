"""Named histories, comparisons and reports."""

import pytest

from app.limits import MAX_HISTORY, MAX_ID
from app.store import saved
from app.store.database import Store
from app.store.quota import QuotaReached
from app.store.records import NotFound
from engine.errors import SeqscopeError
from tests.store import ANNA, BEN
from tests.store.test_datasets import at


def test_a_history_comes_back_to_the_letter(store: Store) -> None:
    items = ("", "ключ", "a~b,'\"\\", "007", "기생충")
    found = store.histories.save(ANNA, "sample", "Odd ones", items)
    assert store.histories.get(ANNA, found.id).items == items
    assert store.histories.of(ANNA) == [found]


def test_a_name_is_given_once_per_dataset_and_owner(store: Store) -> None:
    first = store.histories.save(ANNA, "sample", "Westerns", ["a"])
    with pytest.raises(SeqscopeError, match="“Westerns” already"):
        store.histories.save(ANNA, "sample", " Westerns ", ["b"])
    assert store.histories.get(ANNA, first.id).items == ("a",)
    replaced = store.histories.save(ANNA, "sample", "Westerns", ["b"], replace=True)
    assert (replaced.id, replaced.items, replaced.created) == (first.id, ("b",), first.created)
    assert replaced.changed > first.changed
    store.histories.save(ANNA, "other", "Westerns", ["c"])
    store.histories.save(BEN, "sample", "Westerns", ["d"])
    assert [history.items for history in store.histories.of(ANNA, "sample")] == [("b",)]


def test_renaming(store: Store) -> None:
    one, two = (store.histories.save(ANNA, "sample", name, ["a"]) for name in ("One", "Two"))
    assert store.histories.rename(ANNA, one.id, " Eins ").name == "Eins"
    assert store.histories.rename(ANNA, one.id, "Eins").name == "Eins"
    for wrong, words in (("Two", "Choose another name"), (" \n", "name")):
        with pytest.raises(SeqscopeError, match=words):
            store.histories.rename(ANNA, one.id, wrong)
    store.histories.save(ANNA, "sample", "Two", ["b"], replace=True)
    assert [history.name for history in store.histories.of(ANNA)] == ["Two", "Eins"]  # the latest comes first
    store.histories.delete(ANNA, two.id)
    with pytest.raises(NotFound):
        store.histories.get(ANNA, two.id)


def test_what_is_no_history_is_refused_and_an_address_leads_nowhere_else(store: Store) -> None:
    with pytest.raises(SeqscopeError, match="empty"):
        store.histories.save(ANNA, "sample", "x", [])
    for wrong in (["a"] * (MAX_HISTORY + 1), ["x" * (MAX_ID + 1)], [1]):
        with pytest.raises(ValueError, match="not a history"):
            store.histories.save(ANNA, "sample", "x", wrong)  # type: ignore[arg-type]
    for wrong_dataset in ("", "../x", "a\nb"):
        with pytest.raises(ValueError, match="not a dataset"):
            store.histories.save(ANNA, wrong_dataset, "x", ["a"])
    found = store.comparisons.save(ANNA, "sample", "c", "/map?v=1&ds=sample&h=a~b%20c")
    assert store.comparisons.get(ANNA, found.id).address == "/map?v=1&ds=sample&h=a~b%20c"
    for wrong in ("https://example.org", "//example.org/x", "/\\example.org", "/\n"):
        with pytest.raises(ValueError, match="not an address"):
            store.comparisons.save(ANNA, "sample", "d", wrong)
    with pytest.raises(SeqscopeError, match="70,001 characters"):
        store.comparisons.save(ANNA, "sample", "d", "/" + "a" * 70_000)


def test_not_more_than_so_many(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "MAX_SAVED", 2)
    for name in ("a", "b"):
        store.histories.save(ANNA, "sample", name, ["x"])
    with pytest.raises(SeqscopeError, match="At most 2"):
        store.histories.save(ANNA, "sample", "c", ["x"])
    store.histories.save(ANNA, "sample", "b", ["y"], replace=True)
    store.comparisons.save(ANNA, "sample", "a", "/")
    store.histories.save(BEN, "sample", "c", ["x"])


def test_reports_count_for_the_quota_lists_are_light_and_files_go_with_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"version": 1, "text": "x" * 1000}
    found = store.reports.save(ANNA, "sample", "r", document)
    assert store.reports.get(ANNA, found.id).document == document
    assert store.reports.of(ANNA)[0].document is None
    assert 1000 < store.quota.usage(ANNA).bytes < 1100
    monkeypatch.setenv("SEQSCOPE_QUOTA_BYTES", "1500")
    with pytest.raises(QuotaReached):
        store.reports.save(ANNA, "sample", "s", document)
    with pytest.raises(ValueError):
        store.reports.save(ANNA, "sample", "s", {"x": float("nan")})
    store.reports.delete(ANNA, found.id)
    assert store.quota.usage(ANNA).bytes == 0


def test_a_browsers_expire_unless_they_are_opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, gone = (store.histories.save(ANNA, "sample", name, ["x"]) for name in ("kept", "gone"))
    at(monkeypatch, 5)
    store.histories.get(ANNA, kept.id)
    at(monkeypatch, 8)
    assert [history.id for history in store.histories.of(ANNA)] == [kept.id]
    with pytest.raises(NotFound):
        store.histories.get(ANNA, gone.id)
