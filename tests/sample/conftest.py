"""One simulated log for all tests of the sample."""

from pathlib import Path

import numpy as np
import pytest

from engine.sample.build import Log, simulate
from engine.sample.films import Film, read_films
from engine.sample.story import Story
from engine.sample.viewers import World

SAMPLE = Path(__file__).parents[2] / "data" / "sample"


@pytest.fixture(scope="session")
def films() -> list[Film]:
    return read_films(SAMPLE / "films.jsonl")


@pytest.fixture(scope="session")
def story() -> Story:
    return Story()


@pytest.fixture(scope="session")
def simulated(films: list[Film], story: Story) -> tuple[Log, World]:
    """The committed sample's log and world, with the planted truth."""
    return simulate(films, story, np.random.default_rng(0))


@pytest.fixture(scope="session")
def log(simulated: tuple[Log, World]) -> Log:
    return simulated[0]


@pytest.fixture(scope="session")
def world(simulated: tuple[Log, World]) -> World:
    return simulated[1]
