"""The check of an upload and what it found: everything at once; then it is used, with or without the bad rows, or mended."""

from collections.abc import Callable

import streamlit as st

from app import guard
from app.components import widgets
from app.screens.your_data import upload_words as views
from app.screens.your_data.upload_file import Draft
from app.server import downloads
from app.store.records import MAX_NAME
from app.text import clean, md
from app.uploads import OnProgress, files
from engine.errors import SeqscopeError
from engine.tabular.findings import SHOWN, CheckResult, HeldOut
from engine.tabular.reading import FileKind, Reading
from engine.writing import count


def show(draft: Draft, use: Callable[[str], None], discard: Callable[[], None]) -> None:
    stopped = any(draft.guesses[kind].stop or reading.faults(kind) for kind, reading in draft.readings.items())
    stopped = stopped or set(draft.names) != set(draft.readings)  # a file that could not be read is not passed over
    if draft.checked is None:
        with st.container(horizontal=True, gap="small"):
            st.button(
                "Check",
                key=draft.key("check"),
                type="primary",
                icon=":material/fact_check:",
                disabled=stopped,
                help="Looks at every row; nothing is used yet",
                on_click=guard.callback(_check, draft, dict(draft.readings)),
            )
            st.button("Start over", key=draft.key("discard"), on_click=guard.callback(discard))
        if draft.fault:
            st.error(md(draft.fault, 1_000), icon=":material/error:")
        return
    st.subheader("What was found", anchor=False)
    _found(draft, draft.checked)
    _go_on(draft, draft.checked, use, discard)


def _check(draft: Draft, readings: dict[FileKind, Reading]) -> None:
    def check(say: OnProgress) -> None:
        try:
            draft.checked = files.check(
                draft.folder, readings, draft.bounded(), known=draft.known, owner=draft.owner, on_progress=say
            )
        except SeqscopeError as error:
            draft.fault = guard.shown(error)

    draft.changed()
    draft.todo, draft.doing = check, "Checking"


def _found(draft: Draft, checked: CheckResult) -> None:
    for words in views.kept_words(checked):
        st.markdown(md(words))
    if checked.held_out is not None and checked.held_out.cases and not checked.stopped:
        _held_out(draft, checked, checked.held_out)
    if not checked.counts:
        st.success("Nothing is wrong.", icon=":material/check_circle:")
        return
    for words in views.stops(checked):
        st.error(md(words, 600), icon=":material/block:")
    bad, warnings = views.problem_lines(checked, "bad"), views.problem_lines(checked, "warning")
    dropped = views.problem_lines(checked, "warning", dropped=True)
    if bad:
        st.markdown(f":material/error: **{md(count(checked.bad_rows, 'row'))} cannot be used**")
        st.markdown(_listed(bad))
    if dropped:
        st.markdown(":material/filter_alt: **Not used**")
        st.markdown(_listed(dropped))
    if warnings:
        st.markdown(":material/warning: **Used, with warnings**")
        st.markdown(_listed(warnings))
    more = f"the first {SHOWN} of {checked.findings:,}" if checked.findings > SHOWN else f"all {checked.findings:,}"
    with st.expander(f"Findings line by line: {more}", key=draft.key("findings")):
        if words := views.listed_words(checked):
            st.caption(md(words))
        widgets.table(
            views.findings_table(checked),
            column_config={
                "File": st.column_config.TextColumn(width="small"),
                "Line": st.column_config.NumberColumn(width="small", format="localized"),
                "": st.column_config.TextColumn(width="small"),
            },
            alt="Findings with line, column, value, problem and what to do",
            key=draft.key("lines"),
        )
        with st.container(horizontal=True, gap="small"):
            for ending, mime in (("csv", "text/csv"), ("parquet", "application/vnd.apache.parquet")):
                path = draft.folder / f"findings.{ending}"
                label = f"{checked.listed:,} as {'CSV' if ending == 'csv' else 'Parquet'}"
                name = f"seqscope-findings.{ending}"
                downloads.button(label, path, name, mime, key=draft.key("findings", ending))


def _held_out(draft: Draft, checked: CheckResult, held_out: HeldOut) -> None:
    """What is special about held-out items, before any model is judged on them, and what may be done about it."""
    reading = draft.readings["log"]
    counted, *advice = views.held_out_words(held_out, reading)
    st.markdown(md(counted, 500))
    if advice:
        st.warning(md(" ".join(advice), 1_000), icon=":material/rule:")
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        for offer in views.offers(held_out, reading):
            key = draft.key("offer", offer.field)
            st.session_state[key] = offer.chosen
            st.checkbox(offer.label, key=key, help=offer.help, on_change=guard.callback(_choose, draft, offer, key))
        ratings = views.minimum_ratings(checked, reading)
        if ratings:
            key = draft.key("offer", "min_rating")
            st.session_state[key] = reading.min_rating
            st.selectbox(
                "Minimum rating", ratings, key=key, width=180, filter_mode=None, placeholder="none",
                format_func=lambda rating: "none" if rating is None else f"{rating:g}",
                on_change=guard.callback(_rate, draft, key, ratings),
            )  # fmt: skip


def _choose(draft: Draft, offer: views.Offer, key: str) -> None:
    _check_anew(draft, **{offer.field: offer.on if st.session_state.get(key) else offer.off})


def _rate(draft: Draft, key: str, ratings: list[float | None]) -> None:
    rating = st.session_state.get(key)
    _check_anew(draft, min_rating=rating if rating in ratings else None)


def _check_anew(draft: Draft, **changes: str | bool | float | None) -> None:
    """The counts that follow are those of the log as it would be used."""
    draft.readings["log"] = draft.readings["log"].model_copy(update=changes)
    _check(draft, dict(draft.readings))


def _listed(lines: list[tuple[str, str]]) -> str:
    return "\n".join(f"- **{md(head, 300)}.** {md(advice, 600)}" for head, advice in lines)


def _go_on(draft: Draft, checked: CheckResult, use: Callable[[str], None], discard: Callable[[], None]) -> None:
    if checked.stopped:
        with st.container(horizontal=True, gap="small"):
            if views.log_stops_alone(checked):
                readings: dict[FileKind, Reading] = {"catalogue": draft.readings["catalogue"]}
                st.button(
                    "Go on with the catalogue alone", key=draft.key("alone"), type="primary",
                    on_click=guard.callback(_check, draft, readings),
                )  # fmt: skip
            st.button("Start over", key=draft.key("discard"), on_click=guard.callback(discard))
        return
    words = views.left_out_words(checked)
    if words:
        st.markdown(md(f"If you go on, {words[:1].lower()}{words[1:]}", 2_000))
    if not draft.of:
        with st.container(width=420):
            st.text_input("Title", key=draft.key("title"), max_chars=MAX_NAME, placeholder=draft.title)
    label = f"Use it without the {count(checked.bad_rows, 'bad row')}" if checked.bad_rows else "Use it"
    with st.container(horizontal=True, gap="small"):
        st.button(
            label, key=draft.key("use"), type="primary", icon=":material/check:", on_click=guard.callback(_take, use, draft),
        )  # fmt: skip
        st.button("Start over", key=draft.key("discard"), on_click=guard.callback(discard))
    st.caption(md(f"The dataset will have {views.usable_words(checked)}."))


def _take(use: Callable[[str], None], draft: Draft) -> None:
    use(clean(st.session_state.get(draft.key("title")) or "", MAX_NAME) or draft.title)
