"""The page About."""

from __future__ import annotations

from app.session.pages import Page, script

PAGE = Page(
    name="about",
    title="About",
    icon=":material/info:",
    section="Judge",
    order=3,
    help="The models, the data, and how everything is measured.",
    script=script(__file__),
)
