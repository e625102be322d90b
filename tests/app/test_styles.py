"""How models look in figures."""

from __future__ import annotations

from app.styles import _colours, _looks


def test_no_two_of_many_models_look_alike_and_those_of_before_stay_as_they_are() -> None:
    names = ("sasrec", "bert4rec", *(f"other-{number}" for number in range(40)))
    looks = _looks(names, _colours("models"))
    assert len({(look.colour, look.marker) for look in looks.values()}) == len(names)
    assert looks["sasrec"] == _looks(("sasrec",), _colours("models"))["sasrec"]
