"""What Recformer learns: items of one family share a word, and an item that nobody has taken yet is found by it."""

from pathlib import Path

import numpy as np
import pytest

from engine.data.dataset import Dataset
from engine.evaluation.evaluate import evaluate
from engine.training.run import open_run, train
from tests.training.tiny import recipe, write_log

FAMILIES, SIZE = 20, 6
ITEMS = FAMILIES * SIZE
SETTINGS = {
    "model": {"attention": "full", "max_tokens": 24, "max_length": 5},
    "objective": {"stage": "pre-train", "per_user": 0, "masked_weight": 0.0},
    "training": {"epochs": 6, "validate_every": 6},
}


def titles(rng: np.random.Generator) -> list[str]:
    """A word of the family and one of the item's own."""
    letters = np.array(list("abdegiklmnoprstuvz"))
    words = ["".join(rng.choice(letters, 6)) for _ in range(FAMILIES + ITEMS)]
    return [f"{words[item // SIZE]} {words[FAMILIES + item]}" for item in range(ITEMS)]


def families(folder: Path, name: str, *, mixed: bool = False) -> Dataset:
    """Everybody takes items of one family; its last item is nobody's but as the last of all. mixed: titles are of other items."""
    rng = np.random.default_rng(0)
    said = titles(rng)
    if mixed:
        said = [said[item] for item in np.random.default_rng(1).permutation(ITEMS)]
    sequences = []
    for family in rng.integers(0, FAMILIES, 300):
        own = rng.permutation(SIZE - 1)
        last = SIZE - 1 if rng.random() < 0.5 else own[-1]
        sequences.append((family * SIZE + np.append(own[:-1], last)).tolist())
    return write_log(folder / name, sequences, ITEMS, name, said)


def parts(name: str, dataset: Dataset, folder: Path) -> tuple[float, float]:
    """NDCG@10 on items that were in training, and on those that were not."""
    settings = SETTINGS if name == "recformer" else {"training": {"epochs": 12, "validate_every": 6}}
    train(recipe(name, **settings), dataset, folder, device="cpu")
    model, *_ = open_run(folder)
    found = evaluate(model, dataset, folder)
    return found["full, warm"]["NDCG@10"], found["full, cold"]["NDCG@10"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the dataset families."""
    folder = tmp_path_factory.mktemp("families")
    families(folder, "families")
    return folder


@pytest.fixture(scope="module")
def learnt(place: Path) -> tuple[float, float]:
    """`parts` of Recformer over it, in the folder's run recformer."""
    return parts("recformer", Dataset(place / "families"), place / "recformer")


def test_new_items_are_found_by_their_words(place: Path, learnt: tuple[float, float]) -> None:
    assert min(learnt) > 0.4
    warm, cold = parts("sasrec", Dataset(place / "families"), place / "sasrec")
    assert warm > 0.4  # the log can be learnt without words
    assert cold < 0.1


def test_words_of_other_items_lead_astray(place: Path) -> None:
    assert parts("recformer", families(place, "mixed", mixed=True), place / "recformer-mixed")[1] < 0.1
