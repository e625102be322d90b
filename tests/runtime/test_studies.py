"""Studies beside the bundles: what they say, and what is refused by name while the rest goes on."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.bundle.files import Catalogue
from engine.runtime import Zoo
from engine.runtime.studies import LIMIT, Studies
from tests.runtime.bundles import FINGERPRINT, TOYS, linked, make_zoo
from tests.runtime.studies import outcome, published, study, toy_studies, write


def opened(path: Path) -> Studies:
    return Studies.open(path, Catalogue("toys", FINGERPRINT, 40))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make_zoo(tmp_path_factory.mktemp("pristine"), TOYS[:1])
    toy_studies(path)
    return path


@pytest.fixture
def path(pristine: Path, tmp_path: Path) -> Path:
    """A folder with the studies alone, to be changed."""
    shutil.copytree(pristine / "studies", tmp_path / "toys" / "studies")
    return tmp_path / "toys"


def test_what_they_hold(pristine: Path) -> None:
    zoo = Zoo.open(pristine, warm=True)
    assert zoo.refused == [] and list(zoo.bundles) == ["alpha"]  # the folder is no bundle
    assert list(zoo.studies.found) == ["pieces", "width", "alpha"] and zoo.studies.refused == []
    pieces, width, alpha = zoo.studies.found.values()
    assert pieces.figures == ["NDCG@10", "HR@10"] and pieces.people == 400 and pieces.axis is None
    assert alpha.figures == ["perplexity", "excess", "lost", "similarity"] and alpha.people is None
    assert [variant.value for variant in width.variants] == [2, 1, 4] and width.axis is not None
    assert alpha.variant("0_1").figure("perplexity") == pytest.approx(0.5 + 1.5)
    assert len({one.digest for one in zoo.studies.found.values()}) == 3


def test_metrics_of_ranks_by_hand(tmp_path: Path) -> None:
    write(tmp_path, study("small", {"a": [outcome([1, 3, 10, 11, 0])], "b": [outcome([1, 1.5, 10, 2, 0])]}))
    found = opened(tmp_path).found["small"]
    gains = [1, 1 / 2, 1 / math.log2(11), 0, 0]
    assert found.variant("a").outcomes[0].per_person("NDCG@10").tolist() == pytest.approx(gains)
    assert found.variant("a").outcomes[0].per_person("MRR@50").tolist() == pytest.approx([1, 1 / 3, 1 / 10, 1 / 11, 0])
    assert found.variant("b").figure("HR@10") == pytest.approx(4 / 5)
    assert found.variant("a").figure("HR@10") == pytest.approx(3 / 5)


def test_metrics_of_several_held_out_items_by_hand(tmp_path: Path) -> None:
    runs = [outcome([[1, 2, 0], [1.25], [0, 0]], protocol="given split") for _ in range(2)]
    write(tmp_path, study("small", {"a": runs[:1], "b": runs[1:]}, schema_version=3))
    small = opened(tmp_path).found["small"]
    assert (small.people, small.protocol, small.figures) == (3, "given split", ["NDCG@20", "Recall@20"])
    assert small.variant("a").outcomes[0].per_person("Recall@20").tolist() == pytest.approx([2 / 3, 1, 0])
    assert small.variant("b").outcomes[0].per_person("Recall@1").tolist() == pytest.approx([1 / 3, 0, 0])
    write(tmp_path, study("small", {"a": runs[:1], "b": runs[1:]}, schema_version=2))
    assert "schema_version 3" in opened(tmp_path).refused[0].reason


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def spoil(file: Path) -> None:
        raw = json.loads(file.read_text("utf-8"))
        change(raw)
        file.write_text(json.dumps(raw), "utf-8")

    return spoil


def first(raw: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = raw["variants"][0]["outcomes"][0]
    return found


# what is spoiled → a part of the reason, how
SPOILED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "no json": ("not valid JSON", lambda f: f.write_text("{")),
    "a link": ("is a link", linked),
    "too long": ("more than the", lambda f: f.write_text(" " * (LIMIT + 1))),
    "unknown entry": ("hacked", edit(lambda raw: raw.update(hacked=1))),
    "newer": ("newer Seqscope", edit(lambda raw: raw.update(schema_version=4))),
    "another name": ("calls itself other", edit(lambda raw: raw.update(name="other"))),
    "other data": ("run `seqscope study pieces` again", edit(lambda raw: raw.update(fingerprint="cd" * 32))),
    "no baseline": ("none of the variants", edit(lambda raw: raw.update(baseline="nobody"))),
    "a name twice": ("one name", edit(lambda raw: raw["variants"][1].update(name="plain"))),
    "a seed twice": ("a seed twice", edit(lambda raw: first(raw).update(seed=2))),
    "a seed of one variant alone": ("the same seeds", edit(lambda raw: first(raw).update(seed=3))),
    "a run less of one variant": ("the same seeds", edit(lambda raw: raw["variants"][0]["outcomes"].pop())),
    "a rank of 51": ("from 1 to 50", edit(lambda raw: first(raw)["ranks"].__setitem__(0, 51))),
    "no rank of somebody": (
        "everybody has a list", edit(lambda raw: first(raw).update(protocol="given split", ranks=[[]] * 400)),
    ),
    "a protocol nobody knows": ("no protocol 'u100'", edit(lambda raw: first(raw).update(protocol="u100"))),
    "one rank where several are held out": (
        "everybody has a list of ranks", edit(lambda raw: first(raw).update(protocol="given split")),
    ),
    "somebody missing": ("as many ranks as", edit(lambda raw: raw.update(people=399))),
    "figures of other ranks": ("not by the ranks", edit(lambda raw: first(raw)["figures"]["HR@10"].update(mean=0.99))),
    "a figure nobody knows": ("no figure 'speed'", edit(lambda raw: first(raw)["figures"].update(speed={"mean": 1.0}))),
    "a figure missing": ("belong together", edit(lambda raw: first(raw)["figures"].pop("HR@10"))),
    "a figure of one run alone": ("same figures", edit(lambda raw: first(raw)["figures"].update(lost={"mean": 1.0}))),
    "a paper's figure of no variant": (
        "no variant 'nobody'", edit(lambda raw: raw["published"][0]["figures"].update(nobody=1.0)),
    ),
    "a paper's baseline of nothing": (
        "no figure of the baseline", edit(lambda raw: raw["published"][0]["figures"].update(plain=0.0)),
    ),
    "a paper's metric that is none here": (
        "nothing here is called 'Recall@20'", edit(lambda raw: raw["published"][0].update(metric="Recall@20")),
    ),
    "a paper's table twice": ("twice", edit(lambda raw: raw.update(published=2 * raw["published"]))),
    "a paper in a file of before": ("schema_version 2", edit(lambda raw: raw.update(schema_version=1))),
    "a value without an axis": ("has no values", edit(lambda raw: raw["variants"][0].update(value=1.0))),
    "an axis without values": (
        "value of its own",
        edit(lambda raw: raw.update(axis={"title": "x", "run": "toy", "setting": "a.b"})),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_a_damaged_one_is_refused_by_name(path: Path, name: str) -> None:
    says, spoil = SPOILED[name]
    spoil(path / "studies" / "pieces.json")
    studies = opened(path)
    assert list(studies.found) == ["width", "alpha"]
    (refusal,) = studies.refused
    assert str(refusal).startswith("studies/pieces.json: ") and says in refusal.reason and "\n" not in refusal.reason


def test_figures_of_papers_and_what_they_stand_beside(pristine: Path, tmp_path: Path) -> None:
    pieces, width, alpha = opened(pristine).found.values()
    (entry,) = pieces.published
    assert (entry.measure, entry.figures["better"], pieces.trained_users) == ("NDCG@10", 0.6, False)
    assert "published" not in width.model_dump() and "trained_users" not in alpha.model_dump()  # as it was written
    assert pieces.variant("plain").figure("seconds") == 12.0
    share = np.mean([outcome.per_person("HR@20") for outcome in pieces.variant("plain").outcomes])
    assert pieces.variant("plain").figure("HR@20") == pytest.approx(share)
    tables = [
        published("Recall@20", beside="HR@20", a=0.1, b=0.2),
        published("training time", beside="seconds", a=60, b=90),
        published("code similarity", beside="similarity", a=0.1, b=0.2),
    ]
    variants = {key: [outcome([1, 2], similarity=0.5)] for key in ("a", "b")}
    variants["b"][0]["steps"] *= 2
    write(tmp_path, study("small", variants, schema_version=2, published=tables, trained_users=True))
    found = opened(tmp_path).found["small"]
    assert [entry.measure for entry in found.published] == ["HR@20", "seconds", "similarity"] and found.trained_users
    assert [variant.figure("seconds") for variant in found.variants] == [12, 24]


def test_a_link_out_of_the_folder_is_refused(path: Path, tmp_path: Path) -> None:
    outside = shutil.move(path / "studies", tmp_path / "elsewhere")
    (path / "studies").symlink_to(outside)
    found = opened(path)
    assert found.found == {} and "leads out" in found.refused[0].reason
