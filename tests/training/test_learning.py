"""Models learn what is there to learn, and nothing where there is nothing."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from engine.data.dataset import Dataset
from engine.evaluation import metrics
from engine.evaluation.ranks import full_ranks
from engine.evaluation.significance import paired
from engine.models import Recommender
from engine.training.run import open_run, train
from tests.models.contract import MATCHING
from tests.training.tiny import clusters, cycles, noise, once, recipe, write_log

EPOCHS = {
    "sasrec": 20, "gru4rec": 15, "bert4rec": 60, "attrec": 20, "mult-vae": 60, "lightgcn": 60, "ngcf": 60, "bpr-mf": 60,
    "narm": 15, "esasrec": 15, "hstu": 15, "caser": 12, "hgn": 12, "unisrec": 30, "fdsa": 15, "s3rec": 12, "zesrec": 15,
    "cml": 30, "mult-dae": 40, "neumf": 40, "fmc": 20, "fpmc": 20, "prme": 20, "transrec": 20,
}  # fmt: skip
Clustered = Callable[[str], tuple[Recommender, Dataset]]
BATCH = {"window": 256, "transitions": 256, "pairs": 512, "warp": 512}  # of their objectives; sequences elsewhere
ALWAYS = {
    "markov": 0.99, "gru4rec": 0.97, "bert4rec": 0.85, "attrec": 0.95, "fmc": 0.9, "fpmc": 0.9, "prme": 0.9,
    "transrec": 0.9, "caser": 0.97, "hgn": 0.97, "narm": 0.97, "esasrec": 0.97, "hstu": 0.97, "fdsa": 0.97, "s3rec": 0.97,
}  # fmt: skip
"""NDCG@10 at least, where it is certain what comes next; of others: test_more_than_the_last_item_is_read (sasrec),
test_what_words_tell_is_known_of_another_catalogue (unisrec, zesrec)."""
SAME = (
    "caser", "hgn", "narm", "esasrec", "hstu", "fdsa", "s3rec", "fpmc", "prme", "transrec", "ngcf", "bpr-mf", "mult-dae",
)  # fmt: skip
"""Models whose objective is another's, too: how they learn differs in nothing but their networks, which tests/models hold."""


def long(name: str) -> Sequence[pytest.MarkDecorator]:
    return [pytest.mark.long] if name in SAME else []


def learn(name: str, dataset: Dataset, folder: Path) -> None:
    """Trains with the recipe of `name` into `folder`."""
    training = {"batch_size": BATCH.get(MATCHING[name].objective, 64)}
    if name in EPOCHS:
        training |= {"epochs": EPOCHS[name], "validate_every": EPOCHS[name]}
    train(recipe(name, training=training), dataset, folder, device="cpu")


def ranks(name: str, dataset: Dataset, folder: Path) -> np.ndarray:
    """float64 [test cases], after training into `folder`."""
    learn(name, dataset, folder)
    model, *_ = open_run(folder)
    return full_ranks(model, dataset.cases("test")).ranks


@pytest.fixture(scope="session")
def clustered(shared: Path) -> Clustered:
    """clustered("lightgcn"): what it learnt where items of a group go together, made once for all tests."""
    folder = shared / "clusters"

    def learnt(name: str) -> tuple[Recommender, Dataset]:
        with once(folder / "data") as first:
            dataset = write_log(folder / "data", clusters(), 60) if first else Dataset(folder / "data")
        with once(folder / name) as first:
            if first:
                learn(name, dataset, folder / name)
        return open_run(folder / name)[0], dataset

    return learnt


@pytest.mark.parametrize(("name", "least"), [pytest.param(*of, marks=long(of[0])) for of in ALWAYS.items()])
def test_what_always_comes_next_is_learned(tmp_path: Path, name: str, least: float) -> None:
    dataset = write_log(tmp_path / "cycles", cycles(), 60)
    assert metrics.accuracy(ranks(name, dataset, tmp_path / "run"))["NDCG@10"] > least


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=long(name))
        for name in ("markov", "lightgcn", "ngcf", "mult-vae", "bpr-mf", "cml", "mult-dae", "neumf")
    ]
    + [pytest.param(name, marks=pytest.mark.long) for name in ("sasrec", "bert4rec", "attrec")],
)
def test_what_goes_together_is_learned(clustered: Clustered, name: str) -> None:
    """Two to four items of the group are left: the best that can be is about 0.7; chance is about 0.12."""
    model, dataset = clustered(name)
    assert metrics.accuracy(full_ranks(model, dataset.cases("test")).ranks)["NDCG@10"] > 0.6


@pytest.mark.parametrize("name", ["lightgcn", "cml", "neumf"])
def test_a_new_user_gets_what_a_training_user_with_that_history_gets(clustered: Clustered, name: str) -> None:
    """The fold-in of training users' own histories, beside their stored vectors."""
    model, dataset = clustered(name)
    folded, stored = (full_ranks(model, dataset.cases("valid"), trained_users=stored).ranks for stored in (False, True))
    assert not np.array_equal(folded, stored)
    assert metrics.ndcg(folded, 10).mean() == pytest.approx(metrics.ndcg(stored, 10).mean(), abs=0.05)


def test_more_than_the_last_item_is_read(tmp_path: Path) -> None:
    """One half walks round the circle one way, the other half the other way: the last item alone leaves two answers."""
    sequences = [list(reversed(s)) if number % 2 else s for number, s in enumerate(cycles())]
    dataset = write_log(tmp_path / "both", sequences, 60)
    first = {}
    for name in ("markov", "sasrec"):
        learn(name, dataset, tmp_path / name)
        model, *_ = open_run(tmp_path / name)
        # with the history among the candidates, where one came from is as good a guess as where one goes
        kept = full_ranks(model, dataset.cases("test"), exclude_history=False).ranks
        first[name] = metrics.accuracy(kept)["HR@1"]
    assert first["markov"] < 0.65
    assert first["sasrec"] > 0.75


@pytest.mark.parametrize(
    "names", [("popularity", "sasrec"), pytest.param(tuple(MATCHING), marks=pytest.mark.long)], ids=["two", "all"]
)
def test_nothing_is_learned_from_noise(tmp_path: Path, names: tuple[str, ...]) -> None:
    # items are the more popular the smaller their number, which their words are not to tell
    titles = [f"Item {number}" for number in np.random.default_rng(1).permutation(60)]
    dataset = write_log(tmp_path / "noise", noise(), 60, titles=titles, time_unit="second")
    gains = {name: metrics.ndcg(ranks(name, dataset, tmp_path / name), 10) for name in names}
    for name, gain in gains.items():
        found = paired(gain, gains["popularity"])
        assert found.low <= 0, (name, found)
        assert gain.mean() < 0.25, name


@pytest.mark.parametrize("name", ["zesrec", "unisrec"])
def test_what_words_tell_is_known_of_another_catalogue(tmp_path: Path, name: str) -> None:
    """Who comes next follows from the words, and the other catalogue has the same words on other items."""
    titles = [
        f"{first} {second}" for first in ("amber", "basalt", "cedar") for second in ("door", "lamp", "rope", "sail")
    ]
    other = np.random.default_rng(2).permutation(12)
    known = write_log(tmp_path / "known", cycles(items=12), 12, titles=titles)
    moved = [other[sequence].tolist() for sequence in cycles(items=12, seed=1)]
    fresh = write_log(tmp_path / "fresh", moved, 12, titles=[titles[old] for old in np.argsort(other)], name="fresh")
    gains = {}
    learn(name, known, tmp_path / "run")
    for dataset in (known, fresh):
        model, *_ = open_run(tmp_path / "run", dataset.path, elsewhere=True)
        found = full_ranks(model, dataset.cases("test"), exclude_history=False).ranks
        gains[dataset.info.name] = metrics.accuracy(found)["NDCG@10"]
    assert gains["tiny"] > 0.9
    assert gains["fresh"] > 0.7  # chance is .45
