"""Whatever columns and ids are called, every step of a preparation takes them, and so does the catalogue."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from app.jobs import kinds
from app.store.catalogue import Among, Between, Catalogue
from app.uploads import files
from app.uploads.limits import UploadLimits
from engine.cli import main
from engine.runtime import Zoo
from engine.tabular.limits import MB
from tests.jobs.test_chains import lightened
from tests.training.tiny import cycles, text_encoder

ITEMS = 40
RECBOLE = ["genre:token_seq", "year:float", "class:token", "blurb:token_seq"]
HOSTILE = [
    "genre:token_seq", "genre:16", "genre", "ratio 1:2", ":", "::", "a:0", "it's", 'say "hi"', "a.b", "a/b", "../../etc/passwd",
    "C:\\dir", "--fields", "-x", "two\nlines", "tab\there", "nul\x00", "🎬 type", "سنة", "\u202eright", "word " * 60, "Genre",
    "GENRE", "item", "item_id ", "popularity", "title ", "select", "order by", "x) FROM items; DROP TABLE items; --", "", " ",
    "a_b", "a b", "line", "user", "c0", "f[1]", "{name}", "%s", "<b>bold</b>", "$x$", "a,b", "a=b", "hovertext", "index", "NaN",
    "None", "_", "__class__", "count(*)", "rowid", "file", "value", "key", "id:token", "Cafe\u0301", "Caf\u00e9", "*", "?", "[0]",
    "#", "&amp;", "~",
]  # fmt: skip


def csv_text(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def ids() -> list[str]:
    """Of items: as they may be written in a catalogue."""
    odd = [
        "-1", "--help", "a/b", "../x", 'q"q', "it's", "a,b", "🎬", "فيلم", "é", "1:2", "a.b", "%20", "#", "nan", "item", "=1+1",
        "C:\\x",
    ]  # fmt: skip
    return odd + [f"i{n}" for n in range(ITEMS - len(odd))]


def upload(folder: Path, attributes: list[str], recbole: bool) -> None:
    """A catalogue with these columns and a log, checked and accepted."""
    limits = UploadLimits(memory=700 * MB, threads=1, seconds=100)
    words = ("Red", "Blue", "Gold")
    rows = [
        [name, f"{words[n % 3]} thing {n}", *(f"{words[(n + place) % 3]} {place}" for place in range(len(attributes)))]
        for n, name in enumerate(ids())
    ]
    end = ":token" if recbole else ""
    files.keep(
        folder,
        "catalogue",
        csv_text([[f"item_id{end}", f"title{end}_seq" if recbole else "title", *attributes], *rows]),
        limits,
    )
    events = [
        [f"-u'{user}", ids()[item], str(1_000_000 + 60 * at)]
        for user, sequence in enumerate(cycles(40, ITEMS))
        for at, item in enumerate(sequence)
    ]
    head = ["user_id:token", "item_id:token", "timestamp:float"] if recbole else ["user", "item", "time"]
    files.keep(folder, "log", csv_text([head, *events]), limits)
    readings = {what: files.guess(folder, what, limits).reading for what in ("catalogue", "log")}  # type: ignore[arg-type]
    assert not any(reading.faults(what) for what, reading in readings.items())  # type: ignore[arg-type]
    checked = files.check(folder, readings, limits)  # type: ignore[arg-type]
    assert checked.bad_rows == 0 and not checked.stopped, checked.counts
    files.accept(folder, checked, without_bad_rows=True)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("names", ["recbole", "hostile"])
def test_no_name_breaks_a_step(
    names: str, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    place = tmp_path / "owners" / "a" / "datasets" / "x"
    place.mkdir(parents=True)
    upload(place, RECBOLE if names == "recbole" else HOSTILE, names == "recbole")
    source = root / "exports" / "sample" / "recformer"
    log = ("user", "item", "time")
    job = kinds.prepare(
        "job", place, tmp_path / "jobs", name="x", title="-- it's", items=ITEMS, log=log, sources=[source]
    )
    monkeypatch.chdir(place)
    for step in map(lightened, job.steps):
        if step.program == "engine":
            words = [text_encoder() if word == "auto" else word for word in step.words]
            if words[:2] == ["train", "text-neighbours"]:
                words += ["--set", f"model.encoder={text_encoder()}"]
            assert main(words) == 0, (step.title, capsys.readouterr().err[-2_000:])

    zoo = Zoo.open(place / "exports", warm=True)
    assert not zoo.refused and set(zoo.bundles) == {"recformer", "text-neighbours"}
    assert set(zoo.tokenizations) == {"rqvae", "residual-kmeans"} and len(zoo.spaces) == 1
    assert set(zoo.item_ids) == set(ids())
    if names == "recbole":
        assert {"genre", "year", "class", "blurb"} < set(zoo.items.schema.names)
    catalogue = Catalogue(zoo.items)
    for facet in catalogue.facets:
        chosen = Among((facet.values[0][0],)) if facet.values else Between(0, 1) if facet.kind == "range" else None
        assert chosen is None or catalogue.page("", {facet.name: chosen}, limit=5).total > 0, facet.name
