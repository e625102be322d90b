"""The protocols that figures are made under: their names, what each asks, and which one is a dataset's own. Pure Python.

A name is put together: what the held-out item is ranked among ("full": the whole catalogue; "u100", "p100": itself and 100
negatives, which engine/evaluation/ranks.py draws), or for splits into sets, where a user may have several held-out items, the
split ("given split", "held-out users": the whole catalogue, too; engine/data/split.py), then what becomes of the user's history
among the candidates:

    full                  it is left out (the held-out item never is)
    full, repeats         nobody's is, because repeats count in this dataset (engine/data/repeats.py)
    full, history kept    nobody's is, to compare with papers (`seqscope evaluate --keep-history`)

then "refit" where models were fitted on validation events, too (`seqscope train --refit`), whose figures never stand beside those
of models that were fitted on training events alone; then "+user" for a model's vectors of training users, or "+times" where it
was told when the events of the history were, which lists of bundles and pages are not; and last, of metrics alone, the part of
the held-out items they are over: "cold" (in nobody's training) and "warm", "repeated" (in the user's own history) and "new".
"""

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass

SETS = {"given": "given split", "users": "held-out users"}
"""Kind of split (`DatasetInfo.split`) → the protocol of its sets of held-out items."""
HISTORIES = ("", "repeats", "history kept")
PARTS = {
    "cold": "held-out items in nobody's training",
    "warm": "held-out items in somebody's training",
    "repeated": "held-out items that repeat one of the history",
    "new": "held-out items that the history does not have",
}
_SETS = {
    "given split": " A user has several held-out items, of a split that was given; Recall@k is the share of them among the "
    "first k.",
    "held-out users": " These users are in nobody's training: a share of their items is the history, the others are held out; "
    "Recall@k is how many of these are among the first k, as a share of k or of all, whichever is fewer.",
}
_NAME = re.compile(
    rf"(?P<base>[^,+]+)(, (?P<history>{'|'.join(HISTORIES[1:])}))?(?P<refit>, refit)?"
    rf"(?P<user>\+user)?(?P<times>\+times)?(, (?P<part>{'|'.join(PARTS)}))?"
)


@dataclass(frozen=True)
class Protocol:
    """A protocol's name, taken apart; str() puts it together again."""

    base: str
    """"full", one of SETS, "u100", "p100", or whatever a foreign bundle says."""
    history: str = ""
    """One of HISTORIES: "" where the history is left out of the candidates."""
    trained_users: bool = False
    """With the model's vectors of training users in place of what it makes of their histories."""
    part: str = ""
    """One of PARTS where metrics are over a part of the held-out items, else ""."""
    refit: bool = False
    """Of models that were fitted on training and validation events (engine/training/refit.py)."""
    with_times: bool = False
    """With the times of the history, in place of what the model makes of its order alone; never that of a held-out item."""

    def __str__(self) -> str:
        history, part = (f", {word}" if word else "" for word in (self.history, self.part))
        variant = "+user" * self.trained_users + "+times" * self.with_times
        return f"{self.base}{history}{', refit' if self.refit else ''}{variant}{part}"

    @property
    def full(self) -> bool:
        """Held-out items are ranked among the whole catalogue."""
        return self.base == "full" or self.sets

    @property
    def sets(self) -> bool:
        """A user may have several held-out items."""
        return self.base in SETS.values()

    @property
    def sampled(self) -> int:
        """Among how many negatives it is ranked; 0 where it is not."""
        match = re.fullmatch(r"[up](\d{1,7})", self.base)
        return int(match[1]) if match else 0


def parse(name: str) -> Protocol:
    """The protocol of that name. A name that is none of ours is all base, so that foreign bundles can be shown."""
    match = _NAME.fullmatch(name)
    if not match:
        return Protocol(name)
    return Protocol(
        match["base"], match["history"] or "", bool(match["user"]), match["part"] or "", bool(match["refit"]),
        bool(match["times"]),
    )  # fmt: skip


def history_excluded(repeats: str | None) -> bool:
    """Whether a dataset (its `DatasetInfo.repeats`) leaves the history out of candidates and of lists."""
    return repeats != "count"


def of_dataset(
    base: str, repeats: str | None, *, trained_users: bool = False, refit: bool = False, with_times: bool = False
) -> str:
    """The name of the protocol `base` in a dataset (its `DatasetInfo.repeats`)."""
    history = "" if history_excluded(repeats) else "repeats"
    return str(Protocol(base, history, trained_users, refit=refit, with_times=with_times))


def main(repeats: str | None, split: str | None = None, refit: bool = False) -> str:
    """The protocol that a dataset's models are judged by: full ranking. split: the kind of its split; refit: of the models that
    were fitted on validation events, too."""
    return of_dataset(SETS.get(split or "", "full"), repeats, refit=refit)


def in_order(names: Iterable[str]) -> list[str]:
    """Each name once: full rankings first, then by name; plain ones before their variants, and these before refits."""
    return sorted(set(names), key=lambda name: (not parse(name).full, parse(name).refit, parse(name).base, name))


def title(name: str) -> str:
    """What pages call a protocol: Full ranking; 100 sampled negatives; 100 popular negatives, repeats."""
    protocol = parse(name)
    base = {
        "full": "Full ranking",
        "given split": "Full ranking, given split",
        "held-out users": "Full ranking, held-out users",
    }
    if protocol.sampled:
        words = f"{protocol.sampled:,} {'sampled' if protocol.base[0] == 'u' else 'popular'} negatives"
    else:
        words = base.get(protocol.base, protocol.base)
    plain = dataclasses.replace(protocol, base=words, trained_users=False, with_times=False, part="")
    users, times = ", user vectors" * protocol.trained_users, ", with times" * protocol.with_times
    return f"{plain}{users}{times}" + (f", {protocol.part}" if protocol.part else "")


def sentence(name: str, items: int) -> str:
    """What a protocol does, in a sentence; items: how many the catalogue has."""
    protocol = parse(name)
    if protocol.full:
        target = "each held-out item" if protocol.sets else "the held-out item"
        history = {
            "": "those of the history left out",
            "repeats": "those of the history included, since repeats count",
            "history kept": "those of the history included, to compare with papers that do so",
        }[protocol.history]
        words = f"Full ranking: {target} among all {items:,} items, {history}"
    elif protocol.sampled:
        drawn = "uniformly" if protocol.base[0] == "u" else "by popularity"
        history = ", of the history too, since repeats count" if protocol.history == "repeats" else ""
        words = (
            f"Sampled: the held-out item among {protocol.sampled:,} others drawn {drawn}{history}, the same for every model. For "
            "comparison with papers alone; such numbers are much higher and can order models differently (Krichene & Rendle 2020)"
        )
    else:
        words = f"Protocol “{protocol.base}”"
    if protocol.trained_users:
        words += ", with the trained user's own vector in place of what the model makes of the history alone"
    if protocol.with_times:
        words += (
            "; the model is told when the items of the history were, never when the held-out one was, while lists of bundles and "
            "pages are made without times"
        )
    if protocol.refit:
        words += "; models were fitted on training and validation events, so nothing here compares with other protocols"
    if protocol.part:
        words += f"; {PARTS[protocol.part]} alone"
    return f"{words}.{_SETS.get(protocol.base, '')}"


def of_people(protocol: str) -> tuple[str, str]:
    """What is told first of how people were ranked for: the gain, by which models are compared, and the hits."""
    return ("NDCG@20", "Recall@20") if parse(protocol).sets else ("NDCG@10", "HR@10")
