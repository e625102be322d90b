"""A run takes its identifiers along, and is another run with others."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest

from engine.data.dataset import Dataset
from engine.data.identifiers import Identifiers
from engine.errors import SeqscopeError
from engine.training import refit
from engine.training.materials import gather
from engine.training.run import open_run, train
from tests.generation.learn import ITEMS, circle, recipe, store
from tests.training.tiny import cycles, write_log


@pytest.fixture
def place(tmp_path: Path) -> tuple[Dataset, Path]:
    """A dataset, and the folder of runs beside the tokenizer's."""
    dataset = write_log(tmp_path / "data", cycles(40, ITEMS), ITEMS)
    store(circle(), tmp_path / "runs" / "codes")
    return dataset, tmp_path / "runs"


def trained(place: tuple[Dataset, Path]) -> Path:
    train(recipe("encoder-decoder", training={"epochs": 1}), place[0], place[1] / "tiger", device="cpu")
    return place[1] / "tiger"


def test_a_run_and_its_refit_need_the_tokenizer_no_longer(place: tuple[Dataset, Path]) -> None:
    """The codes, and the vectors behind them, come along."""
    np.save(place[1] / "codes" / "latents.npy", np.zeros((ITEMS, 3), np.float32))
    run, settings = trained(place), recipe("encoder-decoder", training={"epochs": 1})
    shutil.rmtree(place[1] / "codes")
    trained(place)  # finished, and found so
    assert np.load(run / "latents.npy").shape == (ITEMS, 3)
    selection = refit.select(settings, place[0], run)
    train(settings, place[0], refit.folder_of(run), device="cpu", selection=selection)
    for folder in (run, refit.folder_of(run)):
        assert open_run(folder)[0].identifiers.digest() == circle().digest()  # type: ignore[attr-defined]


def test_other_identifiers_are_another_training(place: tuple[Dataset, Path]) -> None:
    folder = trained(place)
    table = circle()
    store(dataclasses.replace(table, codes=table.codes[::-1].copy()), place[1] / "codes")
    with pytest.raises(SeqscopeError, match="other settings or other data"):
        trained(place)
    assert Identifiers.read(folder).digest() == table.digest()


def test_a_tokenizer_may_lie_elsewhere_and_without_it_a_run_says_how_to_get_one(
    place: tuple[Dataset, Path], tmp_path: Path
) -> None:
    (place[1] / "codes").rename(tmp_path / "elsewhere")
    elsewhere = recipe("encoder-decoder", model={"identifiers": str(tmp_path / "elsewhere")})
    assert gather(elsewhere, place[0], place[1] / "tiger")["identifiers"].source == tmp_path / "elsewhere"
    with pytest.raises(SeqscopeError, match="seqscope tokenize codes"):
        trained(place)


@pytest.mark.parametrize("wrong", ["fewer", "other data"])
def test_identifiers_of_other_items_are_refused(place: tuple[Dataset, Path], wrong: str) -> None:
    table = circle()
    if wrong == "fewer":
        table = dataclasses.replace(table, codes=table.codes[:-1])
    else:
        table = dataclasses.replace(table, about={"fingerprint": "0" * 64})
    store(table, place[1] / "codes")
    with pytest.raises(SeqscopeError, match="identifiers of other items"):
        trained(place)
