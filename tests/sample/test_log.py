"""The simulated log tells the story that docs/sample.md promises."""

import datetime

import numpy as np
import pytest

from benchmarks.probes import Held, companions, markov, popularity, ranks, storyteller
from benchmarks.sample_story import scattered, shuffled
from engine.errors import UsageError
from engine.evaluation.metrics import hit, ndcg
from engine.sample.build import Log
from engine.sample.films import Film
from engine.sample.story import Story
from engine.sample.viewers import SIZES, Reason, World


def sessions(log: Log) -> np.ndarray:
    """int64 [events]: a number for each session; a pause of more than two days separates them."""
    same = np.diff(log.viewers) == 0
    close = np.diff(log.timestamps) < 2 * 86_400
    return np.concatenate([[0], np.cumsum(~(same & close))])


def places(log: Log) -> dict[tuple[int, int], int]:
    """(viewer, item) -> place of the event in the viewer's history."""
    place = np.arange(len(log.timestamps)) - log.events.offsets[:-1][log.viewers]
    return dict(zip(zip(log.viewers.tolist(), log.events.values.tolist(), strict=True), place.tolist(), strict=True))


@pytest.mark.long
def test_no_viewer_sees_a_film_twice(log: Log, world: World) -> None:
    pairs = log.viewers.astype(np.int64) * world.num_films + log.events.values
    assert len(np.unique(pairs)) == len(pairs)


def test_times(log: Log, story: Story) -> None:
    later = np.diff(log.timestamps)[np.diff(log.viewers) == 0]
    assert later.min() >= 100 * 60
    assert log.timestamps.min() >= story.start
    assert log.timestamps.max() < story.start + story.days * 86_400
    assert log.timestamps.max() - log.timestamps.min() > 0.95 * story.days * 86_400


def test_no_film_is_seen_before_it_is_out(log: Log, films: list[Film]) -> None:
    years = np.array([film.year for film in films])[log.events.values]
    seen = (log.timestamps // 86_400).astype("datetime64[D]").astype("datetime64[Y]").astype(int) + 1970
    assert np.all(seen > years)


def test_series_are_seen_in_order(log: Log, world: World) -> None:
    place = places(log)
    earlier = np.full(world.num_films, -1)
    parts = np.flatnonzero(world.following >= 0)
    earlier[world.following[parts]] = parts
    for (viewer, item), at in place.items():
        if earlier[item] >= 0:
            assert place.get((viewer, int(earlier[item])), 1_000) < at


def test_sessions_keep_one_mood(log: Log, world: World) -> None:
    session = sessions(log)
    same = session[1:] == session[:-1]
    assert 0.4 < same.mean() < 0.7
    assert np.mean((log.moods[1:] == log.moods[:-1])[same]) > 0.999  # now and then two sessions lie close
    assert np.mean((log.moods[1:] == log.moods[:-1])[~same & (np.diff(log.viewers) == 0)]) < 0.2
    mood = log.reasons == Reason.MOOD
    assert np.all(world.in_mood[log.events.values[mood], log.moods[mood]] == 1)
    assert np.all((world.in_mood.sum(axis=0) >= SIZES[0]) & (world.in_mood.sum(axis=0) <= SIZES[1]))


def test_every_reason_has_its_share(log: Log, story: Story) -> None:
    shares = np.bincount(log.reasons, minlength=len(Reason)) / len(log.reasons)
    assert 0.25 < shares[Reason.SEQUEL] < 0.4
    rest = shares[1:] / shares[1:].sum()
    np.testing.assert_allclose(rest, [story.mood, story.taste, story.popular, story.noise], atol=0.01)


def test_shuffled_keeps_each_viewers_films_and_moments(log: Log) -> None:
    control = shuffled(log, np.random.default_rng(1))
    for viewer in (0, 17, len(log.events) - 1):
        assert sorted(control.events[viewer]) == sorted(log.events[viewer])
    np.testing.assert_array_equal(control.timestamps, log.timestamps)
    assert np.mean(control.events.values == log.events.values) < 0.1


def test_scattered_keeps_popularity_and_lengths_alone(log: Log, world: World) -> None:
    control = scattered(log, np.random.default_rng(1))
    n = world.num_films
    np.testing.assert_array_equal(
        np.bincount(control.events.values, minlength=n), np.bincount(log.events.values, minlength=n)
    )
    np.testing.assert_array_equal(control.events.offsets, log.events.offsets)
    pairs = control.viewers.astype(np.int64) * n + control.events.values
    assert len(np.unique(pairs)) == len(pairs)


def test_a_story_must_make_sense() -> None:
    with pytest.raises(UsageError, match="sum to 1"):
        Story(mood=0.9)
    with pytest.raises(UsageError, match="min_events"):
        Story(mean_events=3)
    assert Story().start == int(datetime.datetime(2023, 7, 1, tzinfo=datetime.UTC).timestamp())


# --- what can be known from it, asked with quick recommenders; of the two controls, that order and taste answer


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
    assert 0.05 < hit(answers["popularity"], 10).mean() < 0.1
    assert 0.15 < hit(answers["markov"], 10).mean() < 0.25
    assert hit(answers["storyteller"], 10).mean() > 0.38
    assert ndcg(answers["markov"], 10).mean() > 3 * ndcg(answers["popularity"], 10).mean()
    assert ndcg(answers["storyteller"], 10).mean() > 1.7 * ndcg(answers["markov"], 10).mean()
    assert ndcg(answers["storyteller"], 10).mean() > 1.4 * ndcg(answers["companions"], 10).mean()


def test_sequels_are_the_plainest_part_of_the_story(answers: dict[str, np.ndarray], log: Log) -> None:
    sequel = last_was(log, Reason.SEQUEL)
    assert hit(answers["storyteller"][sequel], 10).mean() > 0.9
    assert hit(answers["markov"][sequel], 10).mean() < 0.6
    assert hit(answers["storyteller"][last_was(log, Reason.NOISE)], 10).mean() < 0.1


def test_without_order_the_last_film_says_little(answers: dict[str, np.ndarray], log: Log, world: World) -> None:
    control = ask(shuffled(log, np.random.default_rng(1)), world)
    assert ndcg(control["markov"], 10).mean() < 0.5 * ndcg(answers["markov"], 10).mean()
    # What viewers saw, in any order, still tells what else they saw: series are watched whole. docs/sample.md says so.
    assert ndcg(control["companions"], 10).mean() > ndcg(answers["companions"], 10).mean()


def test_without_taste_and_order_nothing_beats_popularity(log: Log, world: World) -> None:
    control = ask(scattered(log, np.random.default_rng(1)), world)
    gains = ndcg(control["companions"], 10) - ndcg(control["popularity"], 10)
    assert gains.mean() < 2 * gains.std() / np.sqrt(len(gains))
    assert ndcg(control["markov"], 10).mean() < ndcg(control["popularity"], 10).mean()
