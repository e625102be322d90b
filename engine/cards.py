"""What a model or a tokenizer declares of itself (docs/extending.md), and how the app and `--help` read it, which load neither.

The copy in cards.json is written by `seqscope cards --write` from the classes; a test says when it is out of date. Where other
packages add models or tokenizers, the same command is asked once per process instead.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from engine.errors import SeqscopeError
from engine.plugins import points

FILE = Path(__file__).with_suffix(".json")
MODELS, TOKENIZERS = "seqscope.models", "seqscope.tokenizers"
"""Entry points of other packages: a name → the class that declares it."""
SECONDS = 120
"""What asking for declarations of other packages may take."""

Kind = Literal["sequential", "collaborative", "text", "generative", "counting"]
KINDS: dict[Kind, str] = {
    "sequential": "Sequential",
    "collaborative": "Collaborative",
    "text": "Text",
    "generative": "Generative",
    "counting": "Counting",
}
"""What a model goes by, in the order of lists (`place`), and how pages call it: the order of a history, who has what, words about
items, identifiers that it writes, how often items follow or go with each other."""
OTHER = "Other"
"""What pages call models that declare no kind."""

Colour = Literal[
    "blue",
    "red",
    "green",
    "orange",
    "grey",
    "pink",
    "sky",
    "yellow",
    "violet",
    "brown",
    "teal",
    "wine",
    "moss",
    "indigo",
]
"""Of figures: a colour with its marker and its dash (app.styles.PALETTE)."""


@dataclass(frozen=True)
class OnPage:
    """How the page Your data trains a recipe."""

    recipe: str = ""
    """The recipe for a visitor's catalogue, where it is called otherwise than the variant."""
    chosen: bool = False
    """Chosen until the visitor chooses."""
    at_once: bool = False
    """Fitted, evaluated and exported by itself as soon as a log is uploaded: of a model that counts, in seconds."""
    examples: int = 0
    """How many examples a user gives to an epoch: with few users the batches are made smaller. 0: they never are."""
    identifiers: str = ""
    """The tokenizer run whose identifiers it generates."""
    start: str = ""
    """The bundle that it starts from: carried over to the dataset before. It decides the settings `sizes`."""
    sizes: tuple[str, ...] = ()
    first: str = ""
    """The recipe of the stage that is trained before it."""
    first_title: str = ""
    batch: int = 0
    times: bool = False
    """It reads when events were. This, the batch and the titles are those of the recipes, filled in by `seqscope cards`."""


@dataclass(frozen=True)
class Variant:
    """A recipe of a model or of a tokenizer, by the name that its runs and bundles bear."""

    name: str
    colour: Colour | None = None
    """Taken where no model before it has it; None: the first that is free (app.styles)."""
    page: OnPage | None = None
    """None: it is trained on the command line alone."""
    order: int | None = None
    summary: str = ""
    paper: str = ""
    """These three where they differ from those of the card."""
    title: str = ""
    """The recipe's, filled in by `seqscope cards`."""


@dataclass(frozen=True)
class Card:
    """What a page says of a model or a tokenizer."""

    title: str
    summary: str
    paper: str
    order: int
    """Its place among those of its kind (`place`), from 10 to 90: learned models, generators from 50, what counts from 70."""
    variants: tuple[Variant, ...] = ()
    """Recipes with a colour of their own, or that a page trains."""
    geometry: Literal["cosine", "euclidean", "none"] = "cosine"
    """Of item vectors."""
    centred: bool = False
    """Item vectors have one large direction in common: nearness is that of vectors less their mean."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Capability of a bundle that it lacks → why, in a sentence."""

    def __post_init__(self) -> None:
        for name in ("title", "summary", "paper"):
            if not getattr(self, name).strip():
                raise SeqscopeError(f"the card of {self.title or 'a model'} has no {name} (docs/extending.md)")
        if not isinstance(self.order, int):
            raise SeqscopeError(f"the card of {self.title} has the order {self.order!r}, which is no whole number")
        for variant in self.variants:
            if variant.colour not in (None, *get_args(Colour)):
                possible = ", ".join(get_args(Colour))
                raise SeqscopeError(f"{variant.name} has the colour {variant.colour!r}; possible are {possible}")

    def variant(self, name: str) -> Variant:
        """That of the name, or one that says what the card says."""
        return next((variant for variant in self.variants if variant.name == name), Variant(name))


def by_kind(kinds: Mapping[str, Kind | None]) -> dict[str, list[str]]:
    """A kind of models, as pages call it → the names of those in `kinds` (name → kind) that are of it, in their order there."""
    titles = {name: OTHER if kind is None else KINDS[kind] for name, kind in kinds.items()}
    every = {title: [name for name in titles if titles[name] == title] for title in (*KINDS.values(), OTHER)}
    return {title: names for title, names in every.items() if names}


def kind_of(family: str, *, writes: bool, reads: bool, ordered: bool) -> Kind:
    """As the family declares; of one that is not known here, by what its bundle has: identifiers that it writes, words of items
    that it reads, a use for the order of a history."""
    declared = declarations().models.get(family)
    if declared is not None and declared.kind is not None:
        return declared.kind
    return "generative" if writes else "text" if reads else "sequential" if ordered else "collaborative"


def place(kind: Kind | None, order: int) -> tuple[int, int]:
    """The key by which every list of models is sorted that no figure sorts: by kind, as in `KINDS`, then by the card's order."""
    return (list(KINDS).index(kind) if kind is not None else len(KINDS), order)


def added(default: Any) -> Any:
    """A setting that came after trainings had been begun without it: at its default they go on as they were."""
    return field(default=default, metadata={"added": True})


def require(kind: Any, *attributes: str) -> None:
    """Raises SeqscopeError where a class that recipes may name declares one of `attributes` nowhere, or a Config that is none."""
    missing = [name for name in attributes if not hasattr(kind, name)]
    if missing:
        raise SeqscopeError(
            f"{kind.__module__}.{kind.__qualname__} declares no {' and no '.join(missing)} (docs/extending.md)"
        )
    if "Config" in attributes:
        _check_settings(kind.Config)


def _check_settings(kind: Any) -> None:
    """Raises SeqscopeError where a recipe cannot leave out what it does not set."""
    where = f"{kind.__module__}.{kind.__qualname__}"
    if not is_dataclass(kind):
        raise SeqscopeError(f"{where}, the Config, is no dataclass (docs/extending.md)")
    bare = [setting.name for setting in fields(kind) if setting.default is setting.default_factory is MISSING]
    if bare:
        raise SeqscopeError(f"{where}, the Config, has no default of {' and none of '.join(bare)} (docs/extending.md)")


@dataclass(frozen=True)
class Declaration:
    """A class as far as those need it who do not load it; the fields are those of the class."""

    card: Card
    needs: tuple[str, ...]
    learns: bool
    """Step by step; False where it counts."""
    kind: Kind | None = None
    """None: a tokenizer."""
    needs_log: bool = True
    unseen_items: bool = False


@dataclass(frozen=True)
class Declarations:
    """By name, in the order of lists."""

    models: dict[str, Declaration]
    tokenizers: dict[str, Declaration]


@dataclass(frozen=True)
class Trainable:
    """What a page can train."""

    title: str
    page: OnPage
    declaration: Declaration


def untrained(of: Mapping[str, Declaration]) -> tuple[str, ...]:
    """The families of models that learn nothing step by step, in the order in which tables begin: the plainest, which lists have
    last, first."""
    return tuple(
        sorted((name for name, model in of.items() if not model.learns), key=lambda name: -of[name].card.order)
    )


def trainable(of: Mapping[str, Declaration]) -> dict[str, Trainable]:
    """By the names of variants."""
    return {
        variant.name: Trainable(variant.title, variant.page, declaration)
        for declaration in of.values()
        for variant in declaration.card.variants
        if variant.page is not None
    }


def at_once(of: Mapping[str, Declaration]) -> dict[str, str]:
    """Variants that are made as soon as there is a log (`OnPage.at_once`) → the recipe of each; the plainest first, which lists
    have last: they are there soonest."""
    plainest_first = sorted(trainable(of).items(), key=lambda entry: -entry[1].declaration.card.order)
    return {name: model.page.recipe or name for name, model in plainest_first if model.page.at_once}


def colours(of: Mapping[str, Declaration]) -> dict[str, Colour]:
    """By the names of variants, of those that have one of their own."""
    variants = (variant for declaration in of.values() for variant in declaration.card.variants)
    return {variant.name: variant.colour for variant in variants if variant.colour is not None}


def read(text: str) -> Declarations:
    """Raises ValueError where `text` is no JSON of declarations."""
    from pydantic import TypeAdapter

    return TypeAdapter(Declarations).validate_json(text)


def write(declarations: Declarations) -> str:
    from pydantic import TypeAdapter

    return TypeAdapter(Declarations).dump_json(declarations, indent=1, exclude_defaults=True).decode() + "\n"


def names(group: str) -> list[str]:
    """Of models or of tokenizers (`MODELS`, `TOKENIZERS`), in the order of lists; those of other packages last."""
    shipped = json.loads(FILE.read_text("utf-8"))  # the names alone: trainings run where pydantic is missing, too
    added = (point.name for point in points(group))
    return list(dict.fromkeys([*shipped["models" if group == MODELS else "tokenizers"], *added]))


@cache
def declarations() -> Declarations:
    """Of this package and of all others that are installed, without loading any of them into this process."""
    if points(MODELS) or points(TOKENIZERS):
        try:
            words = [sys.executable, "-m", "engine", "cards"]  # what it says goes where this process says things
            return read(subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=True).stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            logging.getLogger(__name__).warning("what other packages add is left out: %s", error)
    return read(FILE.read_text("utf-8"))
