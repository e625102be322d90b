"""Which items the map shows: those with the values that were clicked on the attribute bars, of the selection alone where it is
isolated. The bars beside the map count what is shown, and of it what is selected."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from app import spaces, zoo
from app.analysis.map_colouring import Colouring
from app.analysis.map_points import Points
from app.analysis.map_regions import Attribute
from app.components import item_picker, widgets
from app.screens.map import filter_values
from app.screens.map.chart import MapChoices, is_held, select, selected, zoom_to
from app.session import state
from app.session.address import encode_values
from app.styles import GREY
from app.text import clean
from engine.runtime import Zoo
from engine.writing import count

_KEY = "map_bars"
BARS = 12  # values of an attribute that have a bar
LISTED = 12  # selected items that stand above the bars

Items = npt.NDArray[np.bool_]


def passing(attributes: Sequence[Attribute], filtered_by: Mapping[str, Sequence[str]], but: str = "") -> Items | None:
    """bool [items]: those with one of the filtered_by values of every attribute (`but` that one); None: all."""
    masks = [
        attribute.having(filtered_by[attribute.name])
        for attribute in attributes
        if attribute.name in filtered_by and attribute.name != but
    ]
    return np.logical_and.reduce(masks) if masks else None


def isolated() -> bool:
    """Whether the selection alone is shown, once there is one."""
    return "isolate" in state.get().own


def shown(models: Zoo, selection: Sequence[int]) -> Items | None:
    """bool [items]: what the map shows; None: all."""
    items = passing(spaces.attributes(models), filter_values(state.get().own))
    if selection and isolated():
        of_selection = np.zeros(len(models), bool)
        of_selection[list(selection)] = True
        return of_selection if items is None else items & of_selection
    return items


def recoloured(models: Zoo, colours: Colouring | None) -> Colouring | None:
    """With items that are shown for one of their values in the colour of that value."""
    pressed = filter_values(state.get().own).get(colours.name, ()) if colours is not None else ()
    attribute = next((a for a in spaces.attributes(models) if colours is not None and a.name == colours.name), None)
    if colours is None or colours.group is None or attribute is None or not colours.several:
        return colours
    group = colours.group.copy()
    for value in reversed(pressed):
        if (name := clean(value, 40)) in colours.groups:
            group[attribute.having((value,))] = colours.groups.index(name)
    return replace(colours, group=group)


def show(page: MapChoices) -> None:
    """The selection and the bars, over the map's right edge."""
    attributes = spaces.attributes(page.models)
    if not attributes or all(place.of_codes for place in page.places):
        return
    data = {
        "attributes": attribute_bars(page, attributes),
        "filtered": bool(filter_values(state.get().own)),
        "maps": len(page.places),
        "aspect": _points(page).aspect,
        "selection": _selection(page),
    }
    widgets.attribute_bars(data, key=_KEY, on_act=act)


def attribute_bars(page: MapChoices, attributes: Sequence[Attribute]) -> list[dict[str, Any]]:
    """Per attribute its title and the bars of its values: how many items of the map have each, and how many of those that are
    selected and pass the filters of the other attributes. First the attribute that the map is coloured by, popularity last."""
    filtered_by = filter_values(state.get().own)
    drawn = np.zeros(len(page.models), bool)
    drawn[_points(page).items] = True
    chosen = np.zeros(len(page.models), bool)
    chosen[list(page.selection)] = True
    bars = []
    coloured = page.colours.name if page.colours is not None else ""
    for attribute in sorted(attributes, key=lambda a: (a.name != coloured, a.name == "popularity")):
        passed = passing(attributes, filtered_by, but=attribute.name)
        now = drawn if passed is None else drawn & passed
        counts = attribute.counts(now & chosen if page.selection else now)
        totals = attribute.counts(drawn)
        pressed = filtered_by.get(attribute.name, ())
        listed = [at for at, value in enumerate(attribute.values) if at < BARS or value in pressed]
        bars.append({
            "name": attribute.name,
            "title": clean(attribute.title, 40),
            "values": [
                {
                    "value": attribute.values[at],
                    "items": int(counts[at]),
                    "of": int(totals[at]),
                    "pressed": attribute.values[at] in pressed,
                    **_colour(page.colours, attribute, attribute.values[at]),
                }
                for at in listed
            ],
            "more": len(attribute.values) - len(listed),
            "rest": _rest(page.colours) if attribute.name == coloured else [],
        })  # fmt: skip
    return bars


def _points(page: MapChoices) -> Points:
    """Of the first map of items."""
    return spaces.points(page.models, next(place for place in page.places if not place.of_codes))


def _colour(colours: Colouring | None, attribute: Attribute, value: str) -> dict[str, Any]:
    """The colour of the points with a value, and whether it is theirs alone; None where points have other colours."""
    if colours is None or colours.name != attribute.name or colours.group is None:
        return {"colour": None, "legend": False}
    name = clean(value, 40)
    known = name in colours.groups
    return {"colour": colours.colour(colours.groups.index(name)) if known else GREY, "legend": known}


def _rest(colours: Colouring | None) -> list[dict[str, str]]:
    """The groups of points that no value stands for, in the legend."""
    if colours is None or colours.group is None:
        return []
    return [
        {"value": name, "colour": colours.colour(place)}
        for place, name in enumerate(colours.groups)
        if colours.left_over(place)
    ]


def _selection(page: MapChoices) -> dict[str, Any] | None:
    if not page.selection:
        return None
    models = page.models
    order = sorted(page.selection, key=lambda item: -int(models.popularity[item]))
    return {
        "words": f"{count(len(order), 'item')} selected",
        "items": [{"id": models.item_ids[i], "title": clean(zoo.titled(models, i), 80)} for i in order[:LISTED]],
        "more": max(len(order) - LISTED, 0),
        "isolated": page.isolated,
        "held": is_held(),
    }


def act(clicked: Mapping[str, Any]) -> None:
    """Does what was clicked on the bars. It comes from the browser, so it is looked up."""
    models = zoo.open_zoo(state.get().dataset)
    selection = selected(models)
    name, value, item_id = clicked.get("name"), clicked.get("value"), clicked.get("id")
    match clicked.get("do"):
        case "filter" if any(a.name == name and value in a.values for a in spaces.attributes(models)):
            _toggle(str(name), str(value))
        case "clear":
            state.choose(only=None)
        case "isolate" if selection:
            alone = not isolated()
            state.choose(isolate="yes" if alone else None)
            zoom_to(selection if alone else None)
        case "zoom" if selection:
            zoom_to(selection)
        case "deselect":
            select(None)
        case "item" if isinstance(item_id, str) and models.position(item_id) is not None:
            item_picker.choose(item_id)


def _toggle(name: str, value: str) -> None:
    filtered_by = filter_values(state.get().own)
    values = filtered_by.get(name, ())
    filtered_by[name] = tuple(v for v in values if v != value) if value in values else (*values, value)
    state.choose(only=encode_values(filtered_by))
