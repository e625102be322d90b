"""The page About."""

from app.session.pages import Page, script, section
from engine.cards import KINDS

SECTIONS: dict[str, str] = {
    "data": "Dataset",
    "protocol": "Protocol",
    **{str(kind): title for kind, title in KINDS.items()},
    "terms": "Terms",
    "limits": "Limits",
}
"""Name in the address → its tab: of models one per kind."""

PAGE = Page(
    name="about",
    title="About",
    icon=":material/info:",
    section="Judge",
    order=3,
    help="The models, the data, and how everything is measured.",
    script=script(__file__),
    parameters=(section(SECTIONS),),
)
