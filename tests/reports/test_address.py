"""A link becomes a report, and the report leads back to the same."""

from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from app.analysis import model_card
from app.reports import address
from app.reports.address import PARAMETERS
from app.reports.document import Asked
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from tests.reports.conftest import HISTORY


@pytest.mark.parametrize(
    "asked",
    [
        Asked(history=HISTORY),
        Asked(history=[], edited=[]),
        Asked(history=HISTORY[:2], edited=HISTORY[:1], models=["alpha", "gamma"], k=3),
        Asked(
            history=["toy-9"], item="a~b", attention=["alpha"], view="rollout", map="beta", codes=["letter"], slow=True,
            protocol="full", rows=True, title="A & B = C?", parts=["history", "lists"],
        ),
        Asked(history=["toy-9"], attention=[], codes=[]),
    ],
)  # fmt: skip
def test_there_and_back(models: Zoo, asked: Asked) -> None:
    query = address.query(asked, "hostile", address.parameters_of(asked), models)
    for whole in (f"https://x.org/report?{query}", f"?{query}", query):
        found = address.parameters(whole)
        assert found["ds"] == "hostile" and address.read(found, models) == asked


def test_an_address_without_models_means_those_that_its_page_shows_and_a_report_of_all_names_them(root: Path) -> None:
    films = Zoo.open(root / "exports" / "films")
    assert address.read({"ds": "films"}, films).models == model_card.usual(films)
    every = address.read({}, films)
    assert every.models is None
    assert address.read(address.parameters(address.query(every, "films", {}, films)), films).models is None


def test_a_person_is_named_only_where_rows_may_go(models: Zoo) -> None:
    person = models.users["user_id"][2].as_py()
    found = address.read({"ds": "hostile", "u": person}, models)
    assert found.user == person and len(found.history or []) == 5
    assert "u" not in dict(parse_qsl(address.query(found, "hostile", {}, models)))
    named = found.model_copy(update={"rows": True})
    assert dict(parse_qsl(address.query(named, "hostile", {}, models)))["u"] == person


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://x.org/", "names nothing"),
        ("https://x.org/?v=1", "names nothing"),
        ("?u=nobody", "nobody called “nobody”"),
        ("?map=nope", "model that this dataset does not have"),  # and all else that the page refuses
        ("?saved_report=abcdefgh12345678", "saved report"),
        ("?item=nope", "item that this dataset does not have: “nope”"),
        ("?v=1" + "&a=b" * 200, "is no address"),
        ("?v=1&h=%ff", "not UTF-8 text: %FF after “h=”"),
        ("http://x/?ds=sample&title=caf%E9&h=toy-9", "%E9 after “title=caf”"),
    ],
)
def test_what_an_address_cannot_ask(models: Zoo, text: str, words: str) -> None:
    with pytest.raises(SeqscopeError, match=words):
        address.read(address.parameters(text), models)


def test_a_page_without_a_history_shows_the_example_and_every_choice_is_told_in_the_address(models: Zoo) -> None:
    assert address.read({"ds": "hostile"}, models).history
    everything = Asked(
        history=["toy-9"], item="toy-9", attention=["alpha"], view="rollout", map="beta", codes=["letter"], slow=True,
        protocol="full", rows=True, title="x", parts=["lists"],
    )  # fmt: skip
    of_no_report = {"figures", "saved_report"}
    assert {*address.parameters_of(everything)} == {parameter.name for parameter in PARAMETERS} - of_no_report
