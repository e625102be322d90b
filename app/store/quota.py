"""How much one owner may have. The numbers are the server's: environment variables, said on the page where they are reached.

SEQSCOPE_QUOTA_BYTES     of all files of one owner (default 1 GB)
SEQSCOPE_QUOTA_ROWS      items and events of all datasets of one owner (default 5,000,000)
SEQSCOPE_QUOTA_DATASETS  of one owner (default 20)
SEQSCOPE_QUOTA_JOBS      of one owner that wait or run at the same time (default 5)
SEQSCOPE_QUOTA_SERVER    bytes of all owners and of lost/ together (default 20 GB): without sign-in, owners cost nothing
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app import home
from app.home import Home
from app.store.file import StoreFile
from app.store.records import ENDED, known, now
from app.text import amount
from engine.errors import SeqscopeError
from engine.machine import settings, whole_number
from engine.writing import count


class QuotaReached(SeqscopeError):
    """The owner has as much as they may have."""


@dataclass(frozen=True)
class Usage:
    """What an owner has now."""

    bytes: int
    rows: int
    datasets: int
    jobs: int
    """Waiting or running."""
    server: int
    """Bytes of all owners and of lost/ together."""


@dataclass(frozen=True)
class OwnerLimits:
    """What every owner may have."""

    bytes: int = 1_000_000_000
    rows: int = 5_000_000
    datasets: int = 20
    jobs: int = 5
    server: int = 20_000_000_000
    """Bytes of all owners and of lost/ together."""

    @classmethod
    def of_environment(cls) -> OwnerLimits:
        """Raises SettingError where variables are no numbers."""
        names = {name: (f"SEQSCOPE_QUOTA_{name.upper()}", default) for name, default in vars(cls()).items()}
        return cls(**settings({name: partial(whole_number, *of) for name, of in names.items()}))


class Quota:
    """What owners have, and whether they may have more. Part of `Store`."""

    def __init__(self, file: StoreFile, home: Home) -> None:
        self._file = file
        self._home = home
        self._lists: dict[str, int] = {}
        """Batch that is over → its bytes."""
        self.lost = 0
        """Bytes of lost/, as the last sweep left it."""

    @property
    def limits(self) -> OwnerLimits:
        return OwnerLimits.of_environment()

    def usage(self, owner: str, made: Mapping[str, int] | None = None) -> Usage:
        """made: `being_made`, where it was asked before; a transaction must not wait for the disk."""
        made = self.being_made() if made is None else made
        ((rows, datasets, jobs, owner_bytes, all_owners),) = self._file.ask(_USAGE, [known(owner), now()])
        return Usage(
            int(owner_bytes) + made.get(owner, 0),
            int(rows),
            int(datasets),
            int(jobs),
            int(all_owners) + sum(made.values()) + self.lost,
        )

    def left(self, owner: str) -> int:
        """Bytes that the owner may have more, on this server; below 0 where they have too much already."""
        used, most = self.usage(owner), self.limits
        return min(most.bytes - used.bytes, most.server - used.server)

    def being_made(self) -> Counter[str]:
        """Owner → bytes that no row notes yet: what datasets at work have grown by, lists, drafts. Looks through folders."""
        made: Counter[str] = Counter()
        at_work, lists = set(), {}
        for id, owner, dataset, kind, state in self._file.ask(
            "select id, owner, dataset, kind, state from job where kind = 'batch' or state = 'running'"
        ):
            if kind != "batch":
                at_work.add((owner, dataset))
                continue
            if state not in ENDED or (size := self._lists.get(id)) is None:
                size = home.size(self._home.job(id))
            if state in ENDED:  # what is over stays what it is
                lists[id] = size
            made[owner] += size
        self._lists = lists
        for owner, dataset in at_work:
            for (noted,) in self._file.ask("select bytes from dataset where owner = ? and id = ?", [owner, dataset]):
                made[owner] += home.size(self._home.dataset(owner, dataset).path) - int(noted)
        for path in self._home.drafts():
            made[path.name.split("-")[1]] += home.size(path)
        return made

    def more(self, owner: str, staged: Path) -> int:
        """Bytes that the owner gets with the files of a staged folder: 1 for a draft of theirs, which counts already."""
        return 1 if staged in self._home.drafts(owner) else home.size(staged)

    def check(
        self,
        owner: str,
        *,
        bytes: int = 0,
        rows: int = 0,
        datasets: int = 0,
        jobs: int = 0,
        made: Mapping[str, int] | None = None,
    ) -> None:
        """Raises QuotaReached, in words, where the owner may not have so much more. made: as for `usage`."""
        used, most = self.usage(owner, made), self.limits
        if bytes > 0 and used.bytes >= most.bytes:
            raise QuotaReached(
                f"What you have takes {amount(used.bytes)}, and {amount(most.bytes)} is the most that it may. {_MEND_BYTES}"
            )
        if bytes > 0 and used.bytes + bytes > most.bytes:
            raise QuotaReached(
                f"This would need {amount(bytes)} more, and {amount(used.bytes)} of your {amount(most.bytes)} are taken. "
                f"{_MEND_BYTES}"
            )
        if rows > 0 and used.rows + rows > most.rows:
            raise QuotaReached(
                f"This would be {count(rows, 'row')} more, and you have {used.rows:,} of the {most.rows:,} that "
                f"you may have in all datasets together. {_MEND}"
            )
        if datasets > 0 and used.datasets + datasets > most.datasets:
            raise QuotaReached(
                f"You have {count(used.datasets, 'dataset')}; at most {most.datasets:,} can be kept. {_MEND}"
            )
        if jobs > 0 and used.jobs + jobs > most.jobs:
            raise QuotaReached(
                f"{count(used.jobs, 'job')} of yours {'waits or runs' if used.jobs == 1 else 'wait or run'} already; "
                f"at most {most.jobs:,} may at the same time. Wait for one to end, or cancel one."
            )
        if bytes > 0 and used.server + bytes > most.server:
            raise QuotaReached("This server has no room for more data now. Try again later, or ask those who run it.")


_MEND = "Delete a dataset that you no longer need."
_MEND_BYTES = "Delete a dataset or something saved that you no longer need."
# What has expired and was not swept yet is shown to nobody: its owner can delete nothing of it, and the server alone has it.
_USAGE = """
    with kept as (
        select owner, expires, bytes from dataset
        union all select owner, expires, strlen(document) from report
        union all select owner, expires, strlen(items) from history
        union all select owner, expires, strlen(address) from comparison
    ),
    shown as (select * from dataset where owner = $1 and (expires is null or expires > $2))
    select
        (select coalesce(sum(rows_items + rows_events), 0) from shown),
        (select count(*) from shown),
        (select count(*) from job where owner = $1 and state in ('queued', 'running')),
        coalesce(sum(bytes) filter (where owner = $1 and (expires is null or expires > $2)), 0),
        coalesce(sum(bytes), 0)
    from kept
"""
