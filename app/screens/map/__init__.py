"""The page Map."""

from __future__ import annotations

from app.screens.map.parameters import PARAMETERS
from app.session.pages import Page, script

PAGE = Page(
    name="map",
    title="Map",
    icon=":material/scatter_plot:",
    section="Look inside",
    order=4,
    help="Items as a model arranges them, with the history on top.",
    script=script(__file__),
    parameters=PARAMETERS,
)
