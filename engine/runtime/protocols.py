"""The protocols that figures are made under: what their names say, which is a dataset's own, a sentence about each.

    parse("full, repeats").history        # "repeats": nobody's history is left out
    main(zoo.info.repeats, zoo.info.split.get("kind"))  # the protocol that models are judged by
    sentence("u100", items=len(zoo))      # for a page

These are the functions that `seqscope evaluate` names its results with; nothing else compares a protocol with a word.
"""

from engine.evaluation.protocols import (
    PARTS,
    SAMPLED,
    Protocol,
    history_excluded,
    in_order,
    main,
    of_dataset,
    parse,
    sentence,
)

__all__ = ["PARTS", "SAMPLED", "Protocol", "history_excluded", "in_order", "main", "of_dataset", "parse", "sentence"]
