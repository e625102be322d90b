"""The check of one upload: catalogue, log and both beside each other. Writes findings.* and the clean files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from app.uploads import clean
from app.uploads.limits import UploadLimits
from app.uploads.row_checks import check_events, check_items, compare
from engine.errors import Refused
from engine.tabular.database import connect, sql_path, value
from engine.tabular.findings import CheckResult, Findings, HeldOut
from engine.tabular.reading import KINDS, FileKind, Reading, Record
from engine.tabular.rows import load_rows

Say = Callable[[float, str], None]
"""Takes how far the step is, 0 to 1, and what it does."""


class UploadedFile(Record):
    """A file and how to read it."""

    path: Path
    reading: Reading


def check(
    work: Path, files: Mapping[FileKind, UploadedFile], limits: UploadLimits, say: Say, *, known: Path | None = None
) -> CheckResult:
    """Writes findings.parquet, findings.csv and, unless something stops it, clean/ into `work`.

    known: the clean items of a catalogue that was accepted before, in place of `catalogue`; they are not written again.
    Where no row of the catalogue can be used, the log is not looked at.
    """
    catalogue, log = files.get("catalogue"), files.get("log")
    for kind, file in files.items():
        if faults := file.reading.faults(kind):
            raise Refused(" ".join(faults))
    folder = work / "clean"
    folder.mkdir(mode=0o700)
    readable = [file.path for file in files.values()] + ([known] if known is not None else [])
    with connect(work, limits, readable=readable) as con:
        findings = Findings(con)
        read: dict[str, int] = {}
        rows_kept: dict[str, int] = {}
        kept_before = 0

        def load(kind: FileKind, start: float) -> None:
            file = files[kind]
            say(start, f"Reading the {kind}")
            try:
                read[kind] = load_rows(con, work, file.path, file.reading, kind, findings, limits)
            except Refused as refused:
                raise Refused(f"The {kind} cannot be read. {refused}")
            if not read[kind]:
                raise Refused(
                    f"The {kind} has a header and nothing below it." if file.reading.header else f"The {kind} is empty."
                )

        if catalogue is not None:
            load("catalogue", 0.02)
            say(0.2, "Checking the catalogue")
            check_items(con, catalogue.reading, findings, limits)
            rows_kept["catalogue"] = value(con, "SELECT count(*) FROM good")
            if rows_kept["catalogue"]:
                say(0.35, "Writing the catalogue")
                clean.write_items(con, catalogue.reading, folder, limits)
            else:
                findings.add("catalogue", "no_rows")
                log = None  # whatever it holds, nothing can be used
            con.execute("DROP TABLE rows; DROP TABLE good")
        if known is not None:
            con.execute(f"CREATE TABLE known AS SELECT item_id FROM read_parquet({sql_path(known)})")
            kept_before = value(con, "SELECT count(*) FROM known")
        numbers = {"users": 0, "events": 0, "items": rows_kept.get("catalogue", kept_before)}
        held_out: HeldOut | None = None
        ratings: tuple[float, ...] = ()
        if log is not None:
            load("log", 0.5 if catalogue else 0.02)
            say(0.65, "Checking the log")
            held_out, ratings = check_events(con, log.reading, findings)
            rows_kept["log"] = numbers["events"] = value(con, "SELECT count(*) FROM events")
            numbers["users"] = value(con, 'SELECT count(DISTINCT "user") FROM events')
            if catalogue is not None or known is not None:
                say(0.8, "Comparing log and catalogue")
                numbers["items"] += compare(con, log.reading, findings)
            else:
                numbers["items"] = value(con, "SELECT count(DISTINCT item) FROM events")
                clean.write_items_of_log(con, log.reading, folder, limits)
            if not findings.stopped:
                say(0.85, "Writing the log")
                clean.write_log(con, log.reading, folder, findings.bad_rows())
        say(0.92, "Writing what was found")
        findings.write(work / "findings.parquet", work / "findings.csv")
        checked = CheckResult(
            counts=findings.counts(),
            first=findings.first(),
            findings=findings.total(),
            listed=findings.listed(),
            read=read,
            kept=rows_kept,
            left_out=tuple(entry for kind in KINDS if kind in files for entry in findings.left_out(kind)),
            items=numbers["items"],
            users=numbers["users"],
            events=numbers["events"],
            held_out=held_out,
            ratings=ratings,
        )
    if checked.stopped:
        shutil.rmtree(folder)
        return checked
    return checked.model_copy(update={"fingerprint": clean.fingerprint(sorted(folder.iterdir()))})
