"""What one visitor is looking at, and the address that says the same.

    now = state.get()                  # dataset, history, k, models, variant, user
    state.add("alien-1979")            # from a callback: changes the history and the address
    state.select("alien-1979")         # from a callback: the item whose details are shown, on every page
    state.choose(layer="2")            # from a callback: changes what this page has for itself, and the address
    state.numbers(models, now.history) # item_ids → item numbers

Everything that another person needs to see the same is in the address, by item_id: what all pages share (`address`), and what a
page has for itself, such as the model that Attention looks into (`pages`).

An address that names something unknown shows the rest, and says what it could not find. One without a dataset means the one that
the app opens with (`engine.runtime.EMBEDDED`); the app leaves the dataset out only where everything is as it opens.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import examples
from app.limits import DEFAULT_K, MAX_HISTORY, MAX_K
from app.session import history_edits, pages
from app.session.address import PARAMETERS, VERSION, Address, Ids
from app.session.pages import Own, Page
from app.text import clean, short
from engine.errors import SeqscopeError
from engine.writing import count

if TYPE_CHECKING:
    from engine.runtime import Zoo

_KEY, _ADDRESS = "seqscope_state", "seqscope_address"
_UNHEARD = "seqscope_unheard"  # addresses that a request may still carry: the browser has not named the latest one yet
# whether the address of this run is not the browser's word, but was written by a callback of it
_WRITTEN = "seqscope_written"
_MOST_UNHEARD = 50
_PAGE, _OWN = "seqscope_page", "seqscope_own"  # what is shown; what each page had for itself when it was last seen
_PASSED = (
    "seqscope_passed"  # pages that the menu led to, so that no parameters there do not mean those of a first visit
)
_DATASETS = "seqscope_datasets"

OpenZoo = Callable[[str], "Zoo"]
"""Name of a dataset → its models. Raises SeqscopeError where it cannot be opened."""


@dataclass(frozen=True)
class _Datasets:
    """Where the ids of an address are looked up; `sync` is given it in every run."""

    names: Ids
    """At least one; the first is where a visitor without an address begins."""
    open_zoo: OpenZoo


@dataclass(frozen=True)
class State:
    """What one visitor is looking at. Changed by `update` alone."""

    dataset: str
    history: Ids = ()
    """item_ids, oldest first; all of them exist in the dataset."""
    k: int = DEFAULT_K
    models: Ids | None = None
    """Names of the models that are shown; None: the usual ones."""
    variant: Ids | None = None
    """B, the edited history of a what-if; A is `history` then. None: no what-if."""
    shows_a: bool = False
    """Whether A is looked at though there is B."""
    user: str | None = None
    """user_id of the person whose history this is, to the letter; their held-out item is known."""
    item: str | None = None
    """item_id of the item that is selected: its details stand beside every page, and pages that explain an item explain it."""
    own: Own = field(default_factory=dict, hash=False)
    """What the page has for itself: parameter → text in the address, let pass by the checks of the page."""
    problems: Ids = field(default=(), compare=False)
    """What the address asked for and could not be found, in sentences."""
    looked_up: str = field(default="", compare=False)
    """The `Zoo.stamp` of the dataset in which the ids were found; "" where it could not be opened."""

    @property
    def current(self) -> Ids:
        """The history that every page looks at: B, the edited one, where there is one, unless A was chosen."""
        return self.history if self.variant is None or self.shows_a else self.variant

    @property
    def a_or_b(self) -> str:
        """Which history of a what-if is looked at, "A" or "B"; "" where there is none."""
        return "" if self.variant is None else "A" if self.shows_a else "B"


# --- reading


def get() -> State:
    """The visitor's state. `sync` must have run in this session."""
    current: State = st.session_state[_KEY]
    return current


def coming(datasets: Sequence[str]) -> str:
    """The dataset that `sync` will come to, for what must be known before: the address's, the visitor's, or the first."""
    dataset = st.query_params.get("ds")
    if dataset is None and _KEY in st.session_state:
        dataset = get().dataset
    return dataset if dataset is not None and dataset in datasets else datasets[0]


def numbers(models: Zoo, ids: Iterable[str]) -> tuple[int, ...]:
    """Item numbers of item_ids; those that the catalogue does not have (any more) are left out."""
    positions = (models.position(item_id) for item_id in ids)
    return tuple(item for item in positions if item is not None)


def selected(models: Zoo) -> int | None:
    """The number of the item that is selected; None where none is."""
    item_id = get().item
    return None if item_id is None else models.position(item_id)


def target(models: Zoo, now: State | None = None) -> int | None:
    """The held-out item that truly came next; None where the history is not that of a user of the dataset, or items have no
    order. now: the visitor's state, or another."""
    row = examples.user_row(models, (now or get()).user)
    return None if row is None else models.next_item(row)


def warn(words: str) -> None:
    """Adds to the problems of the address, which are shown until something is changed."""
    now = get()
    st.session_state[_KEY] = dataclasses.replace(now, problems=(*now.problems, words))


# --- changing, from callbacks


def changed(before: State, **changes: object) -> State:
    """The state with other values. A changed history is no longer that of a user of the dataset, and one that is given takes the
    place of B, too, even where it is A already."""
    if "history" in changes:
        changes = {"variant": None, **changes}
    if changes.get("history", before.history) != before.history:
        changes = {"user": None, **changes}
    if changes.get("variant", before.variant) is None:
        changes["shows_a"] = False
    return dataclasses.replace(before, **{"problems": (), **changes})  # type: ignore[arg-type]


def edited(before: State, history: Ids, **changes: object) -> State:
    """The state with another history in place of the one that is looked at, A or B."""
    if before.a_or_b == "B":
        return changed(before, variant=history, **changes)
    return changed(before, **{"history": history, "variant": before.variant, **changes})


def update(**changes: object) -> None:
    """`changed`, and written into the address."""
    st.session_state[_KEY] = changed(get(), **changes)
    publish()


def edit(history: Ids, **changes: object) -> None:
    """`edited`, and written into the address."""
    st.session_state[_KEY] = edited(get(), history, **changes)
    publish()


def add(item_id: str, **changes: object) -> None:
    """Puts an item at the end of the history; the oldest goes, and the page says so, where it would be longer than allowed."""
    before = get().current
    edit(history_edits.longer(before, item_id), **changes)
    if len(before) >= MAX_HISTORY:
        warn(f"A history may have {MAX_HISTORY} items: the oldest made room for what was added.")


def remove(place: int) -> None:
    edit(history_edits.without(get().current, place))


def clear() -> None:
    edit(())


def select(item_id: str | None) -> None:
    """Selects an item for all pages; None: none any more."""
    update(item=item_id)


def choose(**changes: str | None) -> None:
    """Changes what the page has for itself; None takes a choice back."""
    choices = {**get().own, **changes}
    update(own={name: text for name, text in choices.items() if text is not None})


def choose_dataset(name: str) -> None:
    """Another dataset, with its first example; lists stay as long as they are."""
    st.session_state[_KEY] = dataclasses.replace(default(name, _datasets().open_zoo), k=get().k)
    st.session_state.pop(_OWN, None)
    publish()


def choose_user(models: Zoo, user_id: str) -> None:
    """The history of a person with a held-out item."""
    history = examples.history_of(models, user_id)
    if history is not None:
        update(history=history, user=user_id)


def load_example() -> None:
    """Puts the dataset's first example in the place of the history that is looked at."""
    edit(default(get().dataset, _datasets().open_zoo).history)


def default(name: str, open_zoo: OpenZoo) -> State:
    """How a dataset opens: its first example; without a history where it cannot be opened at all."""
    try:
        models = open_zoo(name)
        return State(dataset=name, history=examples.of(models)[0].history, looked_up=models.stamp(models.path))
    except SeqscopeError:  # the page says what is wrong when it opens the dataset itself
        return State(dataset=name)


# --- the address


def sync(datasets: Sequence[str], open_zoo: OpenZoo, page: Page | None = None) -> None:
    """Takes over what the address says, where a link or the browser's back button brought another one than was written.

    datasets: names, at least one; the first is where a visitor without an address begins. page: the one that is shown.
    """
    st.session_state[_DATASETS] = _Datasets(tuple(datasets), open_zoo)
    known = _KEY in st.session_state and get().dataset in datasets
    if known:
        _look_up_again(datasets, open_zoo)
    stays = _PAGE not in st.session_state or _page_name() == ("" if page is None else page.name)
    st.session_state[_PAGE] = page
    address = _read()
    if known and stays and address == st.session_state.get(_ADDRESS):
        if not st.session_state.pop(_WRITTEN, False):
            st.session_state.pop(_UNHEARD, None)
        return
    if known and stays and _is_late(address):
        _write(st.session_state[_ADDRESS])
        return
    if known and not address and (not _went_back() or _page_name() in st.session_state.get(_PASSED, ())):
        _enter(_page_name())
        return
    before = get().dataset if _KEY in st.session_state else datasets[0]
    gone = {} if before in datasets else {"ds": before}  # deleted meanwhile, and not to be passed over
    st.session_state[_KEY] = parse(address or gone, datasets, open_zoo, page)
    if get().dataset != before:
        st.session_state.pop(_OWN, None)  # which were chosen of another dataset
    st.session_state[_ADDRESS] = address
    _remember()
    unheard = st.session_state.pop(_UNHEARD, None)
    st.session_state.pop(_WRITTEN, None)
    # The browser may have heard since what a click before had led to. Where it came back from that, a write would come late, at
    # another entry of its history, to which it has gone on
    if unheard and unheard[-1] != address and _went_back():
        _write(address)


def _look_up_again(datasets: Sequence[str], open_zoo: OpenZoo) -> None:
    """Of a dataset that was changed since, such as by a new export, what is there no more is left out, and named."""
    now = get()
    try:
        models = open_zoo(now.dataset)
    except SeqscopeError:  # the page says why; it may be there again in a moment
        return
    if now.looked_up in ("", models.stamp(models.path)):
        return
    again = parse(params(now), datasets, open_zoo, st.session_state.get(_PAGE))
    if again.problems:
        again = dataclasses.replace(again, problems=("The dataset was changed meanwhile.", *again.problems))
    st.session_state[_KEY] = again


def _enter(page: str) -> None:
    """Streamlit's menu leads to a page without parameters: the visitor still looks at the same, and at what the page last had.

    The browser takes that for a step of its own, so its back button comes through here once more.
    """
    choices = st.session_state.get(_OWN, {}).get(page, {})
    st.session_state[_KEY] = dataclasses.replace(get(), own=choices)
    publish()
    st.session_state.pop(_WRITTEN, None)
    if st.session_state[_ADDRESS]:
        st.session_state.setdefault(_PASSED, set()).add(page)


def publish() -> None:
    """Writes the state into the address; nothing where it is what a visitor without an address sees."""
    now = get()
    address = params(now) if now != _front() else {}
    unheard = [*st.session_state.get(_UNHEARD, []), st.session_state.get(_ADDRESS)]
    st.session_state[_UNHEARD] = unheard[-_MOST_UNHEARD:]
    st.session_state[_ADDRESS] = address
    st.session_state[_WRITTEN] = True
    _remember()
    _write(address)  # at once: the browser's back button counts every change


def link(page_url: str) -> str:
    """The address of what is on the screen now. page_url: that of the page, with or without parameters."""
    now = get()
    page = page_url.partition("#")[0].partition("?")[0]
    return f"{page}?{urlencode({**_others(), **params(now)}, doseq=True)}"


def link_params(**choices: str) -> dict[str, str]:
    """The parameters of a link to a page that has `choices` for itself."""
    return params(dataclasses.replace(get(), own=choices))


def link_to(page: str, **changes: str) -> dict[str, str]:
    """The parameters of a link to a page as it was last seen, with some of its choices changed."""
    before: Own = st.session_state.get(_OWN, {}).get(page, {})
    return params(dataclasses.replace(get(), own={**before, **changes}))


def params(now: State) -> dict[str, str]:
    """The address parameters of a state."""
    shared = ("dataset", "history", "user", "variant", "shows_a", "models", "item")
    address = Address(k=str(now.k), **{name: getattr(now, name) for name in shared})
    return {**address.write(), **now.own}


def parse(parameters: Mapping[str, str], datasets: Sequence[str], open_zoo: OpenZoo, page: Page | None = None) -> State:
    """The state an address asks for; what it cannot have is left out and told in `problems`."""
    link = Address.read(parameters)
    problems: list[str] = []
    if link.version != VERSION:
        problems.append(f"This link was made by another version of Seqscope (form {short(link.version, 20)}).")
    name = datasets[0] if link.dataset is None else link.dataset
    if name not in datasets:
        problems.append(f"There is no dataset “{short(name)}” here; this is {_title(datasets[0], open_zoo)}.")
        return dataclasses.replace(default(datasets[0], open_zoo), problems=tuple(problems))
    try:
        models = open_zoo(name)
    except SeqscopeError:
        return State(dataset=name, problems=tuple(problems))
    now = default(name, open_zoo)
    changes: dict[str, object] = {}
    if link.history is not None:
        changes["history"] = _existing(models, link.history, "the history", problems)
    elif link.user is not None:
        history = examples.history_of(models, link.user)
        if history is None:
            problems.append(f"The link names the user “{short(link.user)}”, whom this dataset does not have.")
        else:
            changes.update(user=link.user, history=history)
    if link.variant is not None:
        variant = _existing(models, link.variant, "the edited history", problems)
        if variant or not link.variant:  # an empty one may be meant
            changes.update(variant=variant, shows_a=link.shows_a)
        else:
            problems[-1] += " None of its items is left, so there is no B."
    if link.length is None:
        problems.append(
            f"The link asks for lists of length “{short(link.k or '', 20)}”; possible is 1 to {MAX_K}. Here it is {DEFAULT_K}."
        )
    else:
        changes["k"] = link.length
    if link.models is not None:
        unknown = [short(model) for model in link.models if model not in models.bundles]
        if unknown:
            problems.append(
                f"The link names {count(len(unknown), 'model')} that this dataset does not have: {_some(unknown)}."
            )
        changes["models"] = tuple(model for model in models.bundles if model in link.models) or None
    if link.item is not None:
        problem = pages.is_item(link.item, models, {})
        if problem:
            problems.append(problem)
        else:
            changes["item"] = link.item
    changes["own"], unfit = pages.read(() if page is None else page.parameters, parameters, models)
    problems += unfit
    return dataclasses.replace(now, problems=tuple(dict.fromkeys(problems)), **changes)  # type: ignore[arg-type]


def _existing(models: Zoo, ids: Ids, name: str, problems: list[str]) -> Ids:
    """Those that the catalogue has, the latest of them. name: of the history, in a sentence."""
    missing = [short(item_id) for item_id in ids if models.position(item_id) is None]
    if missing:
        items = count(len(missing), "item")
        problems.append(f"The link names {items} in {name} that this dataset does not have: {_some(missing)}.")
    existing = tuple(item_id for item_id in ids if models.position(item_id) is not None)
    if len(existing) > MAX_HISTORY:
        problems.append(f"A history may have {MAX_HISTORY} items; the link's {len(existing):,} are cut to the latest.")
    return existing[-MAX_HISTORY:]


def _title(name: str, open_zoo: OpenZoo) -> str:
    """Of a dataset; its name where it cannot be opened."""
    try:
        return clean(open_zoo(name).info.title, 60)
    except SeqscopeError:
        return name


def _some(words: list[str]) -> str:
    quoted = ", ".join(f"“{word}”" for word in words[:10])
    return f"{quoted} and {len(words) - 10} more" if len(words) > 10 else quoted


def _front() -> State:
    datasets = _datasets()
    return default(datasets.names[0], datasets.open_zoo)


def _datasets() -> _Datasets:
    datasets: _Datasets = st.session_state[_DATASETS]
    return datasets


def _page_name() -> str:
    page: Page | None = st.session_state.get(_PAGE)
    return "" if page is None else page.name


def _read() -> dict[str, str]:
    return {name: st.query_params[name] for name in _ours() if name in st.query_params}


def _write(address: dict[str, str]) -> None:
    st.query_params.from_dict({**_others(), **address})


def _ours() -> Ids:
    page: Page | None = st.session_state.get(_PAGE)
    return PARAMETERS if page is None else (*PARAMETERS, *(parameter.name for parameter in page.parameters))


def _others() -> dict[str, list[str]]:
    """The parameters that are not the state's."""
    ours = _ours()
    return {name: st.query_params.get_all(name) for name in st.query_params if name not in ours}


def _remember() -> None:
    kept = st.session_state.get(_OWN, {})
    st.session_state[_OWN] = {**kept, _page_name(): get().own}


def _went_back() -> bool:
    """Whether the browser's back or forward button brought this address, where Streamlit says so."""
    return bool(getattr(get_script_run_ctx(suppress_warning=True), "is_history_navigation", False))


def _is_late(address: dict[str, str]) -> bool:
    """A quick second click is sent before the browser knows the address that the first one led to.

    How long that takes is up to the machine; it is over once the browser names the new address. Its back button may bring an
    earlier one before; `_went_back` tells that apart.
    """
    return not _went_back() and address in st.session_state.get(_UNHEARD, [])
