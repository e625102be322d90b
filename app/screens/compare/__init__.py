"""The page Compare."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.session.pages import Own, Page, Parameter, one_of, script, section, up_to
from app.text import short

if TYPE_CHECKING:
    from engine.runtime import Zoo

VIEWS = {"lists": "Lists", "ranks": "Rank table"}
SECTIONS = {
    "overview": "Overview",
    "flow": "How it works",
    "agreement": "Agreement",
    "beam": "Beam search",
}
"""Below the lists; what is not open is not computed."""
WRITE = {"items": "Constrained to items", "anything": "Unconstrained"}
MAX_WIDTH = 100
TEMPERATURES = tuple(f"{tenths / 10:g}" for tenths in range(1, 31))


def beam_width(models: Zoo, model: str) -> int:
    """How wide a beam is drawn unless another width is chosen: the model's own, within what can be drawn."""
    writes = models.bundles[model].manifest.generator
    return min(writes.beam, MAX_WIDTH) if writes is not None else 1


def _is_generator(text: str, models: Zoo, parameters: Own) -> str:
    if text in models.bundles and models.bundles[text].cannot("identifiers") is None:
        return ""
    return (
        f"The link names a model that generates no semantic IDs, or that this dataset does not have: “{short(text)}”."
    )


PAGE = Page(
    name="compare",
    title="Compare",
    icon=":material/compare_arrows:",
    section="Try",
    order=1,
    help="What each model recommends next, side by side.",
    script=script(__file__),
    parameters=(
        Parameter("view", "whether lists stand side by side or ranks in a table", one_of("view", VIEWS)),
        replace(
            section(SECTIONS), renewed=lambda text: "overview" if text == "effects" else text
        ),  # the details show them
        Parameter("beam", "the model whose beam is drawn, by its name", _is_generator),
        Parameter("width", "of that beam", up_to("beam width", 1, lambda models, parameters: MAX_WIDTH)),
        Parameter(
            "temperature",
            "of that beam: what logits are divided by",
            one_of("temperature", TEMPERATURES),
        ),
        Parameter("write", "whether the beam is held to identifiers that exist", one_of("codes to write", WRITE)),
    ),
)
