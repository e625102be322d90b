"""Titles, category paths and collaborative clusters: what each of P5's identifiers says."""

import numpy as np
import pyarrow as pa
import pytest

from engine.data.identifiers import NONE
from engine.data.ragged import Ragged
from engine.tokenizers import p5, report
from engine.tokenizers.base import Material
from engine.tokenizers.p5 import BYTES, CategoryPath, CollaborativeClusters, Titles, spectral, together
from tests.tokenization.tiny import fit, groups, material


def catalogue(**columns: list[object]) -> Material:
    count = len(next(iter(columns.values())))
    return Material(pa.table({"item_id": [f"i{n}" for n in range(count)], **columns}))


def titles(given: Material, **changes: int) -> Titles:
    found = fit("p5-tid", given, **changes)
    assert isinstance(found, Titles)
    return found


def test_the_codes_of_a_title_are_its_words() -> None:
    given = catalogue(title=["Red soap", "red SOAP bar", "दिल दाल", "bar of soap", "the of a the of a", "दिल दाल"])
    tokenizer = titles(given, length=20)
    words = [[tokenizer.vocabulary[code - BYTES] for code in row if code >= BYTES] for row in tokenizer.identify(given)]
    assert words[:3] == [["red", "soap"], ["red", "soap", "bar"], ["दिल", "दाल"]]


@pytest.mark.parametrize("title", ["만화책", "東京物語", "كتاب", "Straße 9", "x" * 200, "", "!!!"])
def test_any_script_has_an_identifier(title: str) -> None:
    tokenizer = titles(material())
    row = tokenizer.identify(catalogue(title=[title]))[0]
    assert row[0] != NONE
    assert (row < tokenizer.sizes[0]).all()


def test_rare_words_are_spelled_by_pieces_that_many_begin_with() -> None:
    given = catalogue(title=[f"moisture{end}" for end in ("a", "be", "cc", "dip", "x", "yy")])
    tokenizer = titles(given, length=20)
    assert "moisture·" in tokenizer.vocabulary
    found = tokenizer.identify(catalogue(title=["moisturezq"]))[0]
    piece = BYTES + tokenizer.vocabulary.index("moisture·")
    assert found[found != NONE].tolist() == [piece, ord("z"), ord("q")]


def test_a_catalogue_without_titles_is_refused() -> None:
    with pytest.raises(ValueError, match="no titles"):
        titles(catalogue(name=["a", "b"]))
    with pytest.raises(ValueError, match="no titles"):
        titles(catalogue(title=["i0", "i1"]))  # their ids stand in for them


def test_an_id_in_place_of_a_title_is_no_word() -> None:
    given = catalogue(title=["red soap", "i1", "red i1 soap i3", "i3", "i1 i3"])
    tokenizer = titles(given, length=20)
    codes = tokenizer.identify(given)
    assert (codes[1] == codes[3]).all() and (codes[2, :4] != NONE).all()


def test_paths_share_their_beginnings_and_the_root_is_left_out() -> None:
    given = catalogue(
        categories=[["Shop", "Hair", "Oil"], ["Shop", "Hair", "Wax"], ["Shop", "Skin"], ["Shop", "Skin", "Oil"]]
    )
    tokenizer = fit("p5-semid", given)
    assert isinstance(tokenizer, CategoryPath)
    codes = tokenizer.identify(given)
    assert tokenizer.levels == [["Hair", "Skin"], ["Oil", "Wax"]]
    assert codes.tolist() == [[0, 0], [0, 1], [1, NONE], [1, 0]]
    other = catalogue(categories=[["Shop", "Nails", "Oil"], [], ["Shop", "Skin", "Sun", "Deep"]])
    assert tokenizer.identify(other).tolist() == [[2, 0], [2, NONE], [1, 2]]
    assert tokenizer.identify(catalogue(title=["no categories here"])).tolist() == [[2, NONE]]


def test_a_text_of_categories_is_cut_at_its_commas() -> None:
    tokenizer = fit("p5-semid", catalogue(genres=["Drama, War", "Drama", None]))
    assert tokenizer.identify(catalogue(genres=["Drama, War", "Drama", None])).tolist() == [
        [0, 0],
        [0, NONE],
        [1, NONE],
    ]


def test_the_column_is_named_where_it_is_missing() -> None:
    with pytest.raises(ValueError, match=r"no column 'kind'.*title"):
        fit("p5-semid", catalogue(title=["a"]), column="kind")
    with pytest.raises(ValueError, match=r"no column called categories, .* or tags; .*tokenizer\.column"):
        fit("p5-semid", catalogue(title=["a"]))


def test_items_that_people_take_together_share_their_first_codes() -> None:
    tokenizer = fit("p5-cid", material(), clusters=16, leaf=400)
    found = report.purity(tokenizer.identify(material()), groups()[1])[0]
    assert found["purity"] > 0.9 > 3 * found["chance"]


def test_no_groups_are_found_where_people_take_anything() -> None:
    given = material()
    rng = np.random.default_rng(0)
    log = Ragged.of([rng.choice(len(given), 6, replace=False).tolist() for _ in range(300)])
    tokenizer = fit("p5-cid", Material(given.items, training=log), clusters=16, leaf=400)
    found = report.purity(tokenizer.identify(given), groups()[1])[0]
    assert found["purity"] < found["chance"] + 0.1


def test_large_parts_are_cut_again() -> None:
    shallow, deep = (fit("p5-cid", material(), clusters=4, leaf=leaf) for leaf in (400, 30))
    assert shallow.identify(material()).shape[1] == 1
    codes = deep.identify(material())
    assert codes.shape[1] > 1
    sizes = np.unique(codes, axis=0, return_counts=True)[1]
    assert sizes.max() <= 30 or codes.shape[1] == 6


def test_items_without_events_and_new_ones_have_a_code_of_their_own() -> None:
    given = material()
    log = Ragged.of([[0, 1, 2], [1, 2], [3, 4, 5], [4, 5]])
    blind = fit("p5-cid", Material(given.items, training=log), clusters=2, leaf=400)
    codes = blind.identify(given)
    assert set(codes[:6, 0]) == {0, 1}
    assert set(codes[6:, 0]) == {2}
    assert set(blind.identify(material(8, prefix="new"))[:, 0]) == {2}
    seeing = fit("p5-cid", given)
    assert isinstance(seeing, CollaborativeClusters)
    assert set(seeing.identify(material(8, seed=9, prefix="new"))[:, 0]) != {seeing.config.clusters}


def test_pairs_are_counted_once_per_sequence() -> None:
    graph = together(Ragged.of([[0, 1, 1], [1, 0], [2]]), 4).toarray()
    assert graph.tolist() == [[0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("dense", [0, 512])
def test_spectral_clustering_parts_what_is_not_joined(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(p5, "DENSE", dense)
    log = Ragged.of([list(range(part * 40, part * 40 + 40)) for part in range(3)])
    labels = spectral(together(log, 120), 3, np.random.default_rng(0))
    assert [len(set(labels[part * 40 : part * 40 + 40])) for part in range(3)] == [1, 1, 1]
    assert len(set(labels)) == 3
