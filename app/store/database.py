"""What the app keeps for its visitors. The server's process alone holds the file; runners and commands never open it.

    store = Store()                              # in a server: app.store.server.open_store()
    dataset = store.datasets.add(owner, "My films", staged=folder)
    store.histories.save(owner, dataset.id, "Westerns", ("a", "b"))

Every function of its parts takes the owner, and looks for the owner's rows alone; those of the store itself are the server's.
What a function has returned is on the disk: it is there after SIGKILL.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from app.home import RESTORING, Home, here
from app.store import migrations, records
from app.store.datasets import Datasets, Jobs
from app.store.file import StoreFile, Unavailable
from app.store.quota import Quota
from app.store.saved import Comparisons, Histories, Reports


class Store:
    """An open store. Safe to use from many threads."""

    def __init__(
        self,
        path: Path | None = None,
        steps: Sequence[str] = migrations.STEPS,
        home: Home | None = None,
        *,
        accept: bool = False,
    ) -> None:
        """path: the file, that of SEQSCOPE_HOME unless given. home: whose folders its rows speak of, where the file is a copy
        that lies elsewhere. accept: it is taken as it is, even if it lacks changes that it had.

        Raises SeqscopeError where it cannot be had.
        """
        self.home = home or (here() if path is None else Home(path.parent))
        if path is None:
            self.home.ready()
            self._expect_restored()
        self.file = StoreFile(path or self.home.database, steps, accept=accept)
        if path is None:
            try:
                self._expect_restored()  # a restore may have begun before the file was held
            except Unavailable:
                self.file.close()
                raise
        self.quota = Quota(self.file, self.home)
        self.datasets = Datasets(self.file, self.quota, self.home, self.gone)
        self.histories = Histories(self.file, self.quota, self.home)
        self.comparisons = Comparisons(self.file, self.quota, self.home)
        self.reports = Reports(self.file, self.quota, self.home)
        self.jobs = Jobs(self.file, self.quota, self.home)
        self.closed = threading.Event()
        self._listeners: list[Callable[[Path], None]] = []

    def _expect_restored(self) -> None:
        if (self.home.path / RESTORING).exists():
            raise Unavailable(
                f"{self.home.path} is being restored, or that was interrupted: run “seqscope store restore” again then."
            )

    def close(self) -> None:
        self.closed.set()
        self.file.close()

    def folders(self) -> list[Path]:
        """Of every row that has one, there or not: jobs, datasets."""
        jobs = [self.home.job(id) for (id,) in self.file.ask("select id from job")]
        datasets = self.file.ask("select owner, id from dataset")
        return jobs + [self.home.dataset(owner, id).path for owner, id in datasets]

    def unfinished(self) -> list[records.Job]:
        """Jobs of all owners that wait or run, in the order in which they came."""
        columns = records.columns(records.Job)
        rows = self.file.ask(f"select {columns} from job where state in ('queued', 'running') order by created, id")
        return [records.of_row(records.Job, row) for row in rows]

    def without_events(self) -> list[records.StoredDataset]:
        """Datasets of all owners that have no log, as far as their rows say."""
        columns = records.columns(records.StoredDataset)
        rows = self.file.ask(f"select {columns} from dataset where rows_events = 0")
        return [records.of_row(records.StoredDataset, row) for row in rows]

    def on_delete(self, listener: Callable[[Path], None]) -> None:
        """Calls it with the folder of every dataset that was deleted or has expired, such as to close what is open of it."""
        if listener not in self._listeners:
            self._listeners.append(listener)

    def gone(self, folder: Path) -> None:
        """Deletes the folder of a dataset that has no row any more, and tells those who listen."""
        self.home.discard(folder)
        for listener in self._listeners:
            listener(folder)
