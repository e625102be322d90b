"""The settings of the simulation: what is planted into the log, and how strongly."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from engine.errors import UsageError


@dataclass(frozen=True)
class Story:
    """How simulated viewers choose films. docs/sample.md tells the story in words."""

    viewers: int = 4_500
    """Number of simulated viewers."""
    first_day: str = "2023-07-01"
    """ISO date on which the log begins."""
    days: int = 1_096
    """Length of the log: three years."""

    mean_events: float = 32.0
    """Films per viewer on average; lengths are skewed, as in real logs."""
    min_events: int = 5
    """No viewer watches fewer films."""
    max_events: int = 150
    """No viewer watches more films."""
    session_films: float = 3.0
    """Films per session (one evening or weekend) on average."""

    sequel: float = 0.45
    """Probability that one followed series, whose next part is out, makes the viewer go on with a series next; two call more."""
    like: float = 0.92
    """Probability that a viewer wants to go on with a series after seeing a part of it."""
    follows: int = 2
    """Series that a viewer follows at a time; more than one means that they alternate."""
    alternate: float = 0.92
    """Probability that the series not watched for longest has its turn (otherwise any followed one)."""

    mood: float = 0.66
    """Probability that a film which continues no series comes from the mood of the session."""
    taste: float = 0.20
    """The same for a film from the viewer's lasting taste, over the whole catalogue."""
    popular: float = 0.09
    """The same for what is popular at the time, whatever the viewer likes."""
    noise: float = 0.05
    """The same for any film at all, with equal chances. These four sum to 1."""

    genre_weight: float = 1.6
    """Log-odds of a film all of whose genres a viewer loves, against a film with none of them."""
    era_weight: float = 0.8
    """Log-odds of a film from the middle of the viewer's favourite era, against one from far away."""
    director_weight: float = 1.0
    """Log-odds of a film by a director whom the viewer loves."""
    start_weight: float = 2.0
    """Added log-odds of a series' first part for a viewer who follows fewer than `follows` series."""
    mood_taste: float = 1.5
    """How much a viewer's taste decides which moods they get into."""

    fame_weight: float = 0.7
    """Log-odds per step of a film's fame (1 to 5)."""
    tail: float = 0.9
    """Standard deviation of a film's lasting log-popularity beyond its fame: the heavy tail."""
    trend: float = 0.15
    """Standard deviation of the change of a film's log-popularity from one quarter to the next."""

    def __post_init__(self) -> None:
        shares = self.mood + self.taste + self.popular + self.noise
        if abs(shares - 1) > 1e-9:
            raise UsageError(f"mood, taste, popular and noise must sum to 1, not {shares:g}")
        if not 1 <= self.min_events <= self.mean_events <= self.max_events or self.viewers < 1:
            raise UsageError("a story needs viewers, and min_events <= mean_events <= max_events")

    @property
    def start(self) -> int:
        """Unix seconds at which the log begins (midnight, UTC)."""
        return int(datetime.datetime.fromisoformat(self.first_day).replace(tzinfo=datetime.UTC).timestamp())
