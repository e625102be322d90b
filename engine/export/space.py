"""Write vectors of items that no model owns as exports/<dataset>/spaces/<name>/, as engine.bundle.embedding_spaces reads it."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine import __version__
from engine.bundle.embedding_spaces import ABOUT, MAP, VECTORS, Space, SpaceAbout
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.export import umap_map
from engine.export.side import TITLE, check_name_and_title, exported, file_of
from engine.runtime.bundle import Catalogue
from engine.runtime.zoo import SPACES
from engine.texts import Field
from engine.words import Stored

_SHORT = {"minilm": "MiniLM", "scratch": "own encoder"}
"""What an encoder is called where there is little room."""


def export_words_space(
    stored: Stored, dataset: Path, out: Path, *, name: str | None = None, title: str | None = None
) -> Path:
    """Write the vectors of the words of `dataset` to `out`/spaces/<name>; returns that folder.

    Raises SeqscopeError where `out` belongs to other data, or where there are too few items with words for a map.
    """
    encoder = stored.encoder
    name = name or encoder.name
    check_name_and_title(name, title)
    title = title or f"Words ({_SHORT.get(encoder.name.partition('-')[0], encoder.title)})"
    data = Dataset(dataset)
    if len(stored.texts) != data.num_items:
        raise SeqscopeError(f"{dataset} has {data.num_items:,} items, but {len(stored.texts):,} texts were embedded")
    rows = rounded(stored.vectors, np.array([not text for text in stored.texts]))
    target = out / SPACES / name
    with exported(target, data, out, None) as folder:
        about = _fill(folder, stored, rows, title[:TITLE], data)
        (folder / ABOUT).write_text(about.model_dump_json(indent=1) + "\n", "utf-8")
        # the reader has the last word
        Space.open(folder, Catalogue(data.info.name, data.info.fingerprint, data.num_items)).warm()
    return target


def rounded(vectors: npt.NDArray[np.float32], without: npt.NDArray[np.bool_]) -> npt.NDArray[np.float16]:
    """float16 [items, dim], rows of zeros for the items `without` a vector. Of unit vectors the cosines change by less than
    2⁻¹⁰. Raises SeqscopeError where float16 cannot hold them."""
    with np.errstate(over="ignore"):
        found = vectors.astype("<f2")
    found[without] = 0
    if not np.isfinite(found).all() or (~found.any(axis=1) & ~without).any():
        raise SeqscopeError("the vectors are too large or too small for float16; scale them to unit length")
    return found


def _fill(folder: Path, stored: Stored, rows: npt.NDArray[np.float16], title: str, data: Dataset) -> SpaceAbout:
    """Write every file but about.json, and return what goes into that."""
    encoder, some = stored.encoder, np.flatnonzero(rows.any(axis=1))
    if len(some) <= umap_map.NEIGHBOURS:
        raise SeqscopeError(
            f"{data.path} has {len(some)} items with words; a map needs more than {umap_map.NEIGHBOURS}"
        )
    np.save(folder / VECTORS, rows, allow_pickle=False)
    which, xy, how = umap_map.umap_map(rows[some].astype(np.float32), "cosine")  # of what readers will compare
    umap_map.write_map(folder / MAP, xy, item=some[which])
    return SpaceAbout(
        name=folder.name,
        title=title,
        summary=f"Near are items of which much the same is said. Read were {', '.join(_plain(stored.fields))}, by "
        f"{encoder.title}; nobody's history plays a part.",
        source=_source(encoder.source),
        licence=encoder.licence,
        order=10,
        dataset=data.info.name,
        fingerprint=data.info.fingerprint,
        num_items=data.num_items,
        dim=encoder.dim,
        geometry="cosine",
        without=data.num_items - len(some),
        projection=how,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        created_by=f"seqscope {__version__}",
        files={path.name: file_of(path) for path in sorted(folder.iterdir())},
    )


def _plain(fields: tuple[str, ...]) -> list[str]:
    return [Field.read(field).key for field in fields]


def _source(words: str) -> str:
    """Without the folders of the machine that an encoder was read from."""
    head, comma, rest = words.partition(",")
    return f"{Path(head).name}{comma}{rest}" if Path(head).is_absolute() or Path(head).is_dir() else words
