"""The table of identifiers: what it promises, and what it refuses to hold."""

import json
from pathlib import Path

import numpy as np
import pytest

from engine.data.identifiers import ABOUT, NONE, TABLE, Identifiers
from engine.errors import SeqscopeError

CODES = np.array([[0, 1, 0], [0, 1, 0], [2, 0, 1], [1, 1, NONE]], np.int32)


def table() -> Identifiers:
    return Identifiers(CODES, (3, 2, 4), names=("a", "b", "c"), about={"tokenizer": "made up"})


def test_it_comes_back_as_it_was_written(tmp_path: Path) -> None:
    table().write(tmp_path)
    found = Identifiers.read(tmp_path)
    assert np.array_equal(found.codes, CODES)
    assert (found.sizes, found.shared, found.names, found.about) == ((3, 2, 4), False, ("a", "b", "c"), table().about)


def test_tokens_have_a_slice_per_level_and_one_that_ends() -> None:
    assert table().vocabulary == 10
    assert table().tokens().tolist() == [[0, 4, 5], [0, 4, 5], [2, 3, 6], [1, 4, 9]]


def test_levels_may_share_their_words() -> None:
    shared = Identifiers(np.array([[0, 1], [2, 0]], np.int32), (3, 3), shared=True)
    assert shared.vocabulary == 3
    assert shared.tokens().tolist() == [[0, 1], [2, 0]]


def test_items_with_one_identifier_are_one_group() -> None:
    groups = table().groups()
    assert groups[0] == groups[1]
    assert len(set(groups.tolist())) == 3


@pytest.mark.parametrize(
    "codes, sizes",
    [
        ([[0, 3]], (1, 3)),
        ([[0, -2]], (1, 3)),
        ([[NONE, NONE]], (1, 3)),
        ([[NONE, 1]], (1, 3)),
        ([[0, 1]], (3,)),
        ([[0]], (0,)),
    ],
)
def test_impossible_codes_are_refused(codes: list[list[int]], sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        Identifiers(np.array(codes, np.int32), sizes)


def test_a_missing_or_damaged_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match=r"identifiers\.json is missing.*seqscope tokenize"):
        Identifiers.read(tmp_path)
    table().write(tmp_path)
    about = json.loads((tmp_path / ABOUT).read_text())
    (tmp_path / ABOUT).write_text(json.dumps(about | {"digest": "0" * 64}))
    with pytest.raises(SeqscopeError, match=f"{TABLE} is not the table"):
        Identifiers.read(tmp_path)
    (tmp_path / TABLE).write_bytes(b"PAR1 no")
    with pytest.raises(SeqscopeError, match="cannot be read"):
        Identifiers.read(tmp_path)
