"""The page Graph."""

from app.analysis.graph_paths import carriers
from app.session.pages import Page, Parameter, is_model, one_of, script

PAGE = Page(
    name="graph",
    title="Graph",
    icon=":material/hub:",
    section="Look inside",
    order=3,
    help="The paths through users and items that carry a recommendation.",
    script=script(__file__),
    hidden=lambda models: models is None or not carriers(models),
    parameters=(
        Parameter("model", "whose paths are shown, by its name", is_model),
        Parameter("layers", "of the tree", one_of("layers", ("1", "2", "3"))),
    ),
)
