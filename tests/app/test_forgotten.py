"""Of a dataset that was deleted, or has expired, nothing stays in the memory of the server."""

import gc
import re
import weakref
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from app import examples, home, spaces, styles, work, zoo
from app.analysis import attention, cache, evaluation, recommend
from app.screens.map import controls
from app.store import records
from app.store.database import Store
from app.store.records import StoredDataset
from app.store.server import open_store
from app.store.sweep import sweep
from engine.runtime import Zoo
from tests.app.own import ANNA, Nobody, ready


@pytest.fixture(autouse=True)
def _nothing_of_other_tests(launcher: Nobody) -> None:
    cache.forget()


def look_at(dataset: StoredDataset) -> weakref.ref[Zoo]:
    """Asks what pages ask; everything is then kept somewhere."""
    path = zoo.visible_datasets(ANNA)[dataset.id].path
    models = zoo._OPEN.get(str(path)).zoo
    name = next(iter(models.bundles))
    recommend.top_k(models, name, (1, 2, 3), 5)
    recommend.ranks(models, name, (1, 2, 3), (4, 5))
    recommend.leave_one_out(models, name, (1, 2, 3), 4)
    styles.titled(models, 1)
    examples.of(models)
    examples.find_user(models, "1")
    attention.profile(models, name)
    evaluation.protocols(models)
    places = spaces.able(models)
    for place in places.values():
        spaces.points(models, place)
        spaces.near(place, 1, 3)
    controls._colourable(zoo._OPEN.get(str(path)).catalogue, 1)
    return weakref.ref(models)


@pytest.mark.parametrize(
    "go",
    [
        lambda store, id: store.datasets.delete(ANNA, id),
        lambda store, id: sweep(store, records.now() + timedelta(days=30)),
    ],
    ids=["deleted", "expired"],
)
def test_nothing_of_it_stays_in_memory(go: Callable[[Store, str], object]) -> None:
    dataset = ready(ANNA, "My shop", events=60)
    models = look_at(dataset)
    gc.collect()
    assert models() is not None and len(recommend.top_k) == 1  # it is kept as long as it is there
    assert len(examples.of) == 1
    go(open_store(), dataset.id)
    gc.collect()
    assert models() is None, gc.get_referrers(models())
    assert not any(len(one) for one in cache._CACHES)
    assert not home.here().dataset(ANNA, dataset.id).path.exists()


def test_the_queue_keeps_no_job_whose_folder_is_gone() -> None:
    dataset = ready(ANNA, "My shop")
    row = work.prepare(ANNA, dataset.id, exports=zoo.root())
    own = work.queue()
    own.ahead(row.id)
    assert row.id in own._cache
    home.here().discard(home.here().job(row.id))
    own.ahead(row.id)
    assert row.id not in own._cache


def test_whatever_keeps_answers_can_forget_them(root: Path) -> None:
    """By app.analysis.cache. What is the same for everybody, files of the program say, may be kept by other means."""
    constants = {
        "_template",
        "_environment",
        "_read",
        "_plotly",
        "_typeface",
        "_temporary",
        "_places",
        "_unasked",
        "_schema",
    }
    keeps = re.compile(r"@(?:st\.cache_\w+|functools\.(?:lru_)?cache)\b.*\n(?:@.*\n)*def (\w+)")
    found = {name for path in (root / "app").rglob("*.py") for name in keeps.findall(path.read_text("utf-8"))}
    assert found and not found - constants
