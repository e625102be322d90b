"""What each model can do with a dataset: which answer at once, which have to be trained, and why."""

from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from app import home, work
from app.analysis import floor, model_card
from app.jobs import kinds
from app.store.records import StoredDataset
from app.text import md, together
from engine.cards import Declaration, declarations, kind_of, place
from engine.files import read_json
from engine.runtime import judge, protocols
from engine.writing import count

_COUNTS = "Interactions are counted, so a log is needed."
_COMPARES = "Items' texts are compared; nothing is learned from interactions."
_NUMBERS = "Items are known by their ids alone; all about them is learned from a log."
_ATTRIBUTES = "Items are known by their ids and attributes; all about them is learned from a log."
_WRITES = "The semantic ID of the next item is generated; which one follows is learned from a log."
_LEARNED = "Trained on your log."
_COUNTED = "No training needed: counted from your log."
_TASTE = "Items' texts are read already; what users choose next is learned from a log."
_GIVEN = "Read from the file that you added."


AT = 10
"""Places of a list that figures are about."""


class Able(NamedTuple):
    """One model."""

    name: str
    title: str
    words: str
    unsure: str = ""
    """Why its answers are to be taken with care, in a sentence."""


def show(owner: str, dataset: StoredDataset) -> None:
    exports = home.here().dataset(owner, dataset.id).exports
    if words := baseline_words(exports):
        st.markdown(f":material/leaderboard: {words}")
    now, codes, later = answering(exports), identifiers(exports), waiting(exports, bool(dataset.rows_events))
    for able in (*now, *codes):
        if able.unsure:
            words = f"**{md(able.title, 60)}** may say little of this catalogue. {md(able.unsure)}"
            st.warning(words, icon=":material/spellcheck:")
    if not work.has_words(owner, dataset.id):
        st.caption(
            "Of the items ids alone are known: models that read texts, and semantic IDs made of texts, are left out."
        )
    need = count(len(later), "needs", "need")
    label = f"{count(len(now), 'model answers', 'models answer')} now, {need} training: which, and why"
    with st.expander(label, key=f"data_able_{dataset.id}", icon=":material/fact_check:"):
        for heading, icon, some in (
            ("At once", ":material/check_circle:", now),
            ("Semantic IDs", ":material/tag:", codes),
            ("After training", ":material/school:", later),
        ):
            if some:
                st.markdown(f"**{heading}**")
            for titles, words in together((able.title, able.words) for able in some):
                st.caption(f"{icon} **{md(titles, 1_000)}** – {md(words, 300)}")
        if now:
            st.page_link(
                "screens/about/page.py", label="Cards of the models that answer now, with their bundles to take away",
                icon=":material/info:", query_params={"ds": dataset.id},
            )  # fmt: skip


def baseline_words(exports: Path) -> str:
    """How well the models that need no training do, the best first; "" where none was evaluated."""
    about = read_json(exports / "dataset.json")
    protocol = protocols.main(about.get("repeats"), about.get("split", {}).get("kind"))
    metric = judge.key(judge.HEADLINE, AT)
    figures = []
    for path in exports.glob("*/manifest.json"):
        manifest = read_json(path)
        if floor.needs_training(str(manifest.get("family"))):
            continue
        figure = manifest.get("metrics", {}).get(protocol, {}).get(metric)
        if isinstance(figure, float):
            figures.append((figure, md(str(manifest.get("title") or path.parent.name), 60)))
    if not figures:
        return ""
    (best, title), *others = sorted(figures, reverse=True)
    words = [f"**{title}** {best:.4f}", *(f"{title} {figure:.4f}" for figure, title in others)]
    people = count(int(about.get("counts", {}).get("test", 0)), "held-out item")
    return f"Without any training, {metric} over {people}: {', '.join(words)}. Metrics has the intervals."


def answering(exports: Path) -> list[Able]:
    """The models that answer now."""
    able = []
    manifests = {path.parent.name: read_json(path) for path in exports.glob("*/manifest.json")}
    for name, manifest in sorted(manifests.items(), key=lambda entry: (_place(entry[1]), entry[0])):
        carried = manifest.get("zero_shot")
        if carried:
            words = f"Zero-shot: trained on {carried.get('title', 'other data')}, items' texts are read."
        elif manifest.get("sentence"):
            words = "No training needed: items with similar texts are recommended."
        else:
            words = _LEARNED if floor.needs_training(str(manifest.get("family"))) else _COUNTED
        part = manifest.get("text") or manifest.get("sentence")
        able.append(_able(name, manifest, words, part.get("unknown") if isinstance(part, dict) else None))
    return able


def _place(manifest: dict[str, Any]) -> tuple[int, int]:
    """In lists."""
    able, order = manifest.get("capabilities"), manifest.get("order")
    kind = kind_of(
        str(manifest.get("family")),
        writes=bool(manifest.get("generator")),
        reads=bool(manifest.get("text") or manifest.get("sentence")),
        ordered=not isinstance(able, dict) or able.get("reads_order", True) is not False,
    )
    return place(kind, order if isinstance(order, int) else 0)


def _able(name: str, about: dict[str, Any], words: str, unknown: object) -> Able:
    """With how many words it knows, where it says so."""
    heard = model_card.known_words(unknown)
    title = str(about.get("title") or name)
    return Able(name, title, f"{words} {heard}".strip(), heard if model_card.too_few_known(unknown) else "")


def identifiers(exports: Path) -> list[Able]:
    """The tokenizers that gave the items codes."""
    return [
        _able(
            path.parent.name,
            about,
            _GIVEN if about.get("tokenizer") == "index" else "Made semantic IDs of the items' texts.",
            about.get("unknown"),
        )
        for path in sorted(exports.glob("identifiers/*/about.json"))
        for about in [read_json(path)]
    ]


def waiting(exports: Path, has_log: bool) -> list[Able]:
    """The models that have not learned anything from this dataset yet."""
    mend = "Train below." if has_log else "Add a log to train."
    soon = mend if has_log else "Add a log: then it takes seconds."
    models = kinds.models()
    untrained = [
        Able(name, model.title, f"{_why(model.declaration)} {soon if model.page.at_once else mend}")
        for name, model in models.items()
        if name != kinds.UNASKED and not (exports / name / "manifest.json").is_file()
    ]
    # they take hours, and several runs before them
    mend = f"{'Train' if has_log else 'With a log, train'} on the command line (seqscope train)."
    large = [
        Able(variant.name, variant.title, f"{_WRITES} {mend}")
        for declaration in declarations().models.values()
        if "identifiers" in declaration.needs
        for variant in declaration.card.variants
        if variant.name not in models
    ]
    return [*untrained, *large]


def _why(model: Declaration) -> str:
    """What it has to do before it answers."""
    if not model.learns:
        return _COUNTS if model.needs_log else _COMPARES
    if "identifiers" in model.needs:
        return _WRITES
    if model.unseen_items:
        return _TASTE
    return _ATTRIBUTES if "attributes" in model.needs else _NUMBERS
