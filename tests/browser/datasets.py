"""The datasets of the server that tests/browser looks at: small, and every text in them tries to be more than text."""

from pathlib import Path

import pyarrow.parquet as pq

from tests import large
from tests.app.conftest import HOSTILE, ODD_IDS, rename
from tests.app.readers import make_readers
from tests.app.test_page_catalogue import films
from tests.app.writers import WRITER
from tests.runtime.bundles import make_zoo, rewrite, seal
from tests.runtime.generators import with_attention, write_generator
from tests.runtime.spaces import write_space
from tests.runtime.studies import toy_studies
from tests.runtime.tokenizations import write_tokenization

TITLES = ["<img src=x onerror='window.hit=1'>", *HOSTILE[1:]]
"""Of the first items of `hostile`; their ids are ODD_IDS."""
LONG = "A shop's title that says all about an article, and says it again in more words than any list of it has the room for"
"""Of the next item."""


def write(exports: Path) -> None:
    make_zoo(exports, name="toys")
    hostile(exports)
    codes(exports)
    many(exports / "many", 20_100)
    make_readers(exports / "made", TITLES).rename(exports / "readers")
    (exports / "made").rmdir()


def hostile(exports: Path) -> Path:
    """Every kind of model, studies and one model that cannot be opened; the first user has the items with hostile titles."""
    path = make_zoo(exports, name="hostile")
    rename(path, [*TITLES, LONG], [*ODD_IDS, "long"])
    histories = pq.read_table(path / "users.parquet")["history"].to_pylist()
    rewrite(path / "users.parquet", history=[list(range(8)), *histories[1:]])
    rewrite(path / "beta" / "ranks.parquet", rank=[9.0, 1.0, 1.0, 2.0])
    seal(path / "alpha", summary="<img src=x onerror='window.hit = 1'> [link](https://example.org) $x$")
    seal(path / "beta", title="<script>window.hit = 1</script> $x$")
    with_attention(write_generator(path, WRITER), WRITER, whole=True)
    write_tokenization(path, title="<b onmouseover='window.hit=1'>RQ-VAE")
    toy_studies(path)
    (path / "broken").mkdir()
    (path / "broken" / "manifest.json").write_text("{}")
    return path


def many(path: Path, items: int) -> Path:
    """A catalogue without models, on a map."""
    large.make(path, items, words=5)
    write_space(path, items=items, dataset=path.name, fingerprint=large.FINGERPRINT)
    return path


def codes(exports: Path) -> None:
    """Films with attributes, a space of words and three tokenizers."""
    path = make_zoo(exports, name="codes")
    pq.write_table(films(), path / "items.parquet")
    write_space(path, "minilm", without=(6,))
    write_tokenization(path, "rqvae", maps=True, title="RQ <b>", order=1)
    write_tokenization(path, "letter", seed=1, order=2)
    write_tokenization(path, "third", seed=2, order=3)
