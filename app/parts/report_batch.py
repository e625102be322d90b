"""Many histories at once: chosen or uploaded, answered by a process of its own, watched here."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import streamlit as st

from app import guard, home, state
from app.export import file_name
from app.reports.child import Child, Done, Failed, Running
from app.reports.histories import PEOPLE
from app.text import clean, count, md
from engine.errors import SeqscopeError
from engine.runtime import Zoo

_KEY = "report_batch"
_ENDINGS = ["csv", "tsv", "txt", "jsonl", "ndjson", "parquet", "gz"]
_FORMATS = {"parquet": "Parquet", "csv": "CSV"}


def show(models: Zoo) -> None:
    st.subheader("Many histories at once", anchor="batch")
    st.markdown(
        "Every chosen model's list for each of many histories, as one table: history, model, rank, item, score. "
        "Histories are read from CSV, TSV, JSON lines, Parquet or text: one event per row (user, item and time), or one history "
        "per row."
    )
    run: Child | None = st.session_state.get(_KEY)
    if run is None:
        _ask(models)
    elif isinstance(run.state(), Running):
        st.fragment(_watch, run_every=1.0)()
    else:
        _ended(run)


def _ask(models: Zoo) -> None:
    people = models.users.num_rows
    sources = {"file": "A file"}
    if people:
        sources = {"people": f"The {count(people, 'person', 'people')} of this dataset", **sources}
    source = st.segmented_control(
        "Histories",
        list(sources),
        default=next(iter(sources)),
        required=True,
        format_func=lambda name: sources.get(name, name),
        key=f"report_batch_source_{len(sources)}",
    )
    upload = None
    if source == "file":
        upload = st.file_uploader("A file of histories", _ENDINGS, key="report_batch_file", max_upload_size=25)
    names = list(models.bundles)
    quick = [name for name in names if models.bundles[name].manifest.generator is None]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = st.multiselect(
            "Models",
            names,
            default=quick or names,
            format_func=lambda name: clean(models.bundles[name].manifest.title, 60) if name in names else name,
            key=f"report_batch_models_{models.info.name}",
            help="Models that write codes answer one history after the other, which takes much longer.",
        )
        form = st.segmented_control(
            "As",
            list(_FORMATS),
            default="parquet",
            required=True,
            format_func=lambda one: _FORMATS.get(one, one),
            key="report_batch_form",
        )
    titles = st.toggle("With titles", key="report_batch_titles")
    ready = bool(chosen) and (source != "file" or upload is not None)
    if st.button("Answer for all", key="report_batch_start", disabled=not ready, icon=":material/play_arrow:"):
        with guard.watch("the batch"):
            _start(models, upload, [name for name in names if name in chosen], form or "parquet", titles)
            st.rerun()
    st.caption(f"The first {state.get().k} items of each list; the length is set in the sidebar.")


def _start(models: Zoo, upload: Any, chosen: list[str], form: str, titles: bool) -> None:
    folder = home.stage()
    try:
        source = PEOPLE
        if upload is not None:  # under a name of ours: the client's says only how to read it
            ending = "".join(Path(upload.name).suffixes[-2:]).lower()
            kept = next((one for one in _endings() if ending.endswith(one)), ".csv")
            path = folder / f"histories{kept}"
            with path.open("wb") as file:
                upload.seek(0)
                while block := upload.read(1 << 20):
                    file.write(block)
            source = str(path)
        options = ["--models", *chosen, "-k", str(state.get().k), *(["--titles"] if titles else [])]
        name = file_name("seqscope", "lists", models.info.name, ending="csv" if form == "csv" else "parquet")
        st.session_state[_KEY] = Child.start(folder, models.path, source, name, options)
    except (SeqscopeError, OSError):
        home.discard(folder)
        raise


def _endings() -> list[str]:
    plain = [f".{one}" for one in _ENDINGS if one != "gz"]
    return [*(f"{one}.gz" for one in plain), *plain]


def _watch() -> None:
    run: Child | None = st.session_state.get(_KEY)
    found = run.state() if run is not None else None
    if not isinstance(found, Running):
        st.rerun()
    left = "" if found.left is None else f", about {_span(found.left)} left"
    if found.of:
        st.progress(min(found.done / found.of, 1.0), text=md(f"{found.words}: {found.done:,} of {found.of:,}{left}"))
    else:
        st.progress(0.0, text=md(f"{found.words} …"))
    st.button("Cancel", key="report_batch_cancel", on_click=guard.callback(_cancel), icon=":material/cancel:")


def _span(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 90 else f"{seconds / 60:,.0f} min"


def _ended(run: Child) -> None:
    found = run.state()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if isinstance(found, Done):
            st.success(md(found.words, 1_000), icon=":material/check:")
            st.download_button(
                f"Download {found.path.suffix[1:].upper()}",
                data=found.path.read_bytes,
                file_name=found.path.name,
                mime="text/csv" if found.path.suffix == ".csv" else "application/vnd.apache.parquet",
                key="report_batch_download",
                icon=":material/download:",
                on_click="ignore",
            )
        elif isinstance(found, Failed):
            st.error(md(found.words, 1_000), icon=":material/error:")
        st.button("Another batch", key="report_batch_again", on_click=guard.callback(_forget))


def _cancel() -> None:
    run: Child | None = st.session_state.get(_KEY)
    if run is not None:
        run.cancel()


def _forget() -> None:
    run: Child | None = st.session_state.pop(_KEY, None)
    if run is not None:
        run.cancel()
        with contextlib.suppress(SeqscopeError, OSError):
            home.discard(run.folder)
