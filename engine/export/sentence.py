"""What the bundle of a model that compares texts has beside the others: centre.npy, what was taken off every vector.

The text encoder lies outside the bundle: one that was trained on the catalogue goes to exports/<dataset>/words/<name>, any other
is found where the app has its encoders (`seqscope embed --export`).
"""

from __future__ import annotations

import numpy as np

from engine.bundle.manifest import Sentence
from engine.errors import SeqscopeError
from engine.export.draft import Draft
from engine.export.words import export_words
from engine.models.text_neighbours import TextNeighbours
from engine.runtime.text import CENTRE, TEXT_ENCODERS
from engine.training.vectors import SCRATCH, TextVectors
from engine.words import find


def write(model: TextNeighbours, draft: Draft) -> None:
    """centre.npy, and the encoder where it is the catalogue's own."""
    known = TextVectors.read(draft.run)
    np.save(draft.folder / CENTRE, model.centre.numpy().astype("<f4")[None], allow_pickle=False)
    if known.encoder == SCRATCH:
        encoder = find(known.place)
        if encoder.digest != known.digest:
            raise SeqscopeError(
                f"the text encoder at {known.place} is not the one that {draft.run} was made with. Train again."
            )
        export_words(encoder, draft.out / TEXT_ENCODERS)
    draft.sentence = Sentence(
        encoder=known.encoder, title=known.title, digest=known.digest, fields=list(known.fields), without=known.without,
        unknown=known.unknown,
    )  # fmt: skip
