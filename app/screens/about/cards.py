"""What every metric and view means, in two sentences each, and the cards of data and models: Markdown, foreign text escaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.analysis import metrics
from app.analysis.model_card import abilities, day, known_words, split_words, writes
from app.text import count, md
from engine.runtime import STILL_IMPROVING, Bundle, DatasetInfo, judge, repeats


class Entry(NamedTuple):
    """A term, its meaning in two sentences, and where it comes from."""

    term: str
    meaning: str
    source: str


METRICS = (
    *(Entry(metric.title, metric.meaning, metric.source) for metric in judge.ACCURACY.values()),
    Entry(
        "Rank",
        "The place of the held-out item among the candidates, 1 is best. Equal scores share the mean of their places.",
        "Krichene & Rendle, KDD 2020, on why the candidates are the whole catalogue",
    ),
    Entry(
        "Outside the beam",
        "The share of held-out items that a beam of the given width did not write, in a full ranking by beam. They share the "
        "mean of the places that are left, so they count as missed in every list.",
        "after Rajput et al., NeurIPS 2023, who rank by beam search",
    ),
    *(Entry(metric.title, metric.meaning, metric.source) for metric in judge.BEYOND.values()),
    Entry(
        "95 % interval",
        "People are drawn anew, with replacement, 2,000 times, and the middle 95 % of the results is kept. "
        "It covers the choice of people, "
        "not the luck of one training run.",
        "Efron & Tibshirani 1993, chapter 13",
    ),
    Entry(
        "Paired comparison",
        "The difference of two models is taken for each person, then drawn anew in the same way. That is "
        "much sharper than comparing two "
        "intervals by eye.",
        "Efron & Tibshirani 1993",
    ),
    Entry(
        "Holm's correction",
        "With several comparisons at once, some look significant by chance; p-values are raised so that any "
        "false alarm stays below 5 %. "
        "It needs no assumption about how the comparisons depend on each other.",
        "Holm 1979",
    ),
)

CODES = (
    Entry(
        "Perplexity of codes",
        "2 to the power of the entropy of a level's codes over the items: as many codes, evenly used, would be as hard to guess. "
        "Divided by the number of codes (normalised) it is 1 where all are used alike; random codes come to a little less.",
        "Shannon 1948; as TIGER's and LETTER's code counts the use of codebooks",
    ),
    Entry(
        "Dead codes",
        "Codes that no item has. They cost room in the codebook and say nothing.",
        "van den Oord, Vinyals & Kavukcuoglu, NeurIPS 2017, on codebooks that collapse",
    ),
    Entry(
        "Items in excess",
        "Items minus different identifiers, divided by items: the collision rate as LETTER's code has it. A group of three "
        "counts two.",
        "Wang et al., CIKM 2024 (LETTER), generate_indices.py",
    ),
    Entry(
        "Items that share",
        "The share of items whose identifier is another one's as well. A group of three counts three, so it is higher than the "
        "excess and says for how many items a model's answer is a tie.",
        "Rajput et al., NeurIPS 2023 (TIGER), section 3.1 on collisions",
    ),
    Entry(
        "Reconstruction error",
        "The share of the variance of the items' vectors that cannot be recovered from the codes. 0 loses nothing; only "
        "tokenizers that quantise vectors have it.",
        "Zeghidour et al. 2021 and Lee et al., CVPR 2022 (residual quantisation)",
    ),
    Entry(
        "Neighbours alike",
        "Each item is matched with the nearest one by a sequence model's vectors, and the share of levels with the same code is "
        "averaged. By chance it is the mean over levels of the sum of squared shares of the codes.",
        "Wang et al., CIKM 2024 (LETTER), section 4.3.2, which gives no formula",
    ),
    Entry(
        "Lorenz curve and Gini of codes",
        "The least used codes first, the curve says which share of the items they have together; the diagonal is even use. Gini "
        "is twice the area between the two, 0 where all codes are used alike.",
        "Lorenz 1905; Gini 1912",
    ),
    Entry(
        "Tree of codes",
        "Every box is a prefix, as wide as it has items; the row below splits it by one more code. Its colour is the commonest "
        "value of its items, paler where that is a smaller share, or how often they are taken.",
        "Icicle plot: Kruskal & Landwehr, The American Statistician 1983",
    ),
    Entry(
        "Purity of prefixes",
        "Of the items that share their first codes with another one, the share that has the commonest category of its group. "
        "Small groups are pure by chance, so the same is shown with categories dealt out anew.",
        "Manning, Raghavan & Schütze 2008, section 16.3",
    ),
    Entry(
        "Popularity by code",
        "A mark for every code: how many items it has, and how often one of them is taken. Rare items squeezed into few codes "
        "show as marks far to the right and low.",
        "Seqscope's own",
    ),
    Entry(
        "Where the codes lie",
        "The vectors of a level's codes on their two principal axes, with clusters found in the full space. The axes show only "
        "the share of the variance that is written beneath.",
        "Pearson 1901; clusters as in LETTER's diversity term: Bradley, Bennett & Demiriz 2000",
    ),
    Entry(
        "Generation bias",
        "The shares of a level's codes in what people took, beside those in what a model put into its lists. The distance is the "
        "share that would have to move for both to be alike (total variation).",
        "Wang et al., CIKM 2024 (LETTER), on assignment bias of codes",
    ),
)

VIEWS = (
    Entry(
        "Lists side by side",
        "Each model's best items for the same history, with the probability that the model gives each of them (popularity and "
        "the Markov chain: counts over their sum; generative models: that of the semantic ID) and a bar relative to the list's "
        "first item. Scores of different models have different units and are never put on one scale.",
        "Pin and compare, after LIT: Tenney et al., EMNLP 2020",
    ),
    Entry(
        "What came next in the log",
        "People who have the last item of the history, or its last two directly one after the other where at least ten people "
        "do, are counted by the item that they had directly after it, held-out items included. It says what people did and not "
        "what a list should be: everybody has one next item and would have liked others, too.",
        "Seqscope's own; the counts of a first-order Markov chain, with those held out",
    ),
    Entry(
        "Rank-biased overlap",
        "How much two lists agree, the top counting more. At p = 0.9 the first ten places carry 86 % of the weight.",
        "Webber, Moffat & Zobel, TOIS 2010",
    ),
    Entry(
        "Beam",
        "A model that writes an item's codes keeps the likeliest beginnings at each step, a beam of them, and goes on from these "
        "alone; codes that continue no item's identifier are left out, and the rest share the probability. What the beam drops "
        "is never reached, so its list may differ from exact scores of all items.",
        "Sutskever, Vinyals & Le 2014; constrained: De Cao et al., ICLR 2021; on items: Rajput et al., NeurIPS 2023 (TIGER)",
    ),
    Entry(
        "Beam agreement@k",
        "How many of the k items with the highest exact probability a beam finds among its own first k. Exact scores come from "
        "writing the codes of every item of the catalogue.",
        "on what beams miss: Stahlberg & Byrne, EMNLP 2019",
    ),
    Entry(
        "Attention",
        "The shares in which a position mixes the others into itself; every row of the map sums to 1. It "
        "shows what was mixed, "
        "and does not prove why an item was recommended.",
        "Vaswani et al. 2017; Jain & Wallace 2019; Wiegreffe & Pinter 2019",
    ),
    Entry(
        "Rollout",
        "Attention followed through all layers, each taken as half residual and half attention, and "
        "multiplied. An approximation that "
        "leaves out the feed-forward layers and drifts towards early positions in causal models.",
        "Abnar & Zuidema, ACL 2020",
    ),
    Entry(
        "Attention of codes",
        "A model that reads items as codes attends between codes; grouped by item, what an item gets is the sum over its codes. "
        "While codes are written, each one looks back at the history: one column per written code, mean over heads.",
        "cross-attention: Vaswani et al. 2017; as TIGER has it: Rajput et al., NeurIPS 2023",
    ),
    Entry(
        "Attention to words",
        "A model that reads words looks from one place, before the first of them, at every word of the history; what an item or "
        "an attribute gets is the sum over its words. Longer texts may get more by their length alone, so a stroke marks what an "
        "item would get if every word got the same.",
        "Li et al., KDD 2023 (Recformer); one place that sees everything: Beltagy, Peters & Cohan 2020 (Longformer)",
    ),
    Entry(
        "Own words left out",
        "An attribute or a word of the item that is explained is removed, the model reads the item anew, and the change of its "
        "score is the effect. Later words move up, so it is the effect of another text and not of the word alone.",
        "Li, Monroe & Jurafsky 2016, on erasing words",
    ),
    Entry(
        "Leave-one-out",
        "An event is removed and the item ranked anew among what could be recommended after the whole history; the bar is the "
        "move of its rank on a log scale, as the level of all scores moves with the history, too. One event at a time; events "
        "that only matter together stay hidden.",
        "Li, Monroe & Jurafsky 2016",
    ),
    Entry(
        "Map",
        "Vectors drawn in two dimensions so that near ones stay near: a model's item vectors, or those of the spaces below. "
        "Distances between far groups and the axes mean nothing.",
        "McInnes, Healy & Melville 2018 (UMAP); trustworthiness: Venna & Kaski 2001",
    ),
    Entry(
        "Map of words",
        "Items drawn by vectors that a sentence encoder makes of their texts: near are items of which much the same is said. No "
        "history plays a part, so what lies together here but not on a model's map is what people do not take together.",
        "Reimers & Gurevych, EMNLP 2019; MiniLM: Wang et al., NeurIPS 2020",
    ),
    Entry(
        "Map of latents",
        "Items by what a tokenizer's encoder makes of them, before that is rounded to codes; near by Euclidean distance, as when "
        "it is rounded. Coloured by the first code, a map shows how well its codes follow where the items lie.",
        "Rajput et al., NeurIPS 2023 (TIGER), section 3.1; Zeghidour et al. 2021",
    ),
    Entry(
        "Map of codes",
        "The vectors of a tokenizer's codes, all levels on one map; the larger a mark, the more items have the code, and hollow "
        "ones nobody has. Levels after the first hold what is left over, so they lie apart and mean nothing on their own.",
        "van den Oord, Vinyals & Kavukcuoglu, NeurIPS 2017 (codebooks); Zeghidour et al. 2021 (residuals)",
    ),
    Entry(
        "An item's codes",
        "The path of an item through each tokenizer's tree, and the items that share its first codes. Those at the same last "
        "code cannot be told apart without a further number.",
        "Rajput et al., NeurIPS 2023 (TIGER)",
    ),
    Entry(
        "Neighbours",
        "The nearest items by exact comparison in the space itself, not on the map. Cosine or distance, as the model or the "
        "tokenizer itself compares; words by cosine.",
        "the model's paper",
    ),
)

LIMITS = (
    "The test asks for held-out items alone, one per person or a set. A list that would have pleased but missed them "
    "counts as a miss.",
    "Logs hold what people did under another system and its own recommendations; none of the numbers is "
    "the outcome of an experiment.",
    "Intervals cover the choice of people alone. Another seed of the same training would move the numbers, too.",
    "Models know only the items they were trained on, unless their card says otherwise.",
    "Probabilities of items are the models' own estimates. Models trained with sampled negatives are too sure of themselves.",
    "Answers are computed on the server with the exported graphs, which agree with the trained model up "
    "to rounding (see the cards).",
)


def data_card(info: DatasetInfo) -> dict[str, str]:
    """Term → Markdown."""
    counts, lengths = info.counts, info.lengths
    if not counts.get("events"):
        return {
            "Source": source(info)[0],
            "Licence": md(info.licence, 2_000),
            "People": "none: a catalogue without a log",
            "Items": f"{counts.get('items', 0):,}",
            "Left out": md(", ".join(f"{number:,} {reason}" for reason, number in info.left_out.items()) or "nothing"),
            "Attributes": md(", ".join(info.attributes) or "none", 1_000),
            "Made": md(f"{info.created[:10]} by {info.created_by}"),
            "Fingerprint": f"`{info.fingerprint}`",
        }
    card = {
        "Source": source(info)[0],
        "Licence": md(info.licence, 2_000),
        "People": f"{counts.get('users', 0):,}{', **simulated**' if info.simulated else ', real'}",
        "Items": f"{counts.get('items', 0):,}",
        "Events": f"{counts.get('events', 0):,}, of which {counts.get('train', 0):,} for training",
        "Held out": f"{counts.get('valid', 0):,} to validate, {counts.get('test', 0):,} to test",
        "Per person": (
            f"{lengths.get('min', 0):,.0f} to {lengths.get('max', 0):,.0f} events, median {lengths.get('median', 0):,.0f}, "
            f"mean {lengths.get('mean', 0):,.1f}"
        ),
        "Sparsity": f"{info.sparsity:.2%} of all pairs of person and item never met",
        "Time": _time(info.time),
        "Split": md(split_words(info.split)),
        "Repeats": md(repeats.meaning(info.repeats, info.measured)),
        "Left out": md(", ".join(f"{number:,} {reason}" for reason, number in info.left_out.items()) or "nothing"),
        "Attributes": md(", ".join(info.attributes) or "none", 1_000),
        "Made": md(f"{info.created[:10]} by {info.created_by}"),
        "Fingerprint": f"`{info.fingerprint}`",
    }
    return card


def source(info: DatasetInfo) -> list[str]:
    """Where the log comes from, then what to bear in mind about it, each as Markdown."""
    return [md(line, 2_000) for line in info.source[:10_000].splitlines() if line.strip()] or [""]


def model_card(bundle: Bundle) -> dict[str, str]:
    """Term → Markdown."""
    said = bundle.manifest
    made, check = said.training, said.check
    can = [ability.words for ability in abilities(bundle) if ability.cannot is None]
    read = said.encoder.max_length
    still = f"; {STILL_IMPROVING}" if bundle.improving else ""
    chosen = "as validation had selected" if said.refitted else f"best: {made.best_epoch:,}{still}"
    card = {
        "From": md(said.paper, 2_000),
        "Reads": f"the latest {count(read, 'item')}"
        + ("" if said.capabilities.reads_order else ", but not their order")
        + ("" if said.encoder.min_history else ", and answers without any"),
        "Recommends": "what the history does not have"
        if bundle.excludes_history
        else "items of the history, too: repeats count",
        "Size": f"{count(made.parameters, 'parameter')}, {said.encoder.dim:,} numbers per "
        + ("query" if said.generator is None else "hidden state"),
        "Trained": md(
            f"{count(made.epochs, 'epoch')} ({chosen}), seed {made.seed}, {made.seconds:,.0f} s on {made.device}"
            if made.epochs
            else "not at all: it compares what is said of items"
            if said.sentence is not None
            else f"counted once over the log, on {made.device}"
        ),
        **_refit(bundle),
        **_carried(bundle),
        **_folded(bundle),
        **({"Known words": md(words)} if (words := known_words(said.unknown)) else {}),
        "Can show": md(", ".join(can) or "its recommendations"),
        "Exact to": (
            f"{check.max_abs_difference:.0e} between the exported graph and the trained model, "
            f"on {count(check.histories, 'history', 'histories')}"
        ),
        "Made": md(f"{said.created[:10]} by {said.created_by}, commit {(made.commit or 'unknown')[:10]}"),
    }
    return card | {term: md(words) for term, words in writes(bundle).items()}


def _refit(bundle: Bundle) -> dict[str, str]:
    """What a refit was fitted on; nothing of other models, which were fitted on training events."""
    if not bundle.manifest.refitted:
        return {}
    words = f"{bundle.manifest.training.fitted_on} events, after validation had selected it"
    return {"Fitted on": md(f"{words}; judged under “{bundle.protocol}” alone")}


def _carried(bundle: Bundle) -> dict[str, str]:
    """Where a model comes from that was not trained on this dataset, or whose vectors it compares, where it was not trained."""
    about, asks = bundle.manifest.zero_shot, bundle.manifest.sentence
    if about is not None:
        cut = f"; of {count(about.cut, 'item')} not all words are read" if about.cut else ""
        return {"Zero-shot": md(f"trained on {about.title}, it has learned nothing from this dataset{cut}", 1_000)}
    if asks is not None:
        without = f"; {count(asks.without, 'item')} without any" if asks.without else ""
        return {"Words": md(f"{', '.join(asks.fields)}, by {asks.title}{without}", 1_000)}
    return {}


def _folded(bundle: Bundle) -> dict[str, str]:
    """What a model with vectors of training users loses by folding histories in, as pages do; nothing where it was not measured
    both ways."""
    folded, learnt = (
        bundle.manifest.metrics.get(protocol, {}).get("NDCG@10")
        for protocol in (bundle.protocol, metrics.with_users(bundle.protocol))
    )
    if folded is None or learnt is None:
        return {}
    words = f"NDCG@10 {folded:.4f} folded in from the history, as pages do"
    return {"Fold-in": f"{words}; {learnt:.4f} with these people's vectors learnt in training ({md(bundle.protocol)})"}


def cannot(bundle: Bundle) -> list[str]:
    """What the model cannot do and why, as Markdown."""
    reasons = {ability.words: ability.cannot for ability in abilities(bundle)}
    return [f"**{words.capitalize()}** — {md(reason, 1_000)}" for words, reason in reasons.items() if reason]


def listing(entries: Mapping[str, str]) -> str:
    """A description list."""
    return "\n".join(f"- **{term}**: {meaning}" for term, meaning in entries.items())


def _time(found: Mapping[str, Any]) -> str:
    if found.get("unit") == "order" or found.get("first") is None or found.get("last") is None:
        return "the order of events alone"
    first, last = (day(found[end]) for end in ("first", "last"))
    ties, unit = found.get("ties", 0), found.get("unit", "time")
    shared = f"{count(ties, 'event')} {'shares its' if ties == 1 else 'share their'} {unit}"
    return md(f"{first} to {last}; {shared} with another one of the same person")
