"""Jobs with the engine's own commands: a catalogue and a log, as they come from an upload, to models that answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.jobs import kinds
from app.jobs.spec import Job
from app.jobs.status import Status
from engine.runtime import Zoo
from tests.training.tiny import cycles, text_encoder

CarryOut = Callable[[Job], Status]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A dataset's folder with an upload that was checked: 40 items with words, a log of 60 people."""
    folder = tmp_path / "owners" / "a" / "datasets" / "x"
    (folder / "clean").mkdir(parents=True)
    sequences = cycles(60, 40)
    rows = [
        (f"u{user}", f"i{item}", 1_000_000 + 60 * at) for user, s in enumerate(sequences) for at, item in enumerate(s)
    ]
    names = [f"{('Red', 'Blue', 'Gold')[n % 3]} thing {n}" for n in range(41)]  # one that nobody has
    items = pa.table(
        {"item_id": [f"i{n}" for n in range(41)], "title": names, "brand": [f"b{n % 4}" for n in range(41)]}
    )
    pq.write_table(items, folder / "clean" / "items.parquet")
    log = pa.table(dict(zip(("user", "item", "time"), map(list, zip(*rows, strict=True)), strict=True)))
    pq.write_table(log, folder / "clean" / "log.parquet")
    return folder


@pytest.mark.timeout(900)
def test_a_catalogue_is_shown_at_once_and_gives_way_when_a_log_comes(
    place: Path, tmp_path: Path, root: Path, carry_out: CarryOut
) -> None:
    jobs = tmp_path / "jobs"
    log = place / "clean" / "log.parquet"
    os.rename(log, tmp_path / "log.parquet")
    source = root / "exports" / "sample" / "recformer"

    def prepared(id: str, columns: tuple[str, ...], *without: str) -> Status:
        """without: steps that are left out, by a part of their titles."""
        job = kinds.prepare(id, place, jobs, name="x", title="A shop", items=41, log=columns, sources=[source])
        # a text encoder of next to no size, and fewer rounds
        words = {
            "auto": text_encoder(),
            "words.encoder=auto": f"words.encoder={text_encoder()}",
            "training.epochs=1500": "training.epochs=2",
        }
        steps = [
            one.model_copy(update={"words": tuple(words.get(word, word) for word in one.words)}) for one in job.steps
        ]
        steps = [
            one.model_copy(update={"words": (*one.words, "--set", f"model.encoder={text_encoder()}")})
            if one.words[:2] == ("train", "text-neighbours")
            else one
            for one in steps
            if not any(word in one.title for word in without)
        ]
        return carry_out(job.model_copy(update={"steps": tuple(steps)}))

    first = prepared("first", ())
    assert (first.state, first.notes) == ("done", ()), (first.message, (jobs / "first" / "log.txt").read_text())
    zoo = Zoo.open(place / "exports", warm=True)
    assert not zoo.refused and not zoo.has_log
    assert set(zoo.bundles) == {"recformer", "text-neighbours"}
    assert set(zoo.tokenizations) == {"rqvae", "residual-kmeans"} and len(zoo.spaces) == 1
    before = zoo.info.fingerprint

    os.rename(tmp_path / "log.parquet", log)
    second = prepared("second", ("user", "item", "time"), "identifiers")
    assert (second.state, second.notes) == ("done", ()), (second.message, (jobs / "second" / "log.txt").read_text())
    zoo = Zoo.open(place / "exports", warm=True)
    assert not zoo.refused and zoo.has_log and zoo.info.fingerprint != before
    assert set(zoo.bundles) == {"recformer", "text-neighbours"}
    for bundle in zoo.bundles.values():
        assert bundle.manifest.metrics["full"]["HR@10"] >= 0 and bundle.ranks_table() is not None
    # once more: what was made of the same is not made again
    third = prepared("third", ("user", "item", "time"), "identifiers", "ords", "neighbours", "Carry")
    assert third.state == "done" and third.parts[0].seconds == 0.0
