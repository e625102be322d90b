"""The page Your data."""

from app.session.pages import Page, script

PAGE = Page(
    name="your_data",
    title="Your data",
    icon=":material/database_upload:",
    section="Data & reports",
    order=1,
    help="Your own catalogue and log: models for them, trained here.",
    script=script(__file__),
    without_datasets=True,
)
