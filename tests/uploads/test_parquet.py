"""Parquet whose columns are odd: each is read by its place, and what is no text costs its own column alone."""

from __future__ import annotations

import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from engine.errors import Refused
from tests.uploads.conftest import Desk, counts

BROKEN = [b"fine", b"\xff\xfe", b"x"]


def packed(path: Path, columns: dict[str, Any]) -> bytes:
    pq.write_table(pa.table(columns), path / "made.parquet")
    return (path / "made.parquet").read_bytes()


def mislabelled(values: list[bytes]) -> pa.Array:
    """Bytes that a column of strings claims to be text."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


@pytest.mark.parametrize("column", [pa.array(BROKEN, pa.binary()), mislabelled(BROKEN)])
def test_a_column_that_is_no_text_costs_itself_alone(desk: Desk, tmp_path: Path, column: pa.Array) -> None:
    data = packed(tmp_path, {"item_id": ["1", "2", "3"], "title": ["a", "b", "c"], "cover": column})
    assert desk.guess(data).reading.columns[2].role == "skip"
    for role in ("skip", "text"):
        desk.readings["catalogue"] = desk.readings["catalogue"].with_role("cover", role)  # type: ignore[arg-type]
        checked = desk.check()
        assert counts(checked) == {"column_bytes": 1} and checked.first[0].column == "cover"
        assert desk.items()[1] == {"item_id": "2", "title": "b"}


def test_a_column_that_is_no_text_is_no_title(desk: Desk, tmp_path: Path) -> None:
    data = packed(tmp_path, {"item_id": ["1", "2", "3"], "title": pa.array(BROKEN, pa.binary())})
    guess = desk.guess(data)
    desk.readings["catalogue"] = guess.reading.with_role("title", "title")
    with pytest.raises(Refused, match="“title” holds bytes that are no text"):
        desk.check()


@pytest.mark.parametrize("names", [("id", "ID"), ("id", "file_row_number"), ("id", ""), ("id", "id")])
def test_whatever_columns_are_called_each_is_read(desk: Desk, tmp_path: Path, names: tuple[str, str]) -> None:
    table = pa.table([["1", "2"], ["a", "b"], ["x", "y"]], names=[names[0], "title", names[1]])
    pq.write_table(table, tmp_path / "made.parquet")
    desk.guess(tmp_path / "made.parquet")
    checked = desk.check()
    assert not checked.counts and [list(row.values()) for row in desk.items()] == [["1", "a", "x"], ["2", "b", "y"]]


def test_decimals_are_numbers_and_whole_ones_ids(desk: Desk, tmp_path: Path) -> None:
    numbers = {"item_id": [Decimal(10), Decimal(7)], "price": [Decimal("1.50"), Decimal(0)]}
    columns = {name: pa.array(values, pa.decimal128(38, 18)) for name, values in numbers.items()}
    desk.guess(packed(tmp_path, {**columns, "title": ["a", "b"]}))
    desk.check()
    assert [(row["item_id"], row["price"]) for row in desk.items()] == [("10", 1.5), ("7", 0.0)]


class _Keys(pe.KmsClient):  # type: ignore[misc]
    """As a service that keeps keys does, but keeping none."""

    def __init__(self, config: object) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_files_are_called_so(desk: Desk, tmp_path: Path, plaintext_footer: bool) -> None:
    config = pe.EncryptionConfiguration(
        footer_key="a", column_keys={"b": ["id", "title"]}, plaintext_footer=plaintext_footer
    )
    made = pe.CryptoFactory(_Keys).file_encryption_properties(pe.KmsConnectionConfig(), config)
    table = pa.table({"id": ["1"], "title": ["a"]})
    with pq.ParquetWriter(tmp_path / "made.parquet", table.schema, encryption_properties=made) as writer:
        writer.write_table(table)
    with pytest.raises(Refused, match="encrypted"):
        desk.guess(tmp_path / "made.parquet")
