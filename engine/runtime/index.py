"""index.npy in memory: every item's row and bias, and the exact retrieval over all of them.

score(i) = query · row_i + bias_i is one matrix-vector product of the file's own layout [items, dim + 1] with [query, 1]:
nothing is copied, and BLAS reads the index once, at the speed of memory.
"""

from __future__ import annotations

import ast
import hashlib
import struct
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from engine.runtime.faults import BundleError
from engine.runtime.files import Folder, fill
from engine.runtime.manifest import File

Float32 = npt.NDArray[np.float32]
Int32 = npt.NDArray[np.int32]

INDEX_BYTES = 16 << 30
_CHUNK = 1 << 22  # bytes read, hashed and checked at a time: small enough to stay in the cache between the three


@dataclass(frozen=True)
class ItemIndex:
    """table: float32 [items, dim + 1], bias last (identity: [items, 1], bias alone).

    duplicates: int [m]; originals: int [m]: row duplicates[j] is byte for byte row originals[j]. BLAS rounds a row's product
    by the place where the row stands, so equal items would differ in the last bit; their scores are set equal instead.
    """

    table: Float32
    identity: bool
    duplicates: npt.NDArray[np.intp]
    originals: npt.NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def dim(self) -> int:
        """Length of a query."""
        return len(self.table) if self.identity else self.table.shape[1] - 1

    @property
    def rows(self) -> Float32:
        """float32 [items, dim], a view; empty for an identity index."""
        return self.table[:, :-1]

    def scores(self, query: Float32) -> Float32:
        """query: float32 [dim] → a new float32 [items], infinite or NaN where float32 does not hold the sum."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.identity:
                return query + self.table[:, 0]
            scores: Float32 = self.table @ np.append(query, np.float32(1))
        scores[self.duplicates] = scores[self.originals]
        return scores

    def lengths(self) -> Float32:
        """Euclidean length of every row, float32 [items]."""
        with np.errstate(over="ignore"):
            found: Float32 = np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows))
        return found

    def cosines(self, item: int, lengths: Float32) -> Float32:
        """Cosine of the angle between the item's row and every row, float32 [items]; 0 where a row has no length."""
        place = np.append(self.rows[item], np.float32(0))  # the bias is no part of an item's place
        with np.errstate(over="ignore", invalid="ignore"):
            products: Float32 = self.table @ place
            scale = lengths * lengths[item]
            found = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
        np.clip(found, -1, 1, out=found)
        found[self.duplicates] = found[self.originals]
        return found

    def distances(self, item: int) -> Float32:
        """Euclidean distance of the item's row to every row, float32 [items].

        By differences: |x|² + |y|² − 2 x·y would lose all digits for the very items asked for, the near ones.
        """
        found = np.empty(len(self), np.float32)
        step = max(1, _CHUNK // (4 * self.table.shape[1]))
        for start in range(0, len(self), step):
            with np.errstate(over="ignore"):
                apart = self.rows[start : start + step] - self.rows[item]
                np.einsum("ij,ij->i", apart, apart, out=found[start : start + step])
        return np.sqrt(found, out=found)


def best(scores: Float32, k: int) -> Int32:
    """Item numbers of the k highest scores (fewer where fewer are finite), best first, equal scores by item number."""
    k = min(k, len(scores))
    threshold = scores[np.argmax(scores)] if k == 1 else np.partition(scores, len(scores) - k)[len(scores) - k]
    if threshold == -np.inf:
        above = np.flatnonzero(scores > -np.inf)
        return above[np.lexsort((above, -scores[above]))].astype(np.int32)
    # Above the threshold stand fewer than k; of those at it, the first in order. A constant model is not sorted at all.
    above = np.flatnonzero(scores > threshold)
    above = above[np.lexsort((above, -scores[above]))]
    level = np.flatnonzero(scores == threshold)[: k - len(above)]
    return np.concatenate([above, level]).astype(np.int32)


def read_index(folder: Folder, expected: File, items: int, dim: int, identity: bool) -> ItemIndex:
    """Reads index.npy in one pass: content hashed, every number checked to be finite. Raises BundleError."""
    shape = (items, 1 if identity else dim + 1)
    with folder.open("index.npy", limit=INDEX_BYTES, expected=expected) as (stream, size):
        header = check_header(folder, stream, size, shape)
        digest = hashlib.sha256(header)
        try:
            table = np.empty(shape, "<f4")
        except MemoryError:
            raise folder.fault("index.npy", f"not enough memory for {size:,} bytes") from None
        words = np.empty(len(table), np.uint64)
        # Odd multipliers: a sum over them, modulo 2**64, tells different rows apart; equal sums are compared in full below.
        odd = np.random.default_rng(0).integers(0, 1 << 63, shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
        step = max(1, _CHUNK // (4 * shape[1]))
        for start in range(0, items, step):
            chunk = table[start : start + step]
            content = chunk.view(np.uint8).reshape(-1).data
            if fill(stream, content) != len(content):
                raise folder.fault("index.npy", "the file ends early")
            digest.update(content)
            if not np.isfinite(chunk).all():
                row = start + int(np.flatnonzero(~np.isfinite(chunk).all(axis=1))[0])
                raise folder.fault("index.npy", f"the row of item {row} holds NaN or infinity")
            words[start : start + step] = chunk.view("<u4") @ odd
    folder.check("index.npy", digest.hexdigest(), expected)
    table.flags.writeable = False
    if identity:
        none = np.empty(0, np.intp)
        return ItemIndex(table, True, none, none)
    return ItemIndex(table, False, *_duplicates(table, words))


def _duplicates(table: Float32, words: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    order = np.argsort(words, kind="stable")
    same = words[order][1:] == words[order][:-1]
    if not same.any():
        return np.empty(0, np.intp), np.empty(0, np.intp)
    first = np.concatenate([[True], ~same])
    originals = order[np.flatnonzero(first)[np.cumsum(first) - 1]][~first]
    duplicates = order[~first]
    equal = (table[duplicates] == table[originals]).all(axis=1)
    return duplicates[equal], originals[equal]


def check_header(folder: Folder, stream: BinaryIO, size: int, shape: tuple[int, ...]) -> bytes:
    """The bytes before the numbers, once they announce float32, C order and `shape`, and the file is as long as that takes.

    numpy's own reader believes the header (it allocates what a header claims, and unpickles objects on request), hence this one.
    """

    def wrong(reason: str) -> BundleError:
        return folder.fault("index.npy", reason)

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
        found = (described["descr"], described["fortran_order"], described["shape"])
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        raise wrong("the header cannot be read") from None
    if found[0] != "<f4":
        raise wrong(f"numbers must be float32 (<f4), not {str(found[0])[:40]}")
    if found[1] is not False:
        raise wrong("rows must lie one after the other (C order)")
    if found[2] != shape or any(type(n) is not int for n in found[2]):
        raise wrong(f"the shape must be {shape}, not {str(found[2])[:60]}")
    needed = len(begin) + length + 4 * int(np.prod(shape, dtype=object))
    if size != needed:
        raise wrong(f"the file has {size:,} bytes where its header announces {needed:,}")
    return begin + bytes(text)
