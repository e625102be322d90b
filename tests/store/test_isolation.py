"""Nobody gets anything of anybody else's, whatever they ask for: every public function of the store is asked."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app import home
from app.store.database import Store
from app.store.records import NotFound
from tests.store import ANNA, BEN

PARTS = ("datasets", "histories", "comparisons", "reports", "jobs", "quota")
# parts of a Store that no page may ask
OF_THE_SERVER = {"home", "file", "closed", "close", "folders", "unfinished", "without_events", "gone", "on_delete"}
OF_ALL_OWNERS = {("quota", "being_made")}  # numbers of bytes, for the other parts
SECRET, NAME = "annas-secret", "a name that both give"


@dataclass
class Ids:
    """Of what Anna has."""

    dataset: str
    history: str
    comparison: str
    report: str
    job: str
    ended: str


# (part, function) → how somebody calls it with what is Anna's
CALLS: dict[tuple[str, str], Callable[[Store, str, Ids], Any]] = {
    ("datasets", "add"): lambda store, who, ids: store.datasets.add(who, "mine"),
    ("datasets", "get"): lambda store, who, ids: store.datasets.get(who, ids.dataset),
    ("datasets", "of"): lambda store, who, ids: store.datasets.of(who),
    ("datasets", "change"): lambda store, who, ids: store.datasets.change(
        who, ids.dataset, title="taken", state="ready"
    ),
    ("datasets", "use"): lambda store, who, ids: store.datasets.use(who, ids.dataset),
    ("datasets", "measure"): lambda store, who, ids: store.datasets.measure(who, ids.dataset),
    ("datasets", "delete"): lambda store, who, ids: store.datasets.delete(who, ids.dataset),
    ("histories", "save"): lambda store, who, ids: store.histories.save(who, ids.dataset, NAME, ["x"], replace=True),
    ("histories", "get"): lambda store, who, ids: store.histories.get(who, ids.history),
    ("histories", "of"): lambda store, who, ids: store.histories.of(who, ids.dataset),
    ("histories", "rename"): lambda store, who, ids: store.histories.rename(who, ids.history, "taken"),
    ("histories", "delete"): lambda store, who, ids: store.histories.delete(who, ids.history),
    ("comparisons", "save"): lambda store, who, ids: store.comparisons.save(who, ids.dataset, NAME, "/x", replace=True),
    ("comparisons", "get"): lambda store, who, ids: store.comparisons.get(who, ids.comparison),
    ("comparisons", "of"): lambda store, who, ids: store.comparisons.of(who, ids.dataset),
    ("comparisons", "rename"): lambda store, who, ids: store.comparisons.rename(who, ids.comparison, "taken"),
    ("comparisons", "delete"): lambda store, who, ids: store.comparisons.delete(who, ids.comparison),
    ("reports", "save"): lambda store, who, ids: store.reports.save(who, ids.dataset, NAME, {"x": 1}, replace=True),
    ("reports", "get"): lambda store, who, ids: store.reports.get(who, ids.report),
    ("reports", "of"): lambda store, who, ids: store.reports.of(who, ids.dataset),
    ("reports", "rename"): lambda store, who, ids: store.reports.rename(who, ids.report, "taken"),
    ("reports", "delete"): lambda store, who, ids: store.reports.delete(who, ids.report),
    ("jobs", "add"): lambda store, who, ids: store.jobs.add(who, ids.dataset, "train", {}),
    ("jobs", "get"): lambda store, who, ids: store.jobs.get(who, ids.job),
    ("jobs", "of"): lambda store, who, ids: store.jobs.of(who, ids.dataset),
    ("jobs", "change"): lambda store, who, ids: store.jobs.change(who, ids.job, "cancelled", "taken"),
    ("jobs", "delete"): lambda store, who, ids: store.jobs.delete(who, ids.ended),
    ("quota", "left"): lambda store, who, ids: store.quota.left(who),
    ("quota", "usage"): lambda store, who, ids: store.quota.usage(who),
    ("quota", "more"): lambda store, who, ids: store.quota.more(who, home.here().dataset(ANNA, ids.dataset).path),
    ("quota", "check"): lambda store, who, ids: store.quota.check(who, rows=1),
}
TAKES_AN_ID = {(part, name) for part, name in CALLS if name in ("get", "change", "use", "measure", "delete", "rename")}


@pytest.fixture
def annas(store: Store) -> Ids:
    staged = home.here().stage()
    (staged / "titles.csv").write_text(SECRET)
    dataset = store.datasets.add(ANNA, SECRET, staged=staged, rows_items=5, reading={"column": SECRET})
    job = store.jobs.add(ANNA, dataset.id, "train", {"model": SECRET})
    ended = store.jobs.add(ANNA, dataset.id, "train", {"model": SECRET})
    store.jobs.change(ANNA, ended.id, "failed", SECRET)
    for one in (job, ended):
        home.here().job(one.id).mkdir(parents=True)
    return Ids(
        dataset.id,
        store.histories.save(ANNA, dataset.id, NAME, [SECRET]).id,
        store.comparisons.save(ANNA, dataset.id, NAME, f"/?h={SECRET}").id,
        store.reports.save(ANNA, dataset.id, NAME, {"text": SECRET}).id,
        job.id,
        ended.id,
    )


def all_of(store: Store, owner: str) -> Any:
    """Everything that somebody has: rows, and files with their contents."""
    parts = (store.datasets, store.histories, store.comparisons, store.reports, store.jobs)
    folder = home.root() / "owners" / owner
    files = {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    jobs = {path.name: sorted(path.iterdir()) for path in (home.root() / "jobs").iterdir()}
    return [part.of(owner) for part in parts], files, jobs  # type: ignore[attr-defined]


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_") and callable(getattr(thing, name))}


def test_every_function_is_asked_below(store: Store) -> None:
    there = {name for name in vars(store) if not name.startswith("_")} | public(store)
    assert there == {*PARTS, *OF_THE_SERVER}
    assert {(part, name) for part in PARTS for name in public(getattr(store, part))} == {*CALLS, *OF_ALL_OWNERS}


def test_nothing_is_seen_or_changed(store: Store, annas: Ids) -> None:
    before = all_of(store, ANNA)
    for (part, name), call in CALLS.items():
        try:
            answer: object = call(store, BEN, annas)
        except NotFound as error:
            assert (part, name) in TAKES_AN_ID
            answer = error
        else:
            assert (part, name) not in TAKES_AN_ID
        assert SECRET not in repr(answer), (part, name)
        assert all_of(store, ANNA) == before, (part, name)


def test_what_is_not_there_reads_like_what_is_somebody_elses(store: Store, annas: Ids) -> None:
    nothing = Ids(*(home.new_id() for _ in range(6)))
    for key in TAKES_AN_ID:
        with pytest.raises(NotFound) as somebodys:
            CALLS[key](store, BEN, annas)
        with pytest.raises(NotFound) as nobodys:
            CALLS[key](store, BEN, nothing)
        assert str(somebodys.value) == str(nobodys.value)


def test_the_owner_gets_it(store: Store, annas: Ids) -> None:
    """The calls above were refused because of who called, not because they are wrong."""
    for key in sorted(CALLS, key=lambda key: (key[1] == "delete", key == ("datasets", "delete"))):
        CALLS[key](store, ANNA, annas)


def test_what_has_not_the_form_of_an_owner_is_refused_and_an_id_is_only_a_value(store: Store, annas: Ids) -> None:
    before = all_of(store, ANNA)
    for owner in ("", "b%", "../" * 11, ANNA[:-1], ANNA + "\n"):
        for key, call in CALLS.items():
            with pytest.raises(ValueError, match="not a"):
                call(store, owner, annas)
            assert key  # shown where it fails
    assert all_of(store, ANNA) == before
    before = all_of(store, ANNA)
    for id in ("' or '1' = '1", "%", "", "x'; drop table dataset; --"):
        for part in (store.datasets, store.histories, store.comparisons, store.reports, store.jobs):
            with pytest.raises(NotFound):
                part.get(BEN, id)  # type: ignore[attr-defined]
    assert all_of(store, ANNA) == before


def test_no_page_asks_what_is_the_servers(root: Path) -> None:
    forbidden = re.compile(r"\.((unfinished|without_events|gone)\(|file\.(ask|transaction|alone))")
    pages = [path for folder in ("screens", "components") for path in (root / "app" / folder).rglob("*.py")]
    assert pages
    assert [path.name for path in pages if forbidden.search(path.read_text("utf-8"))] == []
