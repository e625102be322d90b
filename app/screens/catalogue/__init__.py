"""The page Catalogue."""

from __future__ import annotations

from app.screens.catalogue.parameters import PARAMETERS
from app.session.pages import Page, script

PAGE = Page(
    name="catalogue",
    title="Catalogue",
    icon=":material/search:",
    section="Try",
    order=2,
    help="Search and filter the items; build a history.",
    script=script(__file__),
    parameters=PARAMETERS,
)
