"""The page Map."""

from dataclasses import replace

from app import spaces
from app.analysis import map_colouring, map_points
from app.figures import map_codes
from app.session.address import decode, decode_values
from app.session.pages import Own, Page, Parameter, is_search, one_of, script
from app.spaces import Place, ProjectionName
from app.text import short
from engine.runtime import Zoo

NOTHING = "none"
CODE = "code."
"""What a colour by first codes begins with; the tokenizer's name follows."""
NEXT = "next"
"""What the model of a space recommends; other spaces have none."""
LAYERS = ("history", NEXT)


def shown_places(models: Zoo, parameters: Own) -> tuple[Place, ...]:
    """The map on the left, and the one beside it where there is one. There is at least one."""
    able = spaces.able(models)
    first = parameters["space"] if parameters.get("space") in able else next(iter(able))
    second = parameters.get("beside")
    keys = [first, second] if second in able and second != first else [first]
    projection: ProjectionName = "pca" if parameters.get("projection") == "pca" else "umap"
    return tuple(replace(able[key], projection=projection) for key in keys if key is not None)


def shown_layers(parameters: Own) -> frozenset[str]:
    """What is drawn on top."""
    return frozenset(LAYERS if "top" not in parameters else parameters["top"].split("~")) & frozenset(LAYERS)


def filter_values(parameters: Own) -> dict[str, tuple[str, ...]]:
    """Attribute → the values of it that items are to have one of."""
    return decode_values(parameters.get("only", ""))


def chosen_code(models: Zoo, parameters: Own) -> tuple[str, str] | None:
    """(tokenizer, level-code) of the chosen code."""
    name, _, level_code = parameters.get("code", "").partition(".")
    return (name, level_code) if name in models.tokenizations else None


def _is_space(text: str, models: Zoo, parameters: Own) -> str:
    space = next((place for place in spaces.every(models) if place.key == text), None)
    if space is None:
        return f"The link asks for a map that this dataset does not have: “{short(text)}”."
    return "" if space.cannot is None else f"The link asks for the map “{short(text)}”. {space.cannot}"


def _is_beside(text: str, models: Zoo, parameters: Own) -> str:
    return "" if text == NOTHING else _is_space(text, models, parameters)


def _is_colour(text: str, models: Zoo, parameters: Own) -> str:
    if text == NOTHING or text in models.items.column_names or text.removeprefix(CODE) in models.tokenizations:
        return ""
    return f"The link asks for colours by “{short(text)}”, which this catalogue does not have."


def _are_layers(text: str, models: Zoo, parameters: Own) -> str:
    names = text.split("~")
    if text == NOTHING or (set(names) <= set(LAYERS) and len(set(names)) == len(names)):
        return ""
    return f"The link draws “{short(text, 20)}” on top; possible is history, next, both with ~ between them, or none."


def _are_values(text: str, models: Zoo, parameters: Own) -> str:
    of = {attribute.name: attribute.values for attribute in spaces.attributes(models)}
    filtered_by = decode_values(text) if len(text) <= map_points.LONGEST else {}
    if filtered_by and all(value in of.get(name, ()) for name, chosen in filtered_by.items() for value in chosen):
        return ""
    return f"The link shows items by values that this catalogue does not have: “{short(text)}”."


def _is_code(text: str, models: Zoo, parameters: Own) -> str:
    name, _, level_code = text.partition(".")
    place = spaces.able(models).get(f"codes.{name}")
    if place is not None and level_code in spaces.codes(models, place).rows:
        return ""
    return f"The link names a code that no tokenizer of this dataset has: “{short(text)}”."


def _is_area(text: str, models: Zoo, parameters: Own) -> str:
    where, selection = map_points.split(text)
    if where == map_points.IDS:
        item_ids = decode(selection) if len(selection) <= map_points.LONGEST else []
        if 0 < len(item_ids) <= map_points.LISTED and all(models.position(item_id) is not None for item_id in item_ids):
            return ""
        return "The link selects items that this dataset does not have, or too many by name."
    if where.startswith("prefix."):
        tokenization, codes = models.tokenizations.get(where.removeprefix("prefix.")), map_points.prefix(selection)
        sizes = tokenization.about.shape.own if tokenization is not None else []
        if codes and len(codes) <= len(sizes) and all(c is None or c < n for c, n in zip(codes, sizes, strict=False)):
            return ""
        return f"The link selects items by the codes “{short(text)}”, which no tokenizer of this dataset has."
    if spaces.mapped(models, where) is not None and map_points.outlines(selection) is not None:
        return ""
    return f"The link selects an area of a map that cannot be read: “{short(text)}”."


PAGE = Page(
    name="map",
    title="Map",
    icon=":material/scatter_plot:",
    section="Look inside",
    order=4,
    help="Items as a model arranges them, with the history on top.",
    script=script(__file__),
    parameters=(
        Parameter(
            "space",
            "whose map is drawn: a model's name, space.<name>, latents.<tokenizer>, codes.<tokenizer>",
            _is_space,
        ),
        Parameter("beside", "the map beside it; none", _is_beside),
        Parameter("projection", "of the vectors to the map: umap or pca", one_of("projection", spaces.PROJECTIONS)),
        Parameter(
            "colour", "of items: a column of the catalogue, code.<tokenizer> for the first code, or none", _is_colour
        ),
        Parameter(
            "scale", "of colours by a number: linear, log or quantile", one_of("colour scale", map_colouring.SCALES)
        ),
        Parameter("by", "what colours codes", one_of("colours of codes by", map_codes.BY)),
        Parameter("find", "a text that titles and attributes are searched for", is_search),
        Parameter("top", "what is drawn on top: history and next with ~ between them, or none", _are_layers),
        Parameter(
            "only", "attribute~value~…: items that are shown have one of the values of each attribute", _are_values
        ),
        Parameter("isolate", "yes: of the selection alone", one_of("isolation", ("yes",))),
        Parameter("code", "that is chosen: <tokenizer>.<level>-<code>, levels counted from 1", _is_code),
        Parameter("area", "what is selected (see `map_selection`)", _is_area),
    ),
)
