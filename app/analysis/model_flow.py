"""How a model comes from a history to its list, step by step: what its bundle declares, with the numbers of this history."""

from typing import NamedTuple

from app.analysis.recommend import SAME_FOR_EVERYBODY, TopK, contributions
from app.analysis.semantic_ids import NONE, spelled
from app.styles import titled
from app.text import clean, listed, percent
from engine.runtime import Bundle, Contributions, Zoo
from engine.writing import count


class FlowStep(NamedTuple):
    """One box of the diagram; texts are not escaped."""

    title: str
    detail: str


def steps(models: Zoo, name: str, history: tuple[int, ...], top: TopK) -> list[FlowStep]:
    """From the history to the first item of the list. top: what the model recommends."""
    bundle = models.bundles[name]
    about = bundle.manifest
    if about.family in SAME_FOR_EVERYBODY:
        return [
            FlowStep("History", "Not read."),
            FlowStep("Counts", "How often each item was chosen."),
            _list(models, top),
        ]
    read = tuple(history[place] for place in bundle.used(history))
    if about.generator is not None:
        middle = _generative(models, bundle, read, len(top.items))
    elif about.index.kind == "identity" and about.training.parameters:
        middle = [FlowStep("Network", f"A learned network scores each of {about.num_items:,} items.")]
    elif about.index.kind == "identity":
        item = int(top.items[0]) if len(top.items) else None
        middle = _counted(bundle, read, None if item is None else contributions(models, name, history, item))
    else:
        middle = _dense(bundle)
    return [_history(bundle, history, read), *middle, _list(models, top)]


def _history(bundle: Bundle, history: tuple[int, ...], read: tuple[int, ...]) -> FlowStep:
    if len(read) == 1:
        return FlowStep("History", "1 item." if len(history) == 1 else f"The last of {len(history):,} items.")
    which = (
        f"The latest {len(read)} of {len(history):,} items" if len(read) < len(history) else count(len(read), "item")
    )
    order = "in no order" if bundle.cannot("reads_order") is not None else "oldest first"
    if bundle.manifest.text is not None:
        order = "newest first"
    return FlowStep("History", f"{which}, {order}.")


def _list(models: Zoo, top: TopK) -> FlowStep:
    if not len(top.items):
        return FlowStep("List", "Nothing is left to recommend.")
    probability = "" if top.share is None else f", {percent(top.share[0])}"
    return FlowStep("List", f"Best first: {clean(titled(models, int(top.items[0])), 60)}{probability}.")


def _generative(models: Zoo, bundle: Bundle, read: tuple[int, ...], k: int) -> list[FlowStep]:
    writes = bundle.manifest.generator
    assert writes is not None
    codes = bundle.identifiers.codes[read[-1]].tolist() if read else []
    example = f", the last one {spelled([code for code in codes if code != NONE])}" if codes else ""
    network = f"{count(writes.layers, 'layer')} of {count(writes.heads, 'head')}"
    decoder = (
        f"An encoder reads these codes; a decoder ({network}) generates new ones."
        if writes.kind == "encoder-decoder"
        else f"One transformer ({network}) generates new ones."
    )
    width, ids = bundle.beam(k), f"the IDs of {len(models):,} items"
    return [
        FlowStep("Semantic IDs", f"Each item is {count(writes.levels, 'code')}{example}."),
        FlowStep("Generate", decoder),
        FlowStep("Exact scores", f"The probabilities of {ids}.")
        if width is None
        else FlowStep("Beam search", f"Width {width}, constrained to {ids}."),
    ]


def _counted(bundle: Bundle, read: tuple[int, ...], parts_of_first: Contributions | None) -> list[FlowStep]:
    """parts_of_first: of the score of the list's first item."""
    entries = bundle.manifest.item_to_item
    weights = f"{entries.entries:,} counted weights" if entries is not None else "counted weights"
    parts = "its row of weights" if len(read) == 1 else f"the weighted sum of the rows of {len(read)} items"
    bias = ", and the item's own bias" if parts_of_first is not None and parts_of_first.prior else ""
    return [
        FlowStep("Item-to-item", f"A table of {weights} between pairs of items."),
        FlowStep("Sum", f"The score of an item is {parts}{bias}."),
    ]


def _dense(bundle: Bundle) -> list[FlowStep]:
    about = bundle.manifest
    dim = about.encoder.dim
    if about.text is not None:
        words = f"{listed(about.text.fields)} of each item, at most {about.text.max_tokens} tokens."
        first = FlowStep("Words", words[0].upper() + words[1:])
    elif about.sentence is not None:
        first = FlowStep("Sentence vectors", f"The text of each item, read by {about.sentence.title}.")
    else:
        first = FlowStep("Embeddings", f"Each item is a vector of {dim} learned numbers.")
    if about.graph is not None:
        people = f"{about.graph.people:,} users and {about.graph.edges:,} interactions"
        second = FlowStep(
            "Graph",
            f"A new user is linked to these items in a graph of {people}; {count(about.graph.layers, 'layer')}.",
        )
    elif about.attention is not None:
        sees = "those before it" if about.attention.causal else "all others"
        network = f"{count(about.attention.layers, 'layer')} of {count(about.attention.heads, 'head')}"
        mask = " [MASK] stands where the next item will be." if about.attention.next_token else ""
        second = FlowStep("Self-attention", f"{network}; each item looks at {sees}.{mask}")
    elif about.sentence is not None and not about.training.parameters:
        second = FlowStep("Sum", "The weighted sum of the vectors of the items that are read; nothing is learned.")
    else:
        second = FlowStep("Encoder", "A learned encoding of the items that are read.")
    return [
        first,
        second,
        FlowStep("Score", f"One query of {dim} numbers, compared with each of {about.num_items:,} items."),
    ]
