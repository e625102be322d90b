"""How a file is read and what its columns hold: guessed, said, and changed at will."""

import streamlit as st

from app import guard
from app.components import widgets
from app.screens.your_data import upload_file
from app.screens.your_data import upload_words as views
from app.screens.your_data.upload_file import Draft
from app.text import clean, distinct, md
from engine.tabular.reading import NEEDED, PATTERN, SEPARATORS, TIMES, FileKind, Reading, ReadingChoice, Role, Seen
from engine.writing import count

_NONE = ""
_ROLES: dict[FileKind, tuple[tuple[Role, str], ...]] = {
    "catalogue": (("item_id", "Item id"), ("title", "Title (optional)")),
    "log": (
        ("user", "User"),
        ("item", "Item"),
        ("time", "Time (optional)"),
        ("clock", "Time of day (optional)"),
        ("weight", "Rating or weight (optional)"),
        ("quantity", "Quantity (optional)"),
        ("title", "Item title (optional)"),
    ),
}
_KINDS: dict[Role, str] = {"text": "one value", "list": "several values", "flag": "yes or no"}
_LONGEST_NAME = 40
_PATTERN = "pattern"


def show(draft: Draft, kind: FileKind) -> None:
    guess, reading = draft.guesses[kind], draft.readings[kind]
    st.subheader(f"How the {kind} is read", anchor=False)
    choices = [choice for choice in guess.choices if choice.about != "columns"]
    open_ = bool(guess.stop or guess.foreign or [choice for choice in choices if choice.sure == "unsure"])
    if choices:
        with st.expander(md(views.summary(guess), 1_000), expanded=open_, key=draft.key("reading", kind, str(open_))):
            with st.container(horizontal=True, gap="medium"):
                for choice in choices:
                    with st.container(width=230, gap="xsmall"):
                        _choice(draft, kind, choice)
            if guess.foreign:
                st.caption("The lines that encodings read differently:")
                widgets.table(views.foreign_table(guess), alt="Lines as each encoding reads them")
            if guess.head:
                st.caption("The first lines as they stand:")
                st.code("\n".join(clean(line, 160) for line in guess.head), language=None, wrap_lines=True)
    if guess.stop:
        st.error(md(guess.stop, 500), icon=":material/view_column:")
        return
    _columns(draft, kind, reading, {seen.name: seen for seen in guess.seen})


# --- encoding, delimiter, quotes, header, times


def _choice(draft: Draft, kind: FileKind, choice: ReadingChoice) -> None:
    key = draft.key("choice", kind, choice.about)
    options = views.options(choice)
    if choice.about == "time":
        options.append(_PATTERN)
    st.session_state[key] = choice.value
    st.selectbox(
        views.ABOUT[choice.about],
        options,
        format_func=lambda value: "another pattern …" if value == _PATTERN else views.called(choice.about, str(value)),
        key=key,
        filter_mode=None,
        on_change=guard.callback(_fix, draft, kind, choice.about, key, tuple(options)),
    )
    _sure(choice)
    if choice.about == "time" and draft.fixed.get(kind, {}).get("time") == _PATTERN:
        text = draft.key("pattern", kind)
        st.text_input(
            "Pattern",
            key=text,
            max_chars=60,
            placeholder="%d.%m.%Y %H:%M",
            help="%Y year, %m month, %d day, %H:%M:%S time, %b name of the month, %z zone",
            on_change=guard.callback(_fix, draft, kind, "time", text, None),
        )


def _sure(choice: ReadingChoice) -> None:
    words, colour = views.SURE[choice.sure]
    st.badge(words, color=colour)  # type: ignore[arg-type]
    st.caption(md(choice.why), width="content")


def _fix(draft: Draft, kind: FileKind, about: str, key: str, allowed: tuple[str, ...] | None) -> None:
    value = str(st.session_state.get(key) or "")
    if value == _PATTERN:
        draft.fixed.setdefault(kind, {})["time"] = _PATTERN  # the field for it appears
        return
    if allowed is None and not (value in TIMES or PATTERN.fullmatch(value)):
        draft.faults[kind] = "This is no pattern of times. Write it like %d.%m.%Y %H:%M."
        return
    if allowed is not None and value not in allowed:
        return
    fixed = {name: kept for name, kept in draft.fixed.get(kind, {}).items() if kept != _PATTERN}
    if about in ("encoding", "delimiter", "quote", "header"):  # what the columns are is told anew
        fixed = {name: kept for name, kept in fixed.items() if not name.startswith("role:") and name != "time"}
    upload_file.read(draft, kind, {**fixed, about: value})


# --- columns


def _columns(draft: Draft, kind: FileKind, reading: Reading, seen: dict[str, Seen]) -> None:
    guess = draft.guesses[kind]
    choice = guess.choice("columns")
    if choice is not None:
        complete = {*NEEDED[kind]} <= {column.role for column in guess.reading.columns}
        changed = any(name.startswith("role:") for name in draft.fixed.get(kind, {}))
        why = views.by_values(guess, reading) if choice.sure == "unsure" and complete else choice.why
        if why or not changed:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                _sure(choice.model_copy(update={"why": why or choice.why}))
    names = [column.name for column in reading.columns]
    called = distinct({name: views.column_words(name, seen) for name in names})
    with st.container(horizontal=True, gap="medium"):
        for role, label in _ROLES[kind]:
            column = reading.column(role)
            key = draft.key("role", kind, role)
            st.session_state[key] = column.name if column else _NONE
            with st.container(width=330):
                st.selectbox(
                    label,
                    [_NONE, *names],
                    format_func=lambda name: called.get(str(name), "none"),
                    key=key,
                    on_change=guard.callback(_map, draft, kind, role, key),
                )
    if kind == "catalogue" or (reading.column("title") is not None and "catalogue" in draft.kinds):
        if "catalogue" not in draft.names:
            st.caption(
                "The catalogue is made of the log: of each item, the title and the attributes that it has most often."
            )
        _attributes(draft, kind, reading, seen)
    for fault in reading.faults(kind):
        st.warning(md(fault, 300), icon=":material/view_column:")
    with st.expander(f"All {count(len(names), 'column')} with their first values", type="compact"):
        widgets.table(
            views.columns_table(reading, draft.guesses[kind].seen),
            column_config={"Filled": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)},
            alt=f"Columns of the {kind}, three values of each, and what they are used as",
        )


def _map(draft: Draft, kind: FileKind, role: Role, key: str) -> None:
    name, reading = str(st.session_state.get(key) or _NONE), draft.readings[kind]
    before = reading.column(role)
    spare: Role = "text" if kind == "catalogue" else "skip"
    draft.changed()
    other: Role = spare
    if name == _NONE:
        for column in reading.columns:
            if column.role == role or (role == "time" and column.role == "clock"):
                reading = reading.with_role(column.name, spare)
    elif name in {column.name for column in reading.columns}:
        other = next(column.role for column in reading.columns if column.name == name)
        reading = reading.with_role(name, role)
        if before is not None and other in dict(_ROLES[kind]) and before.name != name:
            reading = reading.with_role(before.name, other)  # the two change places
    else:
        return
    draft.readings[kind] = reading
    if "clock" in (role, other) or ("time" in (role, other) and name != _NONE):
        roles = {f"role:{column.name}": column.role for column in reading.columns}
        choices = {name: value for name, value in draft.fixed.get(kind, {}).items() if name != "time"}
        upload_file.read(draft, kind, {**choices, **roles})


def _attributes(draft: Draft, kind: FileKind, reading: Reading, seen: dict[str, Seen]) -> None:
    taken = {column.name for role, _ in _ROLES[kind] if (column := reading.column(role))}
    names = [column.name for column in reading.columns if column.name not in taken]
    used = [column.name for column in reading.columns if column.role in _KINDS]
    called = distinct({column.name: clean(column.called or column.name, 40) for column in reading.columns})
    if not names:
        return
    key = draft.key("attributes", kind)
    st.session_state[key] = used
    st.multiselect(
        "Attributes",
        names,
        format_func=lambda name: called.get(name, name),
        key=key,
        placeholder="None",
        on_change=guard.callback(_use, draft, kind, key),
        help="What else is known about the items. Models read them as text; pages filter and colour by them.",
    )
    if used:
        with st.expander("What the attributes hold, and what they are called", type="compact"):
            for place, column in enumerate(reading.columns):
                if column.name in used:
                    _attribute(draft, kind, reading, place, seen)


def _attribute(draft: Draft, kind: FileKind, reading: Reading, place: int, seen: dict[str, Seen]) -> None:
    column = reading.columns[place]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width=260):
            st.markdown(f"**{md(column.name, 40)}**")
            samples = seen[column.name].samples if column.name in seen else ()
            st.caption(md(" · ".join(clean(value, 30) for value in samples) or "no values"))
        keys = {name: draft.key("attribute", kind, str(place), name) for name in ("role", "separator", "called")}
        st.session_state[keys["role"]] = column.role
        st.selectbox(
            "Holds", list(_KINDS), format_func=lambda role: _KINDS.get(role, str(role)), key=keys["role"], width=170,
            on_change=guard.callback(_change, draft, kind, place, "role", keys["role"]), filter_mode=None,
        )  # fmt: skip
        if column.role == "list":
            st.session_state[keys["separator"]] = column.separator
            st.selectbox(
                "Between them", list(SEPARATORS), format_func=lambda sign: SEPARATORS.get(sign, str(sign)), width=160,
                key=keys["separator"], filter_mode=None,
                on_change=guard.callback(_change, draft, kind, place, "separator", keys["separator"]),
            )  # fmt: skip
        st.session_state[keys["called"]] = column.called
        st.text_input(
            "Called", key=keys["called"], max_chars=_LONGEST_NAME, placeholder=clean(column.name, 40), width=200,
            on_change=guard.callback(_change, draft, kind, place, "called", keys["called"]),
        )  # fmt: skip


def _use(draft: Draft, kind: FileKind, key: str) -> None:
    used = set(map(str, st.session_state.get(key) or ()))
    reading = draft.readings[kind]
    guessed = {column.name: column.role for column in draft.guesses[kind].reading.columns}
    for column in reading.columns:
        if column.name in used and column.role == "skip":
            role = guessed.get(column.name, "text")
            reading = reading.with_role(column.name, role if role in _KINDS else "text")
        elif column.name not in used and column.role in _KINDS:
            reading = reading.with_role(column.name, "skip")
    draft.readings[kind] = reading
    draft.changed()


def _change(draft: Draft, kind: FileKind, place: int, entry: str, key: str) -> None:
    value = str(st.session_state.get(key) or "")
    allowed = {"role": tuple(_KINDS), "separator": tuple(SEPARATORS)}.get(entry)
    if allowed is not None and value not in allowed:
        return
    reading = draft.readings[kind]
    columns = list(reading.columns)
    columns[place] = columns[place].model_copy(
        update={entry: clean(value, _LONGEST_NAME) if entry == "called" else value}
    )
    draft.readings[kind] = reading.model_copy(update={"columns": tuple(columns)})
    draft.changed()
