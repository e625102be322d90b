"""Items that users come back to: how many a log has, whether they are taken to be meant, and the words for both.

    measured = measure(user, item, held_out)     # shares of events and of held-out items that repeat; numpy arrays
    propose(measured)                            # "count" or "first"
    in_words(measured, "count")                  # what was measured, and what is made of it
    meaning(info.repeats, info.measured)         # what that means for figures and lists

These are the functions that `seqscope data import --repeats auto` uses.
"""

from engine.data.order import repeated
from engine.data.repeats import COUNT_FROM, RULES, in_words, meaning, measure, propose

__all__ = ["COUNT_FROM", "RULES", "in_words", "meaning", "measure", "propose", "repeated"]
