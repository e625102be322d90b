"""The page Metrics."""

from __future__ import annotations

from app.screens.metrics.parameters import PARAMETERS
from app.session.pages import Page, script

PAGE = Page(
    name="metrics",
    title="Metrics",
    icon=":material/leaderboard:",
    section="Judge",
    order=1,
    help="How good the models are, with intervals and tests.",
    script=script(__file__),
    parameters=PARAMETERS,
)
