"""What a language model is asked, in words: LC-Rec's mixture of tasks (Zheng et al. 2024, 3.3), with prompts of our own.

In a prompt, {history} are the codes of the items taken so far, {codes} those of one item, {text} the words of one item,
{texts} those of the history, {query} words that somebody might search with. LC-Rec has preferences and searches written by a
larger language model; here they are made of the attributes in the catalogue.
"""

from __future__ import annotations

from typing import NamedTuple


class Task(NamedTuple):
    """question, answer: prompts in which slots stand."""

    question: str
    answer: str


# The first is how recommendations are asked for; the others are there so that the wording does not matter.
NEXT = (
    Task("Somebody took these items, the latest last: {history}. Which item comes next? ", "{codes}"),
    Task("History: {history}. Name the item that this person will take next. ", "{codes}"),
    Task("Here is what was taken, in order: {history}. Continue. ", "{codes}"),
)

TASKS: dict[str, tuple[Task, ...]] = {
    "seqrec": NEXT,
    "item2index": (
        Task("Which item is this? {text}. ", "{codes}"),
        Task("Give the index of the item described as: {text}. ", "{codes}"),
    ),
    "index2item": (
        Task("Describe the item {codes}. ", "{text}"),
        Task("What is {codes}? ", "{text}"),
    ),
    "fusionseqrec": (
        Task("Somebody took {history}. In words, what comes next? ", "{text}"),
        Task("Somebody took, in order: {texts}. Which item comes next? ", "{codes}"),
    ),
    "itemsearch": (
        Task("Somebody who took {history} now looks for: {query}. Which item fits? ", "{codes}"),
        Task("Search: {query}. Taken before: {history}. Best match? ", "{codes}"),
    ),
    "preferenceobtain": (
        Task("Somebody took {history}. What does this person like? ", "{likes}"),
        Task("From {history}, say in a few words what this taste is. ", "{likes}"),
    ),
}
"""Task → its prompts. The first four and itemsearch are about one target; preferenceobtain is about a history."""
