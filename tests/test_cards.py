"""Declarations of models and tokenizers: the copy of the app is up to date, and what is lacking is said by name."""

import typing
from dataclasses import dataclass, make_dataclass
from importlib.metadata import EntryPoint

import pytest
import torch
from streamlit.string_util import extract_leading_emoji

from app.styles import OPEN, PALETTE
from engine import cards
from engine.cards import Card, Colour
from engine.commands.cards import declared
from engine.errors import SeqscopeError
from engine.models import Recommender
from engine.models.popularity import Popularity
from engine.plugins import classes
from engine.tokenizers.base import Tokenizer
from engine.tokenizers.random import Random, RandomConfig
from engine.training.objectives import NextItem
from engine.training.objectives.sequences import NextItemConfig


def test_the_copy_is_up_to_date() -> None:
    assert cards.FILE.read_text("utf-8") == cards.write(declared()), "run `seqscope cards --write`"
    assert cards.declarations() == declared()


def test_colours_are_in_the_palette_and_differ() -> None:
    assert set(PALETTE) == set(typing.get_args(Colour))
    for declarations in (declared().models, declared().tokenizers):
        chosen = list(cards.colours(declarations).values())
        assert len(chosen) == len(set(chosen)) and set(chosen) <= set(PALETTE)


def test_what_a_page_trains_names_what_is_there() -> None:
    models, tokenizers = (cards.trainable(of) for of in (declared().models, declared().tokenizers))
    assert {model.page.identifiers for model in models.values()} <= {"", *tokenizers}
    assert all(tokenizer.declaration.needs in ((), ("vectors",)) for tokenizer in tokenizers.values())


def test_a_declaration_that_lacks_something_says_what() -> None:
    with pytest.raises(TypeError, match="'order'"):
        Card(title="x", summary="x", paper="x")  # type: ignore[call-arg]
    with pytest.raises(SeqscopeError, match="no paper"):
        Card(title="x", summary="x", paper=" ", order=10)
    with pytest.raises(SeqscopeError, match=r"Bare declares no Config and no objective and no kind"):
        type("Bare", (Recommender,), {"name": "bare", "card": Popularity.card})
    with pytest.raises(SeqscopeError, match="kind 'recurrent'"):
        type("Other", (Popularity,), {"name": "other", "kind": "recurrent"})
    with pytest.raises(SeqscopeError, match="colour 'magenta'"):
        Card(title="x", summary="x", paper="x", order=10, variants=(cards.Variant("x", colour="magenta"),))  # type: ignore[arg-type]
    with pytest.raises(SeqscopeError, match="order '10'"):
        Card(title="x", summary="x", paper="x", order="10")  # type: ignore[arg-type]
    with pytest.raises(SeqscopeError, match=r"NoCodes declares no codes"):
        page = Card(title="x", summary="x", paper="x", order=1, variants=(cards.Variant("x", page=cards.OnPage()),))
        type("Toy", (Random,), {"name": "x", "card": page, "Config": dataclass(type("NoCodes", (), {}))})
    assert RandomConfig.codes
    for config, words in (
        (type("Plain", (), {}), "Plain, the Config, is no dataclass"),
        (make_dataclass("Bare", [("dim", int)]), "Bare, the Config, has no default of dim"),
    ):
        with pytest.raises(SeqscopeError, match=words):
            type("Toy", (Popularity,), {"name": "x", "Config": config})
    parts = {name: getattr(Popularity, name) for name in ("Config", "objective", "kind", "card")}
    with pytest.raises(SeqscopeError, match="Toy defines no query and no index"):
        type("Toy", (Recommender,), {"name": "x", **parts})
    with pytest.raises(SeqscopeError, match="Toy has no hidden and no table, which its objective asks for"):
        NextItem(NextItemConfig(), type("Toy", (), {})(), torch.zeros(0), torch.zeros(1), 1)


def test_a_name_is_taken_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def pretend(name: str, value: str) -> None:
        monkeypatch.setattr("engine.plugins.points", lambda group: [EntryPoint(name, value, group)])

    monkeypatch.setattr(
        "engine.models.popularity.Other", type("Other", (Popularity,), {"name": "popularity"}), raising=False
    )
    for name, value, words in (
        ("popularity", "engine.models.popularity:Other", "both declare 'popularity'"),
        ("gru", "engine.models.popularity:Popularity", "no Recommender called 'gru'"),
    ):
        pretend(name, value)
        assert classes(Recommender, ("engine.models",), "any")["popularity"] is Popularity
        assert f"{name} = {value}" in caplog.text and words in caplog.text


def test_a_tokenizer_that_lacks_methods_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bare = type("Bare", (Tokenizer,), {"name": "bare", "Config": RandomConfig, "card": Random.card})
    monkeypatch.setattr("engine.tokenizers.random.Bare", bare, raising=False)
    point = EntryPoint("bare", "engine.tokenizers.random:Bare", "any")
    monkeypatch.setattr("engine.plugins.points", lambda group: [point])
    assert "bare" not in classes(Tokenizer, ("engine.tokenizers",), "any")
    assert "Bare defines no fit and no identify and no parts and no restore and no sizes" in caplog.text


def test_declarations_of_a_broken_package_are_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cards, "points", lambda group: {"toy": None})
    monkeypatch.setattr(cards.sys, "executable", "/nowhere/python")
    assert cards.declarations.__wrapped__() == declared()
    assert "left out" in caplog.text


def test_no_sign_is_an_emoji() -> None:
    """Phones draw those in colours of their own, and Streamlit sets one that begins a label apart."""
    signs = [*(look.sign for look in PALETTE.values()), *OPEN.values()]
    assert not [sign for sign in signs if extract_leading_emoji(sign)[0]]
