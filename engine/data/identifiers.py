"""Identifiers of items: the short tuples of codes that a tokenizer gives to a catalogue and a generator learns to write.

    table = Identifiers.read(Path("runs/beauty/rqvae"))
    table.codes[17]            # the codes of item 17, one per level
    table.tokens()             # the same as tokens of one vocabulary, for a network

Two files beside each other: identifiers.parquet (item int32, codes list<int32>) and identifiers.json (everything else).
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from engine.data.ragged import offsets_of
from engine.errors import SeqscopeError
from engine.files import load_json, replacing, write_json

TABLE, ABOUT = "identifiers.parquet", "identifiers.json"
NONE = -1
"""Stands in the trailing places of an identifier that is shorter than others."""
LEVELS = 64
CODES = 1 << 24


@dataclass(frozen=True)
class Identifiers:
    """codes: int32 [items, levels], 0 ≤ codes[i, l] < sizes[l], or NONE in trailing places."""

    codes: npt.NDArray[np.int32]
    sizes: tuple[int, ...]
    """How many codes each level has; all of them, used or not."""
    shared: bool = False
    """True: a code means the same at every level (words of a title), and all levels draw from one vocabulary."""
    names: tuple[str, ...] = ()
    """What each level is called; level 1, 2, … where nothing better is known."""
    about: dict[str, Any] = field(default_factory=dict)
    """Where they come from: tokenizer, recipe, dataset fingerprint, digests of what it was trained on."""

    def __post_init__(self) -> None:
        codes = self.codes
        if codes.ndim != 2 or codes.shape[1] != len(self.sizes) or not 1 <= len(self.sizes) <= LEVELS:
            raise ValueError(f"codes {codes.shape} do not fit {len(self.sizes)} levels")
        if self.names and len(self.names) != len(self.sizes):
            raise ValueError(f"{len(self.names)} names for {len(self.sizes)} levels")
        if self.shared and len(set(self.sizes)) > 1:
            raise ValueError("levels that share a vocabulary have one size")
        if not all(1 <= size <= CODES for size in self.sizes):
            raise ValueError(f"levels have 1 to {CODES} codes, not {self.sizes}")
        if len(codes) and ((codes < NONE) | (codes >= np.array(self.sizes))).any():
            raise ValueError("a code lies outside its level")
        short = codes == NONE
        if short[:, 0].any() or (short[:, :-1] & ~short[:, 1:]).any():
            raise ValueError("an identifier has at least one code, and none after its end")

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def levels(self) -> int:
        return len(self.sizes)

    @property
    def ends(self) -> bool:
        """Whether some identifiers are shorter than others, so that a network has to write where one ends."""
        return bool((self.codes == NONE).any())

    @property
    def offsets(self) -> tuple[int, ...]:
        """The token of code 0 of each level."""
        if self.shared:
            return (0,) * self.levels
        return tuple(itertools.accumulate((0, *self.sizes[:-1])))

    @property
    def vocabulary(self) -> int:
        """Tokens: the codes of all levels, and one that ends an identifier where some are short (the last one)."""
        return (self.sizes[0] if self.shared else sum(self.sizes)) + int(self.ends)

    def tokens(self) -> npt.NDArray[np.int64]:
        """int64 [items, levels]: each code as a token of the vocabulary; trailing places hold the token that ends."""
        tokens = self.codes.astype(np.int64) + np.array(self.offsets)
        tokens[self.codes == NONE] = self.vocabulary - 1
        return tokens

    def groups(self) -> npt.NDArray[np.int64]:
        """int64 [items]: the same number for items that share an identifier, counted from 0."""
        return np.unique(self.codes, axis=0, return_inverse=True)[1].astype(np.int64)

    def digest(self) -> str:
        """sha256 of the codes and of what they mean."""
        words = json.dumps([self.sizes, self.shared, self.codes.shape])
        return hashlib.sha256(words.encode() + np.ascontiguousarray(self.codes, "<i4").tobytes()).hexdigest()

    def write(self, folder: Path) -> None:
        """Both files, the table first: a folder without identifiers.json holds none."""
        self.write_table(folder)
        about = {name: value for name, value in dataclasses.asdict(self).items() if name != "codes"}
        write_json(folder / ABOUT, about | {"items": len(self), "digest": self.digest()})

    def write_table(self, folder: Path) -> None:
        """identifiers.parquet alone: beside a manifest that says the rest."""
        present = self.codes != NONE
        values = pa.array(self.codes[present])
        offsets = offsets_of(present.sum(1)).astype(np.int32)
        table = pa.table(
            {
                "item": pa.array(np.arange(len(self), dtype=np.int32)),
                "codes": pa.ListArray.from_arrays(pa.array(offsets), values),
            }
        )
        with replacing(folder / TABLE) as staged:
            pq.write_table(table, staged, compression="zstd")

    @classmethod
    def read(cls, folder: Path) -> Identifiers:
        """Raises SeqscopeError where a file is missing, damaged, or does not belong to the other."""
        try:
            about = load_json(folder / ABOUT)
            table = pq.read_table(folder / TABLE, columns=["item", "codes"])
            rows = table["codes"].combine_chunks()
            sizes = tuple(int(size) for size in about["sizes"])
            codes = np.full((table.num_rows, len(sizes)), NONE, np.int32)
            lengths = np.diff(rows.offsets.to_numpy())
            codes[np.arange(len(sizes)) < lengths[:, None]] = rows.flatten().to_numpy()
            if not np.array_equal(table["item"].to_numpy(), np.arange(table.num_rows)):
                raise ValueError("items must be numbered 0, 1, …")
            identifiers = cls(codes, sizes, bool(about["shared"]), tuple(about["names"]), dict(about["about"]))
            if identifiers.digest() != about["digest"]:
                raise ValueError(f"{TABLE} is not the table that {ABOUT} describes")
        except FileNotFoundError as error:
            raise SeqscopeError(
                f"{error.filename or folder / TABLE} is missing, so {folder} holds no identifiers. "
                "Make some with `seqscope tokenize`."
            )
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise SeqscopeError(f"{folder}: identifiers cannot be read ({error}). Run `seqscope tokenize` again.")
        return identifiers
