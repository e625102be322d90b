"""The words of an item, see `engine.texts`: kept apart from this package, because they are read where there is no torch, too."""

from engine.texts import (
    CHARACTERS,
    SEPARATOR,
    WORDS,
    Field,
    Fields,
    attributes,
    choose_fields,
    fields_elsewhere,
    plain,
    shorten,
    texts,
)

__all__ = [
    "CHARACTERS",
    "SEPARATOR",
    "WORDS",
    "Field",
    "Fields",
    "attributes",
    "choose_fields",
    "fields_elsewhere",
    "plain",
    "shorten",
    "texts",
]
