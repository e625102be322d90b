"""What a page declares of itself: its place in the navigation, and the parameters that it has in the address for itself.

    PAGE = Page(
        name="graph", title="Graph", icon=":material/hub:", section="Look inside", order=3, script=script(__file__),
        help="The paths through users and items that carry a recommendation.",
        parameters=(Parameter("model", "whose paths are shown, by its name", is_model),),
    )

`app.screens` finds the declarations, `app.main` makes the navigation of them, and `app.session.state` reads the address by them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app import home
from app.session.address import PARAMETERS
from app.text import MAX_QUERY, listed, short
from engine.errors import SeqscopeError

if TYPE_CHECKING:
    from engine.runtime import Zoo

SECTIONS = ("Try", "Look inside", "Judge", "Data & reports")
"""Of the navigation, in their order; others come after them."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")

Own = Mapping[str, str]
"""Parameter → its text in the address."""
Check = Callable[[str, "Zoo", Own], str]
"""What is wrong with a text, as a sentence; "" where nothing is. It may look at the parameters that come before its own."""


@dataclass(frozen=True)
class Parameter:
    """One thing that can be chosen on a page; without it in the address, the page decides."""

    name: str
    meaning: str
    check: Check
    renewed: Callable[[str], str] = str
    """The text of today for one in an address of before."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or not self.meaning:
            raise SeqscopeError(f"The parameter “{self.name}” of a page needs a plain name and a meaning.")
        if self.name in PARAMETERS:
            raise SeqscopeError(
                f"The parameter “{self.name}” is one that all pages share: a page cannot have it for itself."
            )


@dataclass(frozen=True)
class Page:
    """A page of the app. Raises SeqscopeError where the declaration lacks something, and says what."""

    name: str
    """Its path in the address; the first page of the navigation has none there."""
    title: str
    icon: str
    """":material/…:", of the Material Symbols."""
    section: str
    """Of the navigation: one of `SECTIONS`, or a new one."""
    order: int
    """Within the section."""
    help: str
    """What there is to see, in a sentence."""
    script: Path
    """Draws the page: a file that Streamlit runs (see `script`)."""
    parameters: tuple[Parameter, ...] = ()
    """In the order in which they are checked."""
    hidden: Callable[[Zoo | None], bool] = lambda models: False
    """Whether it has nothing to show of a dataset (None: one that cannot be opened), so that the menu need not speak of it."""
    without_datasets: bool = False
    """Whether it has something to show where there is no dataset at all."""

    def __post_init__(self) -> None:
        texts = {entry: getattr(self, entry) for entry in ("title", "icon", "section", "help")}
        lacking = [entry for entry, text in texts.items() if not (isinstance(text, str) and text.strip())]
        if not _NAME.fullmatch(self.name):
            raise SeqscopeError(f"The page “{self.name}” needs a name of small letters: it stands in addresses.")
        if lacking:
            raise SeqscopeError(f"The page “{self.name}” declares no {listed(lacking)}.")
        if not self.script.is_file():
            raise SeqscopeError(f"The page “{self.name}” has no file {self.script.name} that draws it.")
        if not callable(self.hidden):
            raise SeqscopeError(f"The page “{self.name}” declares as hidden what is no function of the models.")
        names = [parameter.name for parameter in self.parameters]
        if len(set(names)) < len(names):
            raise SeqscopeError(f"The page “{self.name}” declares a parameter twice.")


def script(declaration: str) -> Path:
    """page.py beside the file that declares the page."""
    return Path(declaration).with_name("page.py")


def ordered(pages: Iterable[Page]) -> dict[str, Page]:
    """Name → page, in the order of the navigation. Raises SeqscopeError where two have the same name."""
    named: dict[str, Page] = {}
    for page in pages:
        if page.name in named:
            raise SeqscopeError(f"Two pages are called “{page.name}”.")
        named[page.name] = page
    last = len(SECTIONS)
    place = {section: number for number, section in enumerate(SECTIONS)}
    return dict(sorted(named.items(), key=lambda entry: (place.get(entry[1].section, last), entry[1].order)))


def read(parameters: Iterable[Parameter], address: Own, models: Zoo) -> tuple[dict[str, str], list[str]]:
    """(a page's own choices in an address, a sentence about each one that cannot be had)"""
    choices: dict[str, str] = {}
    problems = []
    for parameter in parameters:
        if parameter.name not in address:
            continue
        text = parameter.renewed(address[parameter.name])
        try:
            problem = parameter.check(text, models, choices)
        except SeqscopeError as error:  # a damaged file; the page itself says more
            words = getattr(error, "shown", "") or home.hidden(
                str(error)
            )  # nothing of the server's files and processes
            problem = f"What the link asks for as “{parameter.name}” cannot be looked up: {words}"
        if problem:
            problems.append(problem)
        else:
            choices[parameter.name] = text
    return choices, problems


# --- checks


def is_model(text: str, models: Zoo, parameters: Own) -> str:
    return "" if text in models.bundles else f"The link names a model that this dataset does not have: “{short(text)}”."


def is_item(text: str, models: Zoo, parameters: Own) -> str:
    if models.position(text) is not None:
        return ""
    return f"The link names an item that this dataset does not have: “{short(text)}”."


def is_search(text: str, models: Zoo, parameters: Own) -> str:
    return "" if len(text) <= MAX_QUERY else f"The link searches for a text of more than {MAX_QUERY} characters."


def one_of(name: str, allowed: Collection[str]) -> Check:
    def check(text: str, models: Zoo, parameters: Own) -> str:
        return "" if text in allowed else refused(name, text, listed(list(allowed), "or"))

    return check


def section(names: Collection[str]) -> Parameter:
    """Which section of a page is open; app.components.sections draws their tabs."""
    return Parameter("section", "which of the page's sections is open", one_of("section", names))


def up_to(name: str, least: int, most: Callable[[Zoo, Own], int]) -> Check:
    def check(text: str, models: Zoo, parameters: Own) -> str:
        top = most(models, parameters)
        if text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= top:
            return ""
        return refused(name, text, f"{least} to {top}" if top > least else str(least))

    return check


def refused(name: str, text: str, possible: str) -> str:
    return f"The link asks for the {name} “{short(text, 20)}”; possible is {possible}."
