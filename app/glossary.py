"""What every metric and view means, in two sentences each and with a source: About lists them, tooltips are taken from here.

    st.metric("Collision rate", …, help=glossary.tooltip("Collision rate"))

`sections.heading`, the controls of `choice` and the tables of `export` ask for the tooltips of their labels themselves.
"""

import re
from typing import NamedTuple

from engine.runtime import judge


class Entry(NamedTuple):
    """A term, its meaning in two sentences, where it comes from, and what headings, controls and columns call it besides."""

    term: str
    meaning: str
    source: str
    labels: tuple[str, ...] = ()


METRICS = (
    *(Entry(metric.title, metric.meaning, metric.source) for metric in judge.ACCURACY.values()),
    Entry(
        "Rank",
        "The place of an item among the candidates, 1 is best; models are judged by the rank of the held-out item. Ties "
        "share their mean rank.",
        "Krichene & Rendle, KDD 2020, on why the candidates are the whole catalogue",
        ("Ranks over users", "Mean rank"),
    ),
    Entry(
        "Outside the beam",
        "The share of held-out items that a beam of the given width did not generate, in a full ranking by beam. They share the "
        "mean of the places that are left, so they count as missed in every list.",
        "after Rajput et al., NeurIPS 2023, who rank by beam search",
    ),
    *(Entry(metric.title, metric.meaning, metric.source) for metric in judge.BEYOND.values()),
    Entry(
        "95% interval",
        "Users are resampled with replacement 2,000 times, and the middle 95% of the results is kept. "
        "It covers the choice of users, not the luck of one training run. Where all users have the same value, it is as wide as "
        "a sample of this size allows.",
        "Efron & Tibshirani 1993, chapter 13; Clopper & Pearson 1934",
    ),
    Entry(
        "Paired comparison",
        "The difference of two models is taken for each user, and users are resampled in the same way. That is "
        "much sharper than comparing two intervals by eye. Fewer than six users who differ make nothing significant.",
        "Efron & Tibshirani 1993",
        ("Difference to a baseline", "Baseline"),
    ),
    Entry(
        "Holm's correction",
        "With several comparisons at once, some look significant by chance; p-values are raised so that the "
        "chance of any false positive is at most 5%. "
        "It needs no assumption about how the comparisons depend on each other. Against the best of many "
        "models, which the same users chose, the chance is higher.",
        "Holm 1979",
        ("holm",),
    ),
)

CODES = (
    Entry(
        "Codebook utilisation",
        "The share of a level's codes that some item has. The others are dead codes: they cost room in the codebook and say "
        "nothing.",
        "van den Oord, Vinyals & Kavukcuoglu, NeurIPS 2017, on codebooks that collapse",
        ("Utilisation",),
    ),
    Entry(
        "Normalised perplexity",
        "Perplexity, 2 to the power of the entropy of a level's codes over the items, is the effective number of codes in use. "
        "Divided by the number of codes it is 1 where all are used alike; random codes come to a little less.",
        "Shannon 1948; as TIGER's and LETTER's code counts the use of codebooks",
    ),
    Entry(
        "Collision rate",
        "1 − unique IDs / items, as LETTER's code has it. A group of three items with one ID counts two.",
        "Wang et al., CIKM 2024 (LETTER), generate_indices.py",
    ),
    Entry(
        "Items in collision",
        "The share of items whose ID is another one's as well. A group of three counts three, so it is higher than the collision "
        "rate and says for how many items a model's answer is a tie.",
        "Rajput et al., NeurIPS 2023 (TIGER), section 3.1 on collisions",
        ("In collision",),
    ),
    Entry(
        "Reconstruction error",
        "The share of the variance of the items' vectors that cannot be recovered from the codes. 0 loses nothing; only "
        "tokenizers that quantise vectors have it.",
        "Zeghidour et al. 2021 and Lee et al., CVPR 2022 (residual quantisation)",
    ),
    Entry(
        "Shared codes with nearest CF neighbour",
        "Each item is matched with the nearest one by a sequence model's vectors, and the share of levels with the same code is "
        "averaged. By chance it is the share of all pairs of items that have the same code.",
        "Wang et al., CIKM 2024 (LETTER), section 4.3.2, which gives no formula",
        ("Shared codes (CF)",),
    ),
    Entry(
        "Lorenz curve and Gini of codes",
        "The least used codes first, the curve says which share of the items they have together; the diagonal is even use. Gini "
        "is twice the area between the two, 0 where all codes are used alike.",
        "Lorenz 1905; Gini 1912",
        ("Inequality",),
    ),
    Entry(
        "Prefix tree",
        "Every box is a prefix, its width the number of items; the row below splits it by the next code. Colour: the most common "
        "value of its items, paler for a smaller share, or their popularity.",
        "Icicle plot: Kruskal & Landwehr, The American Statistician 1983",
    ),
    Entry(
        "Prefix purity",
        "Of the items that share their first codes with another one, the share that has the most common category of its group. "
        "Small groups are pure by chance, so a permutation baseline, the same with categories shuffled, is shown with it.",
        "Manning, Raghavan & Schütze 2008, section 16.3",
    ),
    Entry(
        "Popularity by code",
        "A mark for every code: how many items it has, and how many training events one of them has on average. Long-tail items "
        "concentrated in few codes show as marks far to the right and low.",
        "Seqscope's own",
    ),
    Entry(
        "Codebook vectors",
        "The vectors of a level's codes on their two principal axes, with clusters found in the full space. The axes show only "
        "the share of the variance that is written beneath.",
        "Pearson 1901; clusters as in LETTER's diversity term: Bradley, Bennett & Demiriz 2000",
    ),
    Entry(
        "Generation bias",
        "The shares of a level's codes among held-out items and among those in a model's lists. Their total variation distance "
        "is 0 where both are alike and 1 where no code is in both.",
        "Wang et al., CIKM 2024 (LETTER), on assignment bias of codes",
    ),
)

VIEWS = (
    Entry(
        "Lists side by side",
        "Each model's best items for the same history, with the probability that the model gives each of them (popularity and "
        "the Markov chain: counts over their sum; Mult-VAE and Mult-DAE: that an item which such a user has is this one; "
        "generative models: that of the semantic ID) and a bar relative to the list's "
        "first item. Scores of different models have different units and are never put on one scale.",
        "Pin and compare, after LIT: Tenney et al., EMNLP 2020",
        ("View",),
    ),
    Entry(
        "What came next in the log",
        "Users with the last item of the history (with its last two in direct succession, if at least ten users have them) "
        "are counted by their next item, held-out items included. This is what users did, not what a list should be: "
        "a user has one next item and may have liked others, too.",
        "Seqscope's own; the counts of a first-order Markov chain, with those held out",
    ),
    Entry(
        "Rank-biased overlap",
        "How much two lists agree, the top counting more. At p = 0.9 the first ten places carry 86% of the weight.",
        "Webber, Moffat & Zobel, TOIS 2010",
        ("RBO", "Order (RBO)"),
    ),
    Entry(
        "Beam",
        "At each step a generative model keeps and extends only the likeliest prefixes, the beam; codes that continue no "
        "item's semantic ID are masked and the rest renormalised. What the beam prunes "
        "is never reached, so its list may differ from exact scores of all items.",
        "Sutskever, Vinyals & Le 2014; constrained: De Cao et al., ICLR 2021; on items: Rajput et al., NeurIPS 2023 (TIGER)",
        ("Beam search", "Beam width", "Show the beam of"),
    ),
    Entry(
        "Beam agreement@k",
        "How many of the k items with the highest exact probability a beam finds among its own first k. Exact scores come from "
        "scoring the codes of every item of the catalogue.",
        "on what beams miss: Stahlberg & Byrne, EMNLP 2019",
    ),
    Entry(
        "Attention",
        "The weights with which a position averages the others; rows of the map sum to 1, or to less where a model drops what a "
        "position gives to itself. "
        "Attention is not an explanation of why an item was recommended.",
        "Vaswani et al. 2017; Jain & Wallace 2019; Wiegreffe & Pinter 2019",
        (
            "What the prediction looked at",
            "What the latest item looked at",
            "Position by position",
            "Layers and heads",
            "Attention of",
        ),
    ),
    Entry(
        "Rollout",
        "Attention followed through all layers, each taken as half residual and half attention, and "
        "multiplied. An approximation that "
        "leaves out the feed-forward layers and drifts towards early positions in causal models.",
        "Abnar & Zuidema, ACL 2020",
    ),
    Entry(
        "Instance gates",
        "How far HGN lets each of the latest items through for a user, from 0, closed, to 1, open. Each gate is open or closed "
        "whatever the others are, so they do not sum to 1.",
        "Ma, Kang & Liu, KDD 2019, 3.3",
        ("Gate", "How far items are let through"),
    ),
    Entry(
        "Vertical filters",
        "Caser adds up the vectors of the latest items several times, each time with other weights per place. They are the same "
        "for every history, and may be negative.",
        "Tang & Wang, WSDM 2018, 3.2",
        ("Filters", "What items are weighed with"),
    ),
    Entry(
        "Horizontal filters",
        "Caser’s filters over 1, 2, … items in a row slide over the latest items. Each keeps how well it matches the row that it "
        "matches best, wherever that stands.",
        "Tang & Wang, WSDM 2018, 3.2.1",
    ),
    Entry(
        "Attention of codes",
        "A model that reads items as codes attends between codes; grouped by item, what an item gets is the sum over its codes. "
        "While codes are generated, each one looks back at the history: one column per generated code, mean over heads.",
        "cross-attention: Vaswani et al. 2017; as TIGER has it: Rajput et al., NeurIPS 2023",
        ("What the generated codes looked at", "Layer of the decoder"),
    ),
    Entry(
        "Attention to words",
        "A model that reads words looks from one place, before the first of them, at every word of the history; what an item or "
        "an attribute gets is the sum over its words. Longer texts may get more by their length alone, so a stroke marks what an "
        "item would get if every word got the same.",
        "Li et al., KDD 2023 (Recformer); one place that sees everything: Beltagy, Peters & Cohan 2020 (Longformer)",
        ("Word by word",),
    ),
    Entry(
        "Token ablation",
        "An attribute or a word of the item that is explained is removed, the model reads the item anew, and the change of its "
        "score is the effect. Later words move up, so it is the effect of another text and not of the word alone.",
        "Li, Monroe & Jurafsky 2016, on erasing words",
        ("Token ablation of the item",),
    ),
    Entry(
        "Leave-one-out effect",
        "One event is removed and the item ranked again among the same candidates; the bar is the change of "
        "its rank on a log scale, since all scores shift with the history. Joint effects of several events "
        "stay hidden.",
        "Li, Monroe & Jurafsky 2016",
        ("Why? Leave-one-out effect",),
    ),
    Entry(
        "Map",
        "Vectors in two dimensions, of a model or of one of the spaces below: by UMAP, which keeps near ones near while axes and "
        "distances between far groups mean nothing, or by PCA, the plane of the largest variance. Regions are named by TF-IDF.",
        "McInnes, Healy & Melville 2018 (UMAP); trustworthiness: Venna & Kaski 2001",
        ("Projection", "Map of"),
    ),
    Entry(
        "Map of words",
        "Items drawn by vectors that a sentence encoder makes of their texts: near are items of which much the same is said. No "
        "history plays a part, so what lies together here but not on a model's map is what users do not choose together.",
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
        ("Colour codes by",),
    ),
    Entry(
        "An item's codes",
        "The path of an item through each tokenizer's tree, and the items that share its first codes. Those at the same last "
        "code cannot be disambiguated without a further number.",
        "Rajput et al., NeurIPS 2023 (TIGER)",
        ("Semantic IDs",),
    ),
    Entry(
        "Neighbours",
        "The nearest items by exact comparison in the space itself, not on the map. Cosine or distance, as the model or the "
        "tokenizer itself compares; words by cosine.",
        "the model's paper",
        ("Nearest items", "Nearest in the space of"),
    ),
)

TERMS = {entry.term: entry for entry in (*METRICS, *CODES, *VIEWS)}


def tooltip(label: str) -> str:
    """The meaning of the term that a label names, as Markdown-free text; "" where it names none.

    What follows an @ or a comma is no part of the name: "NDCG@10", "Popularity by code, level 2".
    """
    return _MEANINGS.get(_name(label), "")


def _name(label: str) -> str:
    return re.split("@|, ", label.strip("*"), maxsplit=1)[0].casefold()


_MEANINGS = {_name(label): entry.meaning for entry in TERMS.values() for label in (entry.term, *entry.labels)}
