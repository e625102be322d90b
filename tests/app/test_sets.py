"""A dataset that holds out a set of items per user, from training to every page."""

from pathlib import Path

import numpy as np
import pytest

from app import examples
from app.reports.build import build
from app.reports.document import Asked
from app.reports.parts.metrics import protocol_words
from app.screens.about import cards
from engine.data.split import SplitOptions
from engine.evaluation.evaluate import evaluate
from engine.export.bundle import export_run
from engine.runtime import Zoo, judge
from engine.training.run import open_run, train
from tests.app.conftest import Open
from tests.runtime.studies import outcome, study, write
from tests.training.tiny import clusters, recipe, write_log


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Held-out people of a log without an order, two models that need none."""
    root = tmp_path_factory.mktemp("sets")
    split = SplitOptions("users", held_out_users=(10, 30))
    dataset = write_log(root / "data", clusters(100), 60, name="sets", split=split, time_unit="none")
    for name in ("popularity", "mult-vae"):
        run = root / "runs" / name
        train(recipe(name), dataset, run, device="cpu")
        evaluate(open_run(run, dataset.path)[0], dataset, run)
        export_run(run, root / "exports" / "sets")
    return root / "exports"


def test_a_bundle_knows_its_protocol_and_the_split_is_told_as_it_was_made(folder: Path) -> None:
    zoo = Zoo.open(folder / "sets")
    bundle = zoo.bundles["popularity"]
    assert bundle.protocol == "held-out users" and zoo.next_item(0) is None
    table = bundle.ranks_table()
    assert table is not None
    values = judge.per_user("Recall@20", table["rank"].to_numpy(), bundle.protocol, table["user"].to_numpy())
    assert len(values) == 30 == zoo.users.num_rows
    assert values.mean() == pytest.approx(bundle.manifest.metrics[bundle.protocol]["Recall@20"], abs=1e-6)
    report = build(zoo, Asked(history=[], parts=["metrics"], models=["popularity"]))
    assert report.metrics is not None
    card = cards.data_card(zoo.info)
    assert card["Held out"] == "10 items of 10 users to validate, 30 items of 30 users to test"
    assert card["Time"].startswith("none, and no order")
    for text in (card["Split"], protocol_words(report.metrics, report)):
        assert "by users" in text and "last event" not in text
    assert "30 users with held-out items" in protocol_words(report.metrics, report)
    alone = report.metrics.model_copy(update={"people": 1, "left_out": 1})
    told = protocol_words(alone, report)
    assert "1 user with held-out items" in told and "1 user that not every model was evaluated on was" in told


def test_metrics_are_those_of_sets(open_app: Open, folder: Path) -> None:
    test = open_app(folder, page="metrics", ds="sets")
    shown = " ".join(element.value for kind in ("markdown", "caption") for element in test.get(kind))
    assert "30 users with held-out items" in shown and "floor is missing" not in shown and "Next-item" not in shown
    tables = " ".join(str(table.value.columns.tolist()) for table in test.dataframe)
    assert "Recall@20" in tables and "HR@" not in tables and "MRR@" not in tables


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("metrics", "Slices are of held-out items: a user counts in each that has some of theirs."),
        ("users", "Of several held-out items, it is the one that the model ranks best."),
    ],
)
def test_pages_say_which_of_several_held_out_items_they_speak_of(
    open_app: Open, folder: Path, page: str, words: str
) -> None:
    test = open_app(folder, page=page, ds="sets", **({"section": "slices"} if page == "metrics" else {}))
    shown = " ".join(element.value for kind in ("markdown", "caption") for element in test.get(kind))
    assert words in shown and "about equal size" not in shown


def test_histories_without_an_order_have_no_latest_items(open_app: Open, folder: Path) -> None:
    assert [example.title for example in examples.of(Zoo.open(folder / "sets"))] == ["Some items of a user"]
    shown = " ".join(element.value for element in open_app(folder, page="users", ds="sets").get("caption"))
    assert ", in no order" in shown and "latest" not in shown


@pytest.mark.parametrize("page", ["compare", "attention", "report"])
def test_every_page_opens(open_app: Open, folder: Path, page: str) -> None:
    person = Zoo.open(folder / "sets").users["user_id"][3].as_py()
    test = open_app(folder, page="" if page == "compare" else page, ds="sets", u=person)
    assert not test.error
    shown = " ".join(element.value for kind in ("markdown", "caption", "title") for element in test.get(kind))
    assert "came next" not in shown or page == "report"


def test_a_study_of_sets_is_shown_with_the_floor(open_app: Open, folder: Path) -> None:
    zoo = Zoo.open(folder / "sets")
    sizes = np.bincount(zoo.bundles["popularity"].ranks_table()["user"].to_numpy())
    runs = [outcome([[rank] * size for size in sizes[sizes > 0]], protocol="held-out users") for rank in (1, 9)]
    raw = study("depth", {"1": runs[:1], "2": runs[1:]}, axis="layers", schema_version=3)
    write(folder / "sets", raw | {"dataset": "sets", "fingerprint": zoo.info.fingerprint})
    test = open_app(folder, page="metrics", ds="sets", section="sweeps", metric="Recall")
    shown = " ".join(element.value for kind in ("markdown", "caption") for element in test.get(kind))
    assert "Judged by full ranking for 30 users" in shown and "in Recall@20" in shown and "Popularity" in shown
