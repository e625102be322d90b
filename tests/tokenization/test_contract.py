"""What every tokenizer promises."""

from pathlib import Path

import numpy as np
import pytest

from engine.data.identifiers import NONE, Identifiers
from engine.errors import SeqscopeError
from engine.tokenizers import run
from engine.tokenizers.base import tokenizers
from engine.tokenizers.collisions import CollisionsConfig, extend, settle
from tests.tokenization.tiny import fit, fitted, material

every = pytest.mark.parametrize("name", list(tokenizers()))


@every
def test_codes_are_valid_identifiers(name: str) -> None:
    tokenizer = fitted(name)
    codes = tokenizer.identify(material())
    assert codes.dtype == np.int32
    assert len(Identifiers(codes, tokenizer.sizes, tokenizer.shared, tokenizer.names)) == len(material())


@every
def test_the_same_seed_gives_the_same_codes(name: str) -> None:
    again = fit(name, material(), epochs=10)
    assert np.array_equal(again.identify(material()), fitted(name).identify(material()))


def test_another_seed_gives_others() -> None:
    other = fit("random", material(), seed=2)
    assert not np.array_equal(other.identify(material()), fitted("random").identify(material()))


@every
def test_it_comes_back_from_its_file(name: str, tmp_path: Path) -> None:
    run.save_tokenizer(fitted(name), tmp_path / run.TOKENIZER)
    back = run.load_tokenizer(tmp_path / run.TOKENIZER)
    assert back.sizes == fitted(name).sizes
    assert back.config == fitted(name).config
    for given in (material(), material(48, seed=5, prefix="new")):
        assert np.array_equal(back.identify(given), fitted(name).identify(given))


@every
def test_one_item_alone_has_the_codes_it_has_among_all(name: str) -> None:
    rows = np.array([3, 50, 200])
    assert np.array_equal(fitted(name).identify(material().take(rows)), fitted(name).identify(material())[rows])


@every
def test_items_of_another_catalogue_get_codes(name: str) -> None:
    other = material(48, seed=5, prefix="new")
    tokenizer = fitted(name)
    codes = tokenizer.identify(other)
    Identifiers(codes, tokenizer.sizes, tokenizer.shared)
    if name in ("rqvae", "letter", "residual-kmeans", "p5-cid", "p5-semid"):
        # item i of either catalogue is of the same group, and nothing but its group decides about its first code
        known = tokenizer.identify(material())[:48]
        assert (codes[:, 0] == known[:, 0]).mean() > 0.9


@every
@pytest.mark.parametrize("policy", ["append", "needed"])
def test_a_further_code_tells_all_items_apart(name: str, policy: str) -> None:
    config = CollisionsConfig(policy)  # type: ignore[arg-type]
    found = settle(fitted(name), material(), config, {"from": "a test"})
    assert len(np.unique(found.codes, axis=0)) == len(found)
    own = found.codes[:, : len(fitted(name).sizes)].copy()
    own[own >= np.array(fitted(name).sizes)] = NONE
    assert np.array_equal(own, fitted(name).identify(material()))


@every
@pytest.mark.parametrize("policy", ["append", "needed", "keep"])
def test_further_items_go_beside_the_known_ones(name: str, policy: str) -> None:
    config = CollisionsConfig(policy)  # type: ignore[arg-type]
    known = settle(fitted(name), material(), config, {})
    codes = extend(fitted(name), known, material(48, seed=5, prefix="new"), config)
    Identifiers(codes, known.sizes, known.shared)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / run.TOKENIZER
    with pytest.raises(SeqscopeError, match="no tokenizer"):
        run.load_tokenizer(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(SeqscopeError, match="no tokenizer"):
        run.load_tokenizer(path)
    run.save_tokenizer(fitted("random"), path)
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(SeqscopeError, match="no tokenizer"):
        run.load_tokenizer(path)


@every
def test_it_says_what_it_misses(name: str) -> None:
    needs = tokenizers()[name].needs
    bare = material()
    bare = type(bare)(bare.items)
    if needs:
        with pytest.raises(ValueError, match="this tokenizer reads"):
            fit(name, bare)
    else:
        fit(name, bare)


@pytest.mark.parametrize("name", ["rqvae", "residual-kmeans"])
def test_vectors_of_another_width_are_refused(name: str) -> None:
    given = material(16)
    wide = type(given)(given.items, np.zeros((16, 13), np.float32))
    with pytest.raises(ValueError, match="13 dimensions"):
        fitted(name).identify(wide)
