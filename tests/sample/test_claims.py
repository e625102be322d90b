"""What can be known from the sample, asked with quick recommenders: the whole story beats the last film beats popularity.

The same questions to the two controls show that it is order and taste that answer them.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.probes import Held, companions, hit_rate, markov, ndcg, popularity, ranks, storyteller
from benchmarks.sample_story import scattered, shuffled
from engine.sample.build import Log
from engine.sample.viewers import Reason, World

ASKED = np.arange(0, 4_500, 3)
"""Viewers who are asked for their last film; all others still train."""


@pytest.fixture(scope="module")
def answers(log: Log, world: World) -> dict[str, np.ndarray]:
    """Rank of the last film for each viewer in `ASKED`, by recommender."""
    return ask(log, world) | {"storyteller": ranks(held(log), storyteller(held(log).training, world))}


def held(log: Log) -> Held:
    return Held.of(log.events).take(ASKED)


def ask(log: Log, world: World) -> dict[str, np.ndarray]:
    probes = {"popularity": popularity, "markov": markov, "companions": companions}
    questions = held(log)
    return {name: ranks(questions, probe(questions.training, world.num_films)) for name, probe in probes.items()}


def last_was(log: Log, reason: Reason) -> np.ndarray:
    """bool [asked]: whether the asked film was watched for this reason."""
    return (log.reasons[log.events.offsets[1:] - 1] == reason)[ASKED]


def test_the_last_film_says_more_than_popularity_and_the_whole_story_far_more(answers: dict[str, np.ndarray]) -> None:
    assert 0.05 < hit_rate(answers["popularity"]) < 0.1
    assert 0.15 < hit_rate(answers["markov"]) < 0.25
    assert hit_rate(answers["storyteller"]) > 0.38
    assert ndcg(answers["markov"]) > 3 * ndcg(answers["popularity"])
    assert ndcg(answers["storyteller"]) > 1.7 * ndcg(answers["markov"])
    assert ndcg(answers["storyteller"]) > 1.4 * ndcg(answers["companions"])


def test_sequels_are_the_plainest_part_of_the_story(answers: dict[str, np.ndarray], log: Log) -> None:
    sequel = last_was(log, Reason.SEQUEL)
    assert hit_rate(answers["storyteller"][sequel]) > 0.9
    assert hit_rate(answers["markov"][sequel]) < 0.6
    assert hit_rate(answers["storyteller"][last_was(log, Reason.NOISE)]) < 0.1


def test_without_order_the_last_film_says_little(answers: dict[str, np.ndarray], log: Log, world: World) -> None:
    control = ask(shuffled(log, np.random.default_rng(1)), world)
    assert ndcg(control["markov"]) < 0.5 * ndcg(answers["markov"])
    # What viewers saw, in any order, still tells what else they saw: series are watched whole. docs/sample.md says so.
    assert ndcg(control["companions"]) > ndcg(answers["companions"])


def test_without_taste_and_order_nothing_beats_popularity(log: Log, world: World) -> None:
    control = ask(scattered(log, np.random.default_rng(1)), world)
    gains = np.where(control["companions"] <= 10, 1 / np.log2(control["companions"] + 1), 0.0)
    gains -= np.where(control["popularity"] <= 10, 1 / np.log2(control["popularity"] + 1), 0.0)
    assert gains.mean() < 2 * gains.std() / np.sqrt(len(gains))
    assert ndcg(control["markov"]) < ndcg(control["popularity"])
