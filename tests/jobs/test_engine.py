"""Jobs with the engine's own commands: a catalogue and a log, as they come from an upload, to models that answer, whatever
columns and ids are called; trainings of several steps, Recformer from what was carried over, TIGER from identifiers."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import tests.exporter  # noqa: F401 (for what it does)
from app.jobs import kinds
from app.jobs.spec import Job
from app.jobs.status import Status
from app.store.attributes import Among, Between
from app.store.catalogue import Catalogue
from app.uploads import files
from app.uploads import runner as uploads
from app.uploads.limits import MB, UploadLimits
from engine.runtime import Zoo
from tests.app.own import read_here
from tests.training.tiny import cycles, text_encoder

CarryOut = Callable[[Job], Status]
LOG = ("user", "item", "time")
TINY = {"training.epochs": 2, "training.patience": 0, "training.precision": "float32", "training.valid_users": 50}
ITEMS = 40
HOSTILE = [
    "genre:token_seq", "genre:16", "genre", "ratio 1:2", ":", "::", "a:0", "it's", 'say "hi"', "a.b", "a/b", "../../etc/passwd",
    "C:\\dir", "--fields", "-x", "two\nlines", "tab\there", "nul\x00", "🎬 type", "سنة", "\u202eright", "word " * 60, "Genre",
    "GENRE", "item", "item_id ", "popularity", "title ", "select", "order by", "x) FROM items; DROP TABLE items; --", "", " ",
    "a_b", "a b", "line", "user", "c0", "f[1]", "{name}", "%s", "<b>bold</b>", "$x$", "a,b", "a=b", "hovertext", "index", "NaN",
    "None", "_", "__class__", "count(*)", "rowid", "file", "value", "key", "id:token", "Cafe\u0301", "Caf\u00e9", "*", "?", "[0]",
    "#", "&amp;", "~",
]  # fmt: skip


def lightened(job: Job, *without: str) -> Job:
    """With a text encoder of next to no size, and fewer rounds. without: steps that are left out, by a part of their titles."""
    words = {
        "auto": text_encoder(),
        "words.encoder=auto": f"words.encoder={text_encoder()}",
        "training.epochs=1500": "training.epochs=2",
    }
    steps = []
    for step in job.steps:
        changed = tuple(words.get(word, word) for word in step.words)
        if step.words[:2] == ("train", "text-neighbours"):
            changed = (*changed, "--set", f"model.encoder={text_encoder()}")
        if not any(word in step.title for word in without):
            steps.append(step.model_copy(update={"words": changed}))
    return job.model_copy(update={"steps": tuple(steps)})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder of a dataset."""
    folder = tmp_path / "owners" / "a" / "datasets" / "x"
    (folder / "clean").mkdir(parents=True)
    return folder


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


def upload(folder: Path, attributes: list[str]) -> None:
    """A catalogue with these columns and a log, checked and accepted."""
    limits = UploadLimits(memory=700 * MB, threads=1, seconds=300)
    words = ("Red", "Blue", "Gold")
    rows = [
        [name, f"{words[n % 3]} thing {n}", *(f"{words[(n + place) % 3]} {place}" for place in range(len(attributes)))]
        for n, name in enumerate(ids())
    ]
    files.keep(folder, "catalogue", csv_text([["item_id", "title", *attributes], *rows]), limits)
    events = [
        [f"-u'{user}", ids()[item], str(1_000_000 + 60 * at)]
        for user, sequence in enumerate(cycles(40, ITEMS - 1))  # one that nobody has
        for at, item in enumerate(sequence)
    ]
    files.keep(folder, "log", csv_text([["user", "item", "time"], *events]), limits)
    readings = {what: files.guess(folder, what, limits).reading for what in ("catalogue", "log")}  # type: ignore[arg-type]
    assert not any(reading.faults(what) for what, reading in readings.items())  # type: ignore[arg-type]
    checked = files.check(folder, readings, limits)  # type: ignore[arg-type]
    assert checked.bad_rows == 0 and not checked.stopped, checked.counts
    files.accept(folder, checked, without_bad_rows=True)


@pytest.mark.timeout(900)
@pytest.mark.long
def test_a_catalogue_gives_way_when_a_log_comes_and_models_come_after_others_whatever_things_are_called(
    place: Path, tmp_path: Path, root: Path, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_run", read_here)
    upload(place, HOSTILE)
    jobs = tmp_path / "jobs"
    source = root / "exports" / "sample" / "recformer"

    def request(id: str, log: tuple[str, ...] = LOG) -> kinds.JobRequest:
        return kinds.JobRequest(id, place, jobs, name="x", title="-- it's", log=log)

    def opened(job: Job) -> Zoo:
        """What is shown once the job has gone well."""
        ended = carry_out(job)
        assert (ended.state, ended.notes) == ("done", ()), (ended.message, (jobs / job.id / "log.txt").read_text())
        assert {part.state for part in ended.parts} == {"done"}
        zoo = Zoo.open(place / "exports", warm=True)
        assert not zoo.refused
        return zoo

    # those of a catalogue: tests/data/test_without_log.py
    first = lightened(kinds.prepare(request("first", ()), ITEMS, [source]), "semantic IDs", "Tokenize")
    zoo = opened(first)
    assert not zoo.has_log and set(zoo.bundles) == {"recformer", "text-neighbours"} and len(zoo.spaces) == 1
    before = zoo.info.fingerprint

    zoo = opened(kinds.baselines(request("floor"), ITEMS))
    assert set(zoo.bundles) == set(kinds.baseline_names()) >= {"popularity", "markov"}

    zoo = opened(lightened(kinds.prepare(request("second"), ITEMS, [source])))
    assert zoo.has_log and zoo.info.fingerprint != before
    assert set(zoo.bundles) == {"recformer", "text-neighbours", *kinds.baseline_names()}
    for bundle in zoo.bundles.values():
        assert bundle.manifest.metrics["full"]["HR@10"] >= 0 and bundle.ranks_table() is not None
    assert set(zoo.tokenizations) == {"rqvae", "residual-kmeans"} and len(zoo.spaces) == 1
    assert set(zoo.item_ids) == set(ids())
    catalogue = Catalogue(zoo.items)
    for facet in catalogue.facets:
        chosen = Among((facet.values[0][0],)) if facet.values else Between(0, 1) if facet.kind == "range" else None
        assert chosen is None or catalogue.page("", {facet.name: chosen}, limit=5).total > 0, facet.name

    tuned = kinds.choose(place, "recformer-tuned", TINY)
    tiger = kinds.choose(place, "tiger", {**TINY, "model.dim": 16, "model.beam": 5})
    # what a job exports: tests/browser/test_whole_path.py; bundles of these two: tests/export, tests/generation
    opened(lightened(kinds.train(request("third"), [tuned, tiger]), "Evaluate", "Export"))
    for choice in (tuned.before, tuned, tiger):
        assert choice is not None and len(json.loads((place / choice.run / "curve.json").read_text())) == 2
