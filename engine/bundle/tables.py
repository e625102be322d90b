"""Parquet tables and NumPy arrays of a bundle, checked and brought to fixed types, so that a page can rely on them."""

import ast
import contextlib
import hashlib
import io
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from engine.bundle.errors import BundleError
from engine.bundle.files import Folder, fill
from engine.bundle.manifest import File
from engine.files import BROKEN_ZIP

TABLE_BYTES = 1 << 30
_CHUNK = 1 << 22  # bytes read, hashed and checked at a time: small enough to stay in the cache between the three
CELLS = 200_000_000
"""Rows times columns (list elements counted) of one table, uncompressed: what a file may unfold to."""
COLUMNS = 200
TEXT_BYTES = 2 << 30
"""UTF-8 of all texts of a column, repetitions counted, and half of that of a table's; also what its pages may unfold to."""


@dataclass(frozen=True)
class Column:
    """A column: its type after reading; low and high, the values it may take (both included); nulls allowed or not."""

    type: pa.DataType
    low: float | None = None
    high: float | None = None
    nulls: bool = False


def read_table(
    folder: Folder, file: str, columns: dict[str, Column], *, expected: File | None = None, rest: bool = False
) -> pa.Table:
    """The named columns, cast to their types and checked; with `rest`, every other column of a plain type after them.

    Texts come as strings whatever their encoding. Raises BundleError.
    """
    content = folder.read(file, limit=TABLE_BYTES, expected=expected)
    with _readable(folder, file):
        parquet, names = _chosen(folder, file, content, columns, rest)
        return _checked(folder, file, parquet.read(columns=names, use_threads=False), names, columns, {})


def read_parts(folder: Folder, file: str, columns: dict[str, Column], rows: int = 1 << 16) -> Iterator[pa.Table]:
    """The table of `read_table` with `rest`, in parts of at most so many rows, one by one: it need not fit into memory."""
    content = folder.read(file, limit=TABLE_BYTES)
    unfolded: dict[str, int] = {}
    with _readable(folder, file):
        parquet, names = _chosen(folder, file, content, columns, rest=True)
        for group in range(parquet.num_row_groups):  # one by one: of several, all are prepared in advance
            for batch in parquet.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
                yield _checked(folder, file, pa.Table.from_batches([batch]), names, columns, unfolded)


@contextlib.contextmanager
def _readable(folder: Folder, file: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, OverflowError) as error:
        raise folder.fault(file, "not a readable Parquet file", error) from None


def _chosen(
    folder: Folder, file: str, content: bytes, columns: Mapping[str, Column], rest: bool
) -> tuple[pq.ParquetFile, list[str]]:
    """The file, its texts read as dictionaries, in lists too (a megabyte that a million rows repeat must be seen before it is
    unfolded), and the names of the columns to be read, which are of plain types."""
    parquet = pq.ParquetFile(
        pa.BufferReader(content), thrift_string_size_limit=100 << 20, thrift_container_size_limit=1_000_000
    )
    meta, schema = parquet.metadata, parquet.schema_arrow
    if meta.num_columns > COLUMNS or len(set(schema.names)) != len(schema.names):
        raise folder.fault(file, f"more than {COLUMNS} columns, or one name twice")
    cells, size = meta.num_rows * max(1, meta.num_columns), 0
    for group in range(meta.num_row_groups):
        row_group = meta.row_group(group)
        cells += sum(row_group.column(c).num_values for c in range(row_group.num_columns))
        size += row_group.total_byte_size
    if cells > CELLS or size > TEXT_BYTES:
        raise folder.fault(file, f"the table unfolds to more than {CELLS:,} cells or {TEXT_BYTES:,} bytes")
    for name in columns:
        if name not in schema.names:
            raise folder.fault(file, f"the column {name} is missing")
    names = list(columns) + ([name for name in schema.names if name not in columns] if rest else [])
    for name in names:
        kind = schema.field(name).type
        if not (_is_plain(kind) or (name in columns and pa.types.is_null(kind))):
            raise folder.fault(file, f"the column {name} is of a type that is not read here ({kind})")
    leaves = map(parquet.schema.column, range(meta.num_columns))
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    return pq.ParquetFile(pa.BufferReader(content), metadata=meta, read_dictionary=texts), names


def _checked(
    folder: Folder,
    file: str,
    table: pa.Table,
    names: list[str],
    columns: Mapping[str, Column],
    unfolded: dict[str, int],
) -> pa.Table:
    """unfolded: bytes of the texts of each column in the parts before; counted on."""
    table.validate(full=True)  # reading checks neither offsets nor UTF-8; a page would fail on them later
    table = table.select(names)
    for place, name in enumerate(names):
        values = table[name]
        if pa.types.is_dictionary(values.type.value_type if is_list(values.type) else values.type):
            values = _text(folder, file, name, values, unfolded)
        if name in columns:
            values = _cast(folder, file, name, values, columns[name])
        elif pa.types.is_floating(values.type):  # no number to filter, sort or draw by: missing, as an import has it
            values = pc.if_else(pc.is_finite(values), values, pa.scalar(None, values.type))
        table = table.set_column(place, name, values)
    return table


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_plain(kind: pa.DataType) -> bool:
    if is_list(kind):
        return _is_plain(kind.value_type) and not is_list(kind.value_type)
    return bool(pa.types.is_primitive(kind)) or is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _text(folder: Folder, file: str, name: str, column: pa.ChunkedArray, unfolded: dict[str, int]) -> pa.ChunkedArray:
    """Texts, or lists of them, that were read as dictionaries."""
    in_lists = is_list(column.type)
    for chunk in (pc.list_flatten(column) if in_lists else column).chunks:
        size = pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
        unfolded[name] = unfolded.get(name, 0) + size
    in_column, in_table = unfolded.get(name, 0), sum(unfolded.values())
    if in_column > TEXT_BYTES or in_table > 2 * TEXT_BYTES:
        raise folder.fault(
            file, f"the texts of the column {name} unfold to {in_column:,} bytes, those of all columns to {in_table:,}"
        )
    return column.cast(pa.list_(pa.string()) if in_lists else pa.string())


def _cast(folder: Folder, file: str, name: str, column: pa.ChunkedArray, expected: Column) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_list(expected.type):
        same = is_list(kind) and pa.types.is_integer(kind.value_type)
    elif pa.types.is_string(expected.type):
        same = is_text(kind)
    else:
        same = is_number(kind) and (pa.types.is_floating(expected.type) or pa.types.is_integer(kind))
        same = same or (expected.nulls and pa.types.is_null(kind))
    if not same:
        raise folder.fault(file, f"the column {name} must be {expected.type}, not {kind}")
    if column.null_count and not expected.nulls:
        raise folder.fault(file, f"the column {name} has {column.null_count:,} empty cells")
    try:
        column = column.cast(expected.type)
    except pa.ArrowInvalid as error:
        raise folder.fault(file, f"the column {name} holds numbers that {expected.type} cannot", error) from None
    values = pc.list_flatten(column) if pa.types.is_list(expected.type) else column
    if pa.types.is_list(expected.type) and values.null_count:
        raise folder.fault(file, f"the column {name} has empty elements")
    if pa.types.is_floating(values.type):
        if expected.nulls:  # writers differ in how they leave a cell empty; pages see nulls alone
            column = values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
        numbers = pc.drop_null(values).to_numpy()
        if not np.isfinite(numbers).all():
            raise folder.fault(file, f"the column {name} holds NaN or infinity")
    if len(values) > values.null_count and (expected.low is not None or expected.high is not None):
        least, most = (value.as_py() for value in pc.min_max(values).values())
        if (expected.low is not None and least < expected.low) or (expected.high is not None and most > expected.high):
            allowed = (
                f"{expected.low:g} to {expected.high:g}" if expected.high is not None else f"{expected.low:g} or more"
            )
            raise folder.fault(file, f"the column {name} holds {least:g} to {most:g}; it may hold {allowed}")
    return column


def read_places(folder: Folder, file: str, expected: File, items: int) -> pa.Table:
    """Places of items on a plane: item int32 (each at most once), x float32, y float32. Raises BundleError."""
    table = read_table(folder, file, side_tables(items)["map.parquet"], expected=expected)
    if len(np.unique(table["item"].to_numpy())) != table.num_rows:
        raise folder.fault(file, "an item stands on the map twice")
    return table


def side_tables(items: int) -> dict[str, dict[str, Column]]:
    """File → column → what it may hold, in a bundle of a catalogue of that many items."""
    number, real, item = pa.int32(), pa.float64(), Column(pa.int32(), 0, items - 1)
    ranks = {
        "user": Column(number, 0),
        "target": item,
        "history_length": Column(number, 0),
        "protocol": Column(pa.string()),
        "rank": Column(real, 1, items),
    }
    return {
        "ranks.parquet": ranks,
        "seeds.parquet": {**ranks, "seed": Column(pa.int64())},
        "exposure.parquet": {
            "protocol": Column(pa.string()),
            "k": Column(number, 1),
            "item": item,
            "count": Column(pa.int64(), 0),
        },
        "map.parquet": {"item": item, "x": Column(pa.float32()), "y": Column(pa.float32())},
        "curve.parquet": {
            "step": Column(pa.int64(), 0),
            "epoch": Column(real, 0),
            "seconds": Column(real, 0),
            "loss": Column(real, nulls=True),
            "valid_ndcg": Column(real, 0, 1, nulls=True),
        },
    }


ARRAY_BYTES = 16 << 30


def read_matrix(folder: Folder, file: str, expected: File, shape: tuple[int, ...], kind: str = "<f4") -> Any:
    """Reads an array in one pass: content hashed, every number checked to be finite. Raises BundleError.

    kind: of its numbers, as a .npy file says it: "<f4", "<f2", …
    """
    digest = hashlib.sha256()
    with folder.open(file, limit=ARRAY_BYTES, expected=expected) as (stream, size):
        table = _read_array(folder, file, stream, size, shape, kind, digest.update)
    folder.check(file, digest.hexdigest(), expected)
    return table


def read_archive(
    folder: Folder, file: str, expected: File, arrays: Mapping[str, tuple[tuple[int, ...], str]]
) -> dict[str, Any]:
    """The arrays of an .npz file, deflated or not: name → shape and kind, these and no others. Raises BundleError.

    What an archive unfolds to is its author's to choose, so a caller bounds the shapes.
    """
    content = folder.read(file, limit=TABLE_BYTES, expected=expected)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sorted(member.filename for member in members) != sorted(f"{name}.npy" for name in arrays):
                raise folder.fault(file, f"it must hold the arrays {', '.join(arrays)}, each once, and nothing else")
            if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
                raise folder.fault(file, "its arrays must be deflated, or not compressed")
            read = {}
            for name, (shape, kind) in arrays.items():
                member = archive.getinfo(f"{name}.npy")
                with archive.open(member) as stream:
                    read[name] = _read_array(folder, file, stream, member.file_size, shape, kind)  # type: ignore[arg-type]
            return read
    except (*BROKEN_ZIP, RuntimeError, OSError) as error:
        raise folder.fault(file, "not an archive of NumPy arrays that can be read", error) from None


def _read_array(
    folder: Folder,
    file: str,
    stream: BinaryIO,
    size: int,
    shape: tuple[int, ...],
    kind: str,
    seen: Callable[[Any], None] = lambda content: None,
) -> Any:
    """seen: is shown every part of what is read, in turn."""
    seen(check_header(folder, file, stream, size, shape, kind))
    try:
        table = np.empty(shape, kind)
    except MemoryError:
        raise folder.fault(file, f"not enough memory for {size:,} bytes") from None
    step = max(1, _CHUNK // max(1, table.itemsize * int(np.prod(shape[1:]))))
    for start in range(0, len(table), step):
        chunk = table[start : start + step]
        content = chunk.view(np.uint8).reshape(-1).data
        if fill(stream, content) != len(content):
            raise folder.fault(file, "the file ends early")
        seen(content)
        if table.dtype.kind == "f" and not np.isfinite(chunk).all():
            row = start + int(np.flatnonzero(~np.isfinite(chunk).reshape(len(chunk), -1).all(axis=1))[0])
            row_of = "the row of item" if len(shape) == 2 else "level"
            raise folder.fault(file, f"{row_of} {row} holds NaN or infinity")
    table.flags.writeable = False
    return table


def check_header(
    folder: Folder, file: str, stream: BinaryIO, size: int, shape: tuple[int, ...], kind: str = "<f4"
) -> bytes:
    """The bytes before the numbers, once they announce floats of that kind, C order and `shape`, and the file is as long as that
    takes.

    numpy's own reader believes the header (it allocates what a header claims, and unpickles objects on request), hence this one.
    """

    def wrong(reason: str) -> BundleError:
        return folder.fault(file, reason)

    start = bytearray(12)
    if fill(stream, memoryview(start)[:10]) < 10 or start[:6] != b"\x93NUMPY":
        raise wrong("not a NumPy file")
    if start[6] == 1:
        length, begin = struct.unpack_from("<H", start, 8)[0], bytes(start[:10])
    elif start[6] in (2, 3) and fill(stream, memoryview(start)[10:]) == 2:
        length, begin = struct.unpack_from("<I", start, 8)[0], bytes(start)
    else:
        raise wrong("a NumPy file of an unknown version")
    if length > 10_000:
        raise wrong("the header is longer than any real one")
    text = bytearray(length)
    if fill(stream, memoryview(text)) < length:
        raise wrong("the file ends early")
    try:
        described = ast.literal_eval(text.decode("latin-1").strip())
        announced = (described["descr"], described["fortran_order"], described["shape"])
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        raise wrong("the header cannot be read") from None
    if announced[0] != kind:
        raise wrong(f"numbers must be {np.dtype(kind)} ({kind}), not {str(announced[0])[:40]}")
    if announced[1] is not False:
        raise wrong("rows must lie one after the other (C order)")
    if announced[2] != shape or any(type(n) is not int for n in announced[2]):
        raise wrong(f"the shape must be {shape}, not {str(announced[2])[:60]}")
    needed = len(begin) + length + np.dtype(kind).itemsize * int(np.prod(shape, dtype=object))
    if size != needed:
        raise wrong(f"the file has {size:,} bytes where its header announces {needed:,}")
    return begin + bytes(text)
