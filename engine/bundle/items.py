"""The items of a dataset, items.parquet: held in memory where they are few, mapped from a file on the disk where they are many.

    if items.are_many(path):
        items.write(path, into)        # once: items.arrow, by_id.npy
        zoo = Zoo.open(path, items=items.read(into))

What is mapped costs no memory of the process but for the pages that are being looked at, and those the system may take back.
"""

import bisect
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.bundle.files import Folder
from engine.bundle.tables import TABLE_BYTES, Column, is_list, is_text, read_parts, read_table
from engine.errors import SeqscopeError

FILE, MAPPED, BY_ID = "items.parquet", "items.arrow", "by_id.npy"
FEW = 20_000
"""Items that are held in memory."""
_FEW_BYTES = FEW * 1_000
_MOST = 4 << 30
"""Bytes that the items of one catalogue may take on the disk."""
_COLUMNS = {
    "item": Column(pa.int32(), 0),
    "item_id": Column(pa.string()),
    "title": Column(pa.string()),
    "popularity": Column(pa.int64(), 0),
}


class Items:
    """The table (item int32, row i is item i; item_id, title string; popularity int64; attributes), and its texts.

    by_id: int32 [items], the items in the order of the UTF-8 bytes of their ids; None: few enough for a dict.
    """

    def __init__(self, table: pa.Table, by_id: npt.NDArray[np.int32] | None = None) -> None:
        self.table = table
        self._by_id = by_id

    @functools.cached_property
    def ids(self) -> Sequence[str]:
        return self._texts("item_id")

    @functools.cached_property
    def titles(self) -> Sequence[str]:
        return self._texts("title")

    def position(self, item_id: str) -> int | None:
        """The number of the item with this id; None where there is none."""
        return self._find(item_id)

    @functools.cached_property
    def _find(self) -> Callable[[str], int | None]:
        if self._by_id is None:
            return {item_id: item for item, item_id in enumerate(self.ids)}.get
        return functools.lru_cache(maxsize=50_000)(functools.partial(_searched, self.ids, self._by_id))

    def _texts(self, name: str) -> Sequence[str]:
        texts: list[str] | Texts = Texts(self.table[name]) if len(self.table) > FEW else self.table[name].to_pylist()
        return texts


def _searched(ids: Sequence[str], order: npt.NDArray[np.int32], item_id: str) -> int | None:
    at = bisect.bisect_left(order, item_id.encode("utf-8", "surrogatepass"), key=lambda item: ids[item].encode())
    return int(order[at]) if at < len(order) and ids[order[at]] == item_id else None


class Texts(Sequence[str]):
    """A column of texts, read when they are asked for."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        text: str = self._column[int(place)].as_py()
        return text

    def __iter__(self) -> Iterator[str]:
        for chunk in self._column.chunks:
            yield from chunk.to_pylist()


def rows(table: pa.Table, items: Sequence[int] | npt.NDArray[np.integer[Any]]) -> pa.Table:
    """The rows of these items, in their order. `table.take` would copy every column as a whole first."""
    numbers = np.asarray(items, np.int64)
    places, parts, first = [], [], 0
    for batch in table.to_batches():
        inside = np.flatnonzero((numbers >= first) & (numbers < first + len(batch)))
        if len(inside):
            places.append(inside)
            parts.append(batch.take(pa.array(numbers[inside] - first)))
        first += len(batch)
    if sum(map(len, places)) < len(numbers):
        raise IndexError(f"there are {first:,} items")
    if not parts:
        return table.slice(0, 0)
    return pa.Table.from_batches(parts).combine_chunks().take(pa.array(np.argsort(np.concatenate(places))))


def are_many(path: Path) -> bool:
    """Whether the dataset in this folder has too many items, or too long ones, to be held in memory.

    A file that cannot be read is not many: whoever opens the dataset says why.
    """
    try:
        if _foot(path).num_rows > FEW or size(path) > _FEW_BYTES:
            return True
        held = 0  # Parquet writes a repeated text once; in memory each item has its own
        for part in read_parts(Folder(path, path.name), FILE, _COLUMNS, rows=1 << 10):
            held += part.nbytes
            if held > _FEW_BYTES:
                return True
    except (SeqscopeError, pa.ArrowException, OSError, ValueError):
        pass
    return False


def size(path: Path) -> int:
    """Bytes of the items of the dataset in this folder, as its file says. Raises BundleError, ValueError as pa.ArrowException."""
    foot = _foot(path)
    return sum(foot.row_group(group).total_byte_size for group in range(foot.num_row_groups))


def _foot(path: Path) -> pq.FileMetaData:
    with Folder(path, path.name).open(FILE, limit=TABLE_BYTES) as (stream, _):  # a pipe would be waited at for ever
        return pq.read_metadata(stream)


def hold(path: Path) -> Items:
    """All of them, in memory. Raises BundleError."""
    folder = Folder(path, path.name)
    table = read_table(folder, FILE, _COLUMNS, rest=True)
    if not np.array_equal(table["item"].to_numpy(), np.arange(table.num_rows)):
        raise folder.fault(FILE, "row i must be item i")
    if len(table["item_id"].unique()) != table.num_rows:
        raise folder.fault(FILE, "an item_id stands twice")
    return Items(table)


def write(path: Path, into: Path) -> None:
    """Writes items.arrow and by_id.npy, for `read`. Only the ids must fit into memory together. Raises BundleError."""
    folder = Folder(path, path.name)
    rows = held = 0
    writer = None
    try:
        for part in read_parts(folder, FILE, _COLUMNS):
            if not np.array_equal(part["item"].to_numpy(), np.arange(rows, rows + len(part))):
                raise folder.fault(FILE, "row i must be item i")
            rows, held = rows + len(part), held + part.nbytes
            if held > _MOST:
                raise folder.fault(FILE, f"the items unfold to more than {_MOST:,} bytes")
            if writer is None:
                writer = pa.ipc.new_file(into / MAPPED, part.schema)
            writer.write_table(part.combine_chunks())
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise folder.fault(FILE, "there are no items")
    ids = mapped(into / MAPPED)["item_id"].combine_chunks()
    order = pc.sort_indices(ids)
    for start in range(0, rows - 1, 1 << 16):
        few = ids.take(order.slice(start, (1 << 16) + 1))
        if pc.any(pc.equal(few[1:], few[:-1])).as_py():
            raise folder.fault(FILE, "an item_id stands twice")
    np.save(into / BY_ID, order.to_numpy().astype(np.int32))


def read(folder: Path) -> Items:
    """What `write` wrote, mapped. Raises OSError, ValueError (also as pa.ArrowException) where it is damaged."""
    table = mapped(folder / MAPPED)
    order = np.load(folder / BY_ID, mmap_mode="r", allow_pickle=False)
    if order.shape != (len(table),) or order.dtype != np.int32 or order.min() < 0 or order.max() >= len(table):
        raise ValueError(f"{BY_ID} does not fit {MAPPED}")
    return Items(table, order)


def mapped(path: Path) -> pa.Table:
    """The table of an Arrow file. Raises OSError, ValueError (also as pa.ArrowException) where it is damaged.

    Offsets are checked, because wrong ones would end the process. That all bytes are UTF-8 is not: it would read the whole file.
    """
    for column in _map(path).columns:  # by a mapping of its own, whose pages are given back
        for chunk in column.chunks:
            _look_at_offsets(chunk)
    return _map(path)


def _map(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _look_at_offsets(array: pa.Array) -> None:
    array.validate()  # sizes, and the first and the last offset
    kind = array.type
    if is_list(kind):
        offsets = array.offsets.to_numpy()
        _look_at_offsets(array.values)
    elif is_text(kind) and len(array):
        wide = np.int64 if pa.types.is_large_string(kind) else np.int32
        offsets = np.frombuffer(array.buffers()[1], wide)[array.offset : array.offset + len(array) + 1]
    else:
        return
    if (offsets[1:] < offsets[:-1]).any():
        raise ValueError("texts or lists overlap")
