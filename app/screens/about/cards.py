"""The cards of data and models: Markdown, foreign text escaped."""

from collections.abc import Mapping
from typing import Any

from app.analysis import metrics
from app.analysis.model_card import abilities, day, known_words, split_words, writes
from app.analysis.recommend import SAME_FOR_EVERYBODY
from app.text import md, share_of_all, span
from engine.runtime import Bundle, DatasetInfo, repeats
from engine.runtime import protocols as naming
from engine.writing import count

LIMITS = (
    "Only held-out items count as relevant, one per user or a set. Other items that the user would have liked "
    "count as misses.",
    "Logs were recorded under whatever was recommended at the time, if anything was; all metrics are offline, none "
    "from an online experiment.",
    "Intervals cover the sample of users alone; another seed of the same training would move the metrics, too. That of the "
    "verdict covers trainings where a model has several seeds.",
    "Models know only the items they were trained on, unless their card says otherwise.",
    "Probabilities of items are the models' own estimates. Models trained with sampled negatives are overconfident.",
    "Answers are computed on the server with the exported graphs, which agree with the trained model up "
    "to rounding (see the cards).",
)


def data_card(info: DatasetInfo) -> dict[str, str]:
    """Term → Markdown."""
    counts, lengths = info.counts, info.lengths
    users = f"{counts.get('users', 0):,}{', **simulated**' if info.simulated else ', real'}"
    log = {
        "Events": f"{counts.get('events', 0):,}, of which {counts.get('train', 0):,} for training",
        "Held out": f"{_held_out(info, 'valid')} to validate, {_held_out(info, 'test')} to test",
        "Per user": (
            f"{lengths.get('min', 0):,.0f} to {lengths.get('max', 0):,.0f} events, median {lengths.get('median', 0):,g}, "
            f"mean {lengths.get('mean', 0):,.1f}"
        ),
        "Sparsity": f"{share_of_all(info.sparsity, 2)} of all pairs of user and item unobserved",
        "Time": _time(info.time),
        "Split": md(split_words(info.split)),
        "Repeats": md(repeats.meaning(info.repeats, info.measured)),
    }
    return {
        "Source": source(info)[0],
        "Licence": md(info.licence, 2_000),
        "Users": users if counts.get("events") else "none: a catalogue without a log",
        "Items": f"{counts.get('items', 0):,}",
        **(log if counts.get("events") else {}),
        "Left out": md("; ".join(f"{number:,} × {reason}" for reason, number in info.left_out.items()) or "nothing"),
        "Attributes": md(", ".join(info.attributes) or "none", 1_000),
        "Made": md(f"{info.created[:10]} by {info.created_by}"),
        "Fingerprint": f"`{info.fingerprint}`",
    }


def source(info: DatasetInfo) -> list[str]:
    """Where the log comes from, then what to bear in mind about it, each as Markdown."""
    return [md(line, 2_000) for line in info.source[:10_000].splitlines() if line.strip()] or [""]


def model_card(bundle: Bundle) -> dict[str, str]:
    """Term → Markdown."""
    said = bundle.manifest
    made, check = said.training, said.check
    can = [ability.words for ability in abilities(bundle) if ability.cannot is None]
    read = said.encoder.max_length
    still = f"; {bundle.unsettled}" if bundle.unsettled else ""
    chosen = "as validation had selected" if said.refitted else f"best: {made.best_epoch:,}{still}"
    size = count(made.parameters, "parameter") if made.parameters else "nothing learned by gradient"
    if said.index.kind != "identity" and said.family not in SAME_FOR_EVERYBODY:  # these have no vectors
        size += f", {'embedding' if said.generator is None else 'hidden'} size {said.encoder.dim:,}"
    card = {
        "Paper": md(said.paper, 2_000),
        "Reads": "nothing: it recommends the same to everybody"
        if said.family in SAME_FOR_EVERYBODY
        else ("the last item" if read == 1 else f"the latest {read:,} items")
        + ("" if said.capabilities.reads_order else ", but not their order")
        + ("" if said.encoder.min_history else ", and answers an empty history"),
        "Recommends": "items that are not in the history"
        if bundle.excludes_history
        else "items of the history, too: repeats count",
        "Size": size,
        "Trained": md(
            ("" if said.zero_shot is None else f"not on this dataset, but on {said.zero_shot.title}: ")
            + f"{count(made.epochs, 'epoch')} ({chosen}), seed {made.seed}, {span(made.seconds)} on {made.device}"
            if made.epochs
            else "not at all: it compares texts of items"
            if said.sentence is not None
            else f"counted once over the log, on {made.device}"
        ),
        **_refit(bundle),
        **_carried(bundle),
        **_folded(bundle),
        **({"Known words": md(words)} if (words := known_words(said.unknown)) else {}),
        "Can show": md(", ".join(can) or "its recommendations"),
        "ONNX parity" if "encoder.onnx" in said.files else "Parity": (
            f"{f'{check.max_abs_difference:.0e}' if check.max_abs_difference else 'no difference'} from the trained model, on "
            f"{count(check.histories, 'history', 'histories')}"
        ),
        "Made": md(f"{said.created[:10]} by {said.created_by}, commit {(made.commit or 'unknown')[:10]}"),
    }
    return card | {term: md(words) for term, words in writes(bundle).items()}


def _refit(bundle: Bundle) -> dict[str, str]:
    """What a refit was fitted on; nothing of other models, which were fitted on training events."""
    if not bundle.manifest.refitted:
        return {}
    words = f"{bundle.manifest.training.fitted_on} events, after validation had selected it"
    return {"Fitted on": md(f"{words}; judged under “{naming.title(bundle.protocol)}” alone")}


def _carried(bundle: Bundle) -> dict[str, str]:
    """Where a model comes from that was not trained on this dataset, or whose vectors it compares, where it was not trained."""
    about, asks = bundle.manifest.zero_shot, bundle.manifest.sentence
    if about is not None:
        cut = f"; of {count(about.cut, 'item')} not all words are read" if about.cut else ""
        return {"Zero-shot": md(f"answers without any training on this dataset{cut}", 1_000)}
    if asks is not None:
        without = f"; {count(asks.without, 'item')} without any" if asks.without else ""
        return {"Words": md(f"{', '.join(asks.fields)}, by {asks.title}{without}", 1_000)}
    return {}


def _folded(bundle: Bundle) -> dict[str, str]:
    """What a model with vectors of training users loses without them, as pages ask it; nothing where it was not measured both
    ways."""
    folded, learnt = (
        bundle.manifest.metrics.get(protocol, {}).get("NDCG@10")
        for protocol in (bundle.protocol, metrics.variant(bundle.protocol, metrics.USERS))
    )
    if folded is None or learnt is None:
        return {}
    words = f"NDCG@10 {folded:.4f} from the history alone, as pages do; {learnt:.4f} with these users' vectors learnt in training"
    return {"User vectors": f"{words} ({md(naming.title(bundle.protocol))})"}


def cannot(bundle: Bundle) -> list[str]:
    """What the model cannot do and why, as Markdown."""
    reasons = {ability.words: ability.cannot for ability in abilities(bundle)}
    return [f"**{words[0].upper()}{words[1:]}** — {md(reason, 1_000)}" for words, reason in reasons.items() if reason]


def _held_out(info: DatasetInfo, part: str) -> str:
    users = info.counts.get(part, 0)
    items = count(info.split.get(f"{part}_items", users), "item")
    return f"{items} of {count(users, 'user')}" if info.sets else f"{users:,}"


def _time(times: Mapping[str, Any]) -> str:
    if times.get("unit") == "none":
        return "none, and no order: a user's items are a set"
    if times.get("unit") == "order" or times.get("first") is None or times.get("last") is None:
        return "the order of events alone"
    first, last = (day(times[end]) for end in ("first", "last"))
    ties, unit = times.get("ties", 0), times.get("unit", "time")
    shared, them = ("shares its", "it") if ties == 1 else ("share their", "them")
    return md(f"{first} to {last}; {count(ties, 'event')} {shared} {unit} with the event before {them}")
