"""Many histories at once: chosen or uploaded, answered by a job of their owner, watched here."""

from pathlib import Path
from typing import Any

import streamlit as st

from app import batches, guard, home, zoo
from app.components import jobs, sections, widgets
from app.export import file_name
from app.reports.histories import Look, people_words
from app.server import owner, received
from app.server.owner import Owner
from app.session import state
from app.store import records
from app.text import clean, distinct, md
from app.uploads.limits import UploadLimits
from engine.errors import SeqscopeError
from engine.runtime import Zoo
from engine.tabular.reading import MB

_ROLES = {"user": "User", "item": "Item, one per row", "items": "Items, a list per row", "time": "Time"}
_ENDINGS = ["csv", "tsv", "txt", "jsonl", "ndjson", "parquet", "gz"]


def show(models: Zoo) -> None:
    sections.heading("Many histories at once", anchor="batch")
    st.markdown(
        "Every chosen model's list for each of many histories, as one table: history, model, rank, item, score. "
        "Histories are read from CSV, TSV, JSON lines, Parquet or text: one event per row (user, item and time), or one history "
        "per row (user and a list of items)."
    )
    who = owner.get()
    if who is None:
        st.info("Such lists belong to your account: sign in first.", icon=":material/login:")
        return
    works = batches.of(who.id, state.get().dataset)
    jobs.batches_of(who.id, works)
    if all(work.over for work in works):
        _ask(who, models)


def _ask(who: Owner, models: Zoo) -> None:
    sources = {"file": "A file"}
    if models.users.num_rows:
        words = people_words(models)
        sources = {"people": words[0].upper() + words[1:], **sources}
    source = st.segmented_control(
        "Histories",
        list(sources),
        default=next(iter(sources)),
        required=True,
        format_func=lambda name: sources.get(name, name),
        key=f"report_batch_source_{len(sources)}",
    )
    upload, columns = None, None
    if source == "file":
        most = UploadLimits.of_environment().upload // MB
        upload = st.file_uploader("A file of histories", _ENDINGS, key="report_batch_file", max_upload_size=most)
        if upload is not None:
            received.hold(upload, "report_batch_file")
            columns = _columns(who.id, upload)
    names = list(models.bundles)
    quick = [name for name in names if models.bundles[name].manifest.generator is None]
    called = distinct({name: clean(bundle.manifest.title, 60) for name, bundle in models.bundles.items()})
    with st.container(horizontal=not widgets.on_phone(), vertical_alignment="bottom", gap="small"):
        chosen = st.multiselect(
            "Models",
            names,
            default=quick or names,
            format_func=lambda name: called.get(name, name),
            key=f"report_batch_models_{models.info.name}",
            help="Generative models answer one history after the other, which takes much longer.",
        )
        form = st.segmented_control(
            "As",
            list(batches.FORMS),
            default="parquet",
            required=True,
            format_func=lambda form: batches.FORMS.get(form, form),
            key="report_batch_form",
        )
    titles = st.toggle("With titles", key="report_batch_titles")
    ready = bool(chosen) and (source != "file" or columns is not None)
    if st.button("Generate lists", key="report_batch_start", disabled=not ready, icon=":material/play_arrow:"):
        with guard.watch("the batch"):
            ordered = [name for name in names if name in chosen]
            _start(who.id, models, upload, ordered, form or "parquet", titles, columns or {})
            st.rerun()
    st.caption(
        f"The first {state.get().k} items of each list; the length is set in the sidebar. What comes out is found here and on "
        f"*Your data*, {_kept(who)}."
    )


def _kept(who: Owner) -> str:
    if who.kind == "session":
        return "as long as this tab is open"
    if who.kind == "account":
        return "until you delete it"
    return f"for {records.kept_for()}"


def _columns(who: str, upload: Any) -> dict[str, str] | None:
    """Says how the file is read, and lets its columns be chosen: role → column; None where it cannot be read."""
    key = f"report_batch_{upload.file_id}"
    named: dict[str, str] = st.session_state.setdefault(f"{key}_columns", {})
    try:
        seen = _look(who, upload, named)
    except SeqscopeError as error:
        st.error(md(guard.shown(error), 1_000), icon=":material/error:")
        return None
    if seen.fault:
        st.error(md(seen.fault, 1_000), icon=":material/view_column:")
    else:
        st.caption(
            md(f"Read as {seen.columns}" if seen.columns else "Read as one history per line, item ids alone", 500)
        )
    if seen.samples:
        with st.expander("Columns", expanded=bool(seen.fault), key=f"{key}_expander"):
            _map(seen, named, key)
    return None if seen.fault else named


def _map(seen: Look, named: dict[str, str], key: str) -> None:
    """One column per role; what is not chosen is told by names and values."""
    columns = seen.columns
    guessed = {} if columns is None else {"user": columns.user, "time": columns.time}
    if columns is not None:
        guessed["item" if columns.per_row == "event" else "items"] = columns.items
    called = distinct({name: f"{clean(name, 40)}: {clean(sample, 60)}" for name, sample in seen.samples.items()})
    with st.container(horizontal=True, gap="small"):
        for role, label in _ROLES.items():
            widget = f"{key}_{role}"
            st.session_state[widget] = named.get(role) or guessed.get(role) or ""
            st.selectbox(
                label, ["", *seen.samples], key=widget, width=260,
                format_func=lambda name: called.get(name, "none"),
                on_change=guard.callback(_name, named, role, widget),
            )  # fmt: skip


def _name(named: dict[str, str], role: str, widget: str) -> None:
    named.pop(role, None)
    if role in ("item", "items"):  # a row is an event or a history
        named.pop("item" if role == "items" else "items", None)
        named.pop("time", None)
    if (column := st.session_state.get(widget)) or role in ("user", "time"):
        named[role] = str(column or "")


def _look(who: str, upload: Any, named: dict[str, str]) -> Look:
    """The file's first rows, read by a child; once for each choice of columns."""
    kept: dict[str, Look] = st.session_state.setdefault(f"report_batch_{upload.file_id}_seen", {})
    key = repr(sorted(named.items()))
    if key not in kept:
        folder, limits = home.here().stage(home.MADE), UploadLimits.of_environment()
        try:
            with st.spinner("Looking at the histories; other uploads may come first …", show_time=True):
                kept[key] = batches.look(folder, _write(upload, folder), named, limits, who)
        finally:
            home.here().discard(folder)
    return kept[key]


def _write(upload: Any, folder: Path) -> Path:
    """Under a name of ours: the client's says only how to read it."""
    ending = "".join(Path(upload.name).suffixes[-2:]).lower()
    path = folder / f"histories{next((suffix for suffix in _endings() if ending.endswith(suffix)), '.csv')}"
    with path.open("wb") as file:
        upload.seek(0)
        while block := upload.read(1 << 20):
            file.write(block)
    return path


def _start(
    who: str, models: Zoo, upload: Any, chosen: list[str], form: str, titles: bool, columns: dict[str, str]
) -> None:
    now, folder = state.get(), home.here().stage(home.MADE)
    try:
        if upload is not None:
            _write(upload, folder)
        batches.start(
            who, now.dataset, models.path, is_own=zoo.is_own(now.dataset), given=folder, models=chosen, k=now.k, form=form,
            titles=titles, name=file_name("seqscope", "lists", models.info.title, ending=form),
            columns=columns,
        )  # fmt: skip
    except (SeqscopeError, OSError):
        home.here().discard(folder)
        raise


def _endings() -> list[str]:
    plain = [f".{ending}" for ending in _ENDINGS if ending != "gz"]
    return [*(f"{ending}.gz" for ending in plain), *plain]
