"""Many histories at once: chosen or uploaded, answered by a job of their owner, watched here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from app import batches, guard, home, owner, state, zoo
from app.export import file_name
from app.owner import Owner
from app.parts import batch_jobs
from app.store.rows import keep_days
from app.text import clean, count
from app.uploads.limits import MB, Limits
from engine.errors import SeqscopeError
from engine.runtime import Zoo

_ENDINGS = ["csv", "tsv", "txt", "jsonl", "ndjson", "parquet", "gz"]


def show(models: Zoo) -> None:
    st.subheader("Many histories at once", anchor="batch")
    st.markdown(
        "Every chosen model's list for each of many histories, as one table: history, model, rank, item, score. "
        "Histories are read from CSV, TSV, JSON lines, Parquet or text: one event per row (user, item and time), or one history "
        "per row."
    )
    who = owner.get()
    if who is None:
        st.info("Such lists belong to your account: sign in first.", icon=":material/login:")
        return
    works = batches.of(who.id, state.get().dataset)
    batch_jobs.show(who.id, works)
    if all(one.over for one in works):
        _ask(who, models)


def _ask(who: Owner, models: Zoo) -> None:
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
        most = Limits.of_environment().upload // MB
        upload = st.file_uploader("A file of histories", _ENDINGS, key="report_batch_file", max_upload_size=most)
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
            list(batches.FORMS),
            default="parquet",
            required=True,
            format_func=lambda one: batches.FORMS.get(one, one),
            key="report_batch_form",
        )
    titles = st.toggle("With titles", key="report_batch_titles")
    ready = bool(chosen) and (source != "file" or upload is not None)
    if st.button("Answer for all", key="report_batch_start", disabled=not ready, icon=":material/play_arrow:"):
        with guard.watch("the batch"):
            _start(who.id, models, upload, [name for name in names if name in chosen], form or "parquet", titles)
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
    days = keep_days()
    return f"for {count(int(days), 'day') if days == int(days) else f'{days:g} days'}"


def _start(who: str, models: Zoo, upload: Any, chosen: list[str], form: str, titles: bool) -> None:
    now, folder = state.get(), home.stage()
    try:
        if upload is not None:  # under a name of ours: the client's says only how to read it
            ending = "".join(Path(upload.name).suffixes[-2:]).lower()
            kept = next((one for one in _endings() if ending.endswith(one)), ".csv")
            with (folder / f"histories{kept}").open("wb") as file:
                upload.seek(0)
                while block := upload.read(1 << 20):
                    file.write(block)
        batches.start(
            who, now.dataset, models.path, own=zoo.is_own(now.dataset), given=folder, models=chosen, k=now.k, form=form,
            titles=titles, name=file_name("seqscope", "lists", models.info.name, ending=form),
        )  # fmt: skip
    except (SeqscopeError, OSError):
        home.discard(folder)
        raise


def _endings() -> list[str]:
    plain = [f".{one}" for one in _ENDINGS if one != "gz"]
    return [*(f"{one}.gz" for one in plain), *plain]
