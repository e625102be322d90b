"""What visitors save under a name: one form for histories, comparisons and reports, which differ in what they hold."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from app.home import new_id
from app.limits import MAX_HISTORY, MAX_ID
from app.store import records
from app.store.datasets import Owned
from app.store.records import Comparison, History, Report, known
from engine.errors import SeqscopeError

MAX_SAVED = 500  # of one kind, per owner
MAX_ADDRESS = 64_000  # characters
MAX_DOCUMENT = 20_000_000  # bytes of a report's JSON
_DATASET = re.compile(r"[^\x00-\x1f/\\]{1,200}")
_ADDRESS = re.compile(r"/(?![/\\])[!-~]*")  # a path on this server, percent-encoded

T = TypeVar("T", History, Comparison, Report)


class Saved(Owned[T]):
    """One table. A name is given once per owner and dataset."""

    content: ClassVar[str]
    """The column that holds what is saved."""
    _order = "changed"

    def get(self, owner: str, id: str) -> T:
        """It is kept for so many days more. Raises NotFound."""
        return self._used(owner, id)

    def rename(self, owner: str, id: str, name: str) -> T:
        """Raises NotFound, and SeqscopeError where the name is taken."""
        name = records.named(name)
        with self._file.transaction() as transaction:
            row = self._row(owner, id)
            namesake = self._called(owner, row[2], name)
            if namesake is not None and namesake != id:
                raise SeqscopeError(f"There is another {self.table} named “{name}”. Choose another name.")
            self._update(transaction.execute, owner, id, name=name, changed=records.now())
        return self.get(owner, id)

    def delete(self, owner: str, id: str) -> None:
        """Raises NotFound."""
        with self._file.transaction(freeing=True) as transaction:
            self._row(owner, id)
            transaction.execute(f"delete from {self.table} where owner = ? and id = ?", [owner, id])

    def _save(self, owner: str, dataset: str, name: str, content: str, replace: bool) -> T:
        if not _DATASET.fullmatch(dataset):
            raise ValueError(f"not a dataset: {dataset!r}")
        name, made = records.named(name), self._quota.being_made()
        with self._file.transaction() as transaction:
            same = self._called(known(owner), dataset, name)
            if same is not None and not replace:
                raise SeqscopeError(
                    f"There is a {self.table} named “{name}” already. Choose another name, or replace it."
                )
            self._quota.check(owner, bytes=len(content.encode()) - self._length(owner, same), made=made)
            moment, expires = records.now(), records.until(owner)
            if same is not None:
                values = {self.content: content, "changed": moment, "expires": expires}
                self._update(transaction.execute, owner, same, **values)
                return records.of_row(self._record, self._row(owner, same))
            alive = "owner = ? and (expires is null or expires > ?)"
            ((held,),) = self._file.ask(f"select count(*) from {self.table} where {alive}", [owner, moment])
            if held >= MAX_SAVED:
                raise SeqscopeError(
                    f"At most {MAX_SAVED} can be kept under a name. Delete one that you no longer need."
                )
            id = new_id()
            transaction.execute(
                f"insert into {self.table} ({self._columns()}) values ({', '.join('?' * 8)})",
                [id, owner, dataset, name, moment, moment, expires, content],
            )
            return records.of_row(self._record, self._row(owner, id))

    def _called(self, owner: str, dataset: str, name: str) -> str | None:
        matches = self._rows(owner, "and dataset = ? and name = ?", [dataset, name], listed=True)
        return matches[0][0] if matches else None

    def _length(self, owner: str, id: str | None) -> int:
        """Bytes that go when it is replaced."""
        lengths = self._file.ask(
            f"select strlen({self.content}) from {self.table} where owner = ? and id = ?", [owner, id]
        )
        return int(lengths[0][0]) if lengths else 0


class Histories(Saved[History]):
    """Named histories. Part of `Store`."""

    table, content = "history", "items"
    _record = History

    def save(self, owner: str, dataset: str, name: str, items: Sequence[str], *, replace: bool = False) -> History:
        """items: item_ids, oldest first. Raises SeqscopeError where the name is taken and not to be replaced."""
        if len(items) > MAX_HISTORY or any(not isinstance(item, str) or len(item) > MAX_ID for item in items):
            raise ValueError("not a history")
        if not items:
            raise SeqscopeError("The history is empty: there is nothing to save.")
        return self._save(owner, dataset, name, json.dumps(list(items), ensure_ascii=False), replace)


class Comparisons(Saved[Comparison]):
    """Named addresses. Part of `Store`."""

    table, content = "comparison", "address"
    _record = Comparison

    def save(self, owner: str, dataset: str, name: str, address: str, *, replace: bool = False) -> Comparison:
        """address: path and parameters on this server. Raises SeqscopeError where the name is taken and not to be replaced."""
        if len(address) > MAX_ADDRESS:
            raise SeqscopeError(
                f"The link of this comparison has {len(address):,} characters; at most {MAX_ADDRESS:,} are saved: "
                "shorten the history."
            )
        if not _ADDRESS.fullmatch(address):
            raise ValueError("not an address of this server")
        return self._save(owner, dataset, name, address, replace)


class Reports(Saved[Report]):
    """Reports that were made. Part of `Store`."""

    table, content = "report", "document"
    _record = Report

    def save(
        self, owner: str, dataset: str, name: str, document: Mapping[str, Any], *, replace: bool = False
    ) -> Report:
        """document: report.json. Raises QuotaReached, and SeqscopeError where the name is taken and not to be replaced."""
        text = records.written(document)
        size = len(text.encode())
        if size > MAX_DOCUMENT:
            raise SeqscopeError(f"A report may have {MAX_DOCUMENT // 1_000_000} MB; this one has {size / 1e6:.1f} MB.")
        return self._save(owner, dataset, name, text, replace)

    def _columns(self, listed: bool = False) -> str:
        """A list leaves the documents out: they are large."""
        return super()._columns().replace("document", "null") if listed else super()._columns()
