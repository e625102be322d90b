"""The page Report."""

from app.reports.address import PARAMETERS
from app.session.pages import Page, script

PAGE = Page(
    name="report",
    title="Report",
    icon=":material/description:",
    section="Data & reports",
    order=2,
    help="What you see as a file: HTML, PDF, JSON, CSV; lists for many histories.",
    script=script(__file__),
    parameters=PARAMETERS,
)
