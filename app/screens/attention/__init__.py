"""The page Attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.session.pages import Check, Own, Page, Parameter, is_model, one_of, refused, script, section, up_to
from app.text import listed

if TYPE_CHECKING:
    from engine.runtime import Zoo

SECTIONS = {
    "weights": "Attention weights",
    "positions": "All positions and heads",
    "effects": "Leave-one-out effect",
    "average": "Average over users",
}
NOT_BESIDE = "none"
A_AND_B = "a-b"
UNITS = {"items": "Items", "codes": "Codes"}
VIEWS = {"mean": "Mean over heads", "head": "One head", "rollout": "Rollout"}
SCALES = {"fit": "Fit", "unit": "0 to 1", "rows": "Per row"}
PEOPLE = {"distance": "By distance", "position": "Position by position"}
"""What may be chosen, by its text in the address → what it is called."""
MAX_LATEST = 200


VIEWED = {"attention": SECTIONS["weights"], "gates": "Gates", "filters": "Filters"}
"""What a model may show of how it reads a history, by the capability: what the section is called."""


def viewed(models: Zoo, name: str) -> str | None:
    """The first of `VIEWED` that a model can show; None where it can show none."""
    return next((view for view in VIEWED if models.bundles[name].cannot(view) is None), None)


def attended(models: Zoo, parameters: Own) -> str:
    """The model to look into: the one that was chosen, else the first that attends, else the first. The zoo is not empty."""
    names = list(models.bundles)
    able = [name for name in names if models.bundles[name].cannot("attention") is None]
    return parameters["model"] if parameters.get("model") in names else (able or names)[0]


def _many(part: str, things: str) -> Callable[[Zoo, Own], int]:
    """How many layers or heads a part of the model has that is looked into; 1 where it has no such part."""

    def many(models: Zoo, parameters: Own) -> int:
        shape = getattr(models.bundles[attended(models, parameters)].manifest, part) if models.bundles else None
        return getattr(shape, things) if shape is not None else 1

    return many


_LAYERS, _HEADS = _many("attention", "layers"), _many("attention", "heads")


def compared(models: Zoo, name: str) -> list[str]:
    """The models whose weights by event can stand beside those of a model; [] where it has none of this kind itself."""
    alike = [
        other
        for other, bundle in models.bundles.items()
        if bundle.cannot("attention") is None
        and bundle.cannot("words") is not None
        and bundle.cannot("cross_attention") is not None
        and bundle.cannot("identifiers") is not None
    ]
    return [other for other in alike if other != name] if name in alike else []


def _is_beside(text: str, models: Zoo, parameters: Own) -> str:
    if text in (NOT_BESIDE, A_AND_B):
        return ""
    if text not in models.bundles:
        return is_model(text, models, parameters)
    first = attended(models, parameters)
    able = compared(models, first)  # with none, no choice is offered, and that of the model before is kept
    return "" if not able or text in (first, *able) else refused("model to compare with", text, listed(able, "or"))


def _mean_or(name: str, most: Callable[[Zoo, Own], int]) -> Check:
    """The mean, or one of so many, counted from 1."""

    def check(text: str, models: Zoo, parameters: Own) -> str:
        numbers = map(str, range(1, most(models, parameters) + 1))
        return one_of(name, ("mean", *numbers))(text, models, parameters)

    return check


PAGE = Page(
    name="attention",
    title="Attention",
    icon=":material/visibility:",
    section="Look inside",
    order=1,
    help="What a model looked at while it read the history.",
    script=script(__file__),
    parameters=(
        section(SECTIONS),
        Parameter("model", "that is looked into, by its name", is_model),
        Parameter(
            "beside",
            "what stands beside the first model: a second one, or the other history of a what-if",
            _is_beside,
        ),
        Parameter("unit", "what a position is, where an item is read as several codes", one_of("positions", UNITS)),
        Parameter(
            "decoder",
            "mean over the layers of the decoder, or one, counted from 1",
            _mean_or("decoder layer", _many("generator", "layers")),
        ),
        Parameter("view", "what the map shows", one_of("view", VIEWS)),
        Parameter("layer", "counted from 1", up_to("layer", 1, _LAYERS)),
        Parameter("head", "counted from 1", up_to("head", 1, _HEADS)),
        Parameter(
            "word_layer",
            "of a model that reads words: mean, or counted from 1",
            _mean_or("layer for the words", _LAYERS),
        ),
        Parameter(
            "word_head", "of a model that reads words: mean, or counted from 1", _mean_or("head for the words", _HEADS)
        ),
        Parameter("scale", "where the colours end", one_of("colours", SCALES)),
        Parameter(
            "latest",
            "how many positions are drawn",
            up_to("number of positions", 2, lambda models, parameters: MAX_LATEST),
        ),
        Parameter("people", "the mean over users by distance or position", one_of("mean over users by", PEOPLE)),
    ),
)
