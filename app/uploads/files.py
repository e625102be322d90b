"""Files of an upload on their way into use: kept as they came, checked, accepted.

upload/catalogue-3f…, upload/log-9a…      what was uploaded, byte for byte; the client's names are only shown
upload/reading.json                       how they are read
findings.parquet, findings.csv            what the check found
waiting/items.parquet, waiting/log.parquet  the clean files, until somebody wants them used
clean/…                                   the same, in use
"""

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from app.uploads import OnProgress, archive
from app.uploads.archive import Unpacked
from app.uploads.clean import LOG
from app.uploads.limits import UploadLimits
from app.uploads.runner import UploadFailed, run
from engine.files import read_json, write_json
from engine.tabular.findings import CheckResult
from engine.tabular.reading import MB, FileKind, Guess, Reading

UPLOAD, WAITING, CLEAN = "upload", "waiting", "clean"
READING = "reading.json"
FINDINGS = ("findings.parquet", "findings.csv")


def keep(folder: Path, kind: FileKind, content: BinaryIO | bytes, limits: UploadLimits) -> Path:
    """Writes an upload as it came; an earlier one of the same kind goes. Raises UploadFailed where it is too large or empty, or
    where the folder was deleted."""
    target = folder / UPLOAD
    try:
        target.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        raise UploadFailed("What was uploaded before was deleted. Begin the upload again.") from None
    path = target / f"{kind}-{secrets.token_hex(8)}"
    try:
        with path.open("xb") as file:
            total = 0
            for block in [content] if isinstance(content, bytes) else iter(lambda: content.read(MB), b""):
                total += len(block)
                if total > limits.upload:
                    raise UploadFailed(
                        f"The file is larger than {limits.upload // MB:,} MB, which is the most that is taken here. "
                        "Pack it with gzip, or upload a part of it."
                    )
                file.write(block)
        if not total:
            raise UploadFailed("The file is empty.")
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    for earlier in target.glob(f"{kind}-*"):
        if earlier != path:
            earlier.unlink(missing_ok=True)
    return path


def find(folder: Path, kind: FileKind) -> Path | None:
    """The upload of this kind, if there is one."""
    return next(iter(sorted((folder / UPLOAD).glob(f"{kind}-*"))), None)


def guess(
    folder: Path,
    kind: FileKind,
    limits: UploadLimits,
    *,
    fixed: Mapping[str, str] | None = None,
    owner: str = "",
    on_progress: OnProgress | None = None,
) -> Guess:
    """What the upload seems to be. fixed: about → value as in ReadingChoice, "role:NAME" → role. Raises UploadFailed.

    owner: whose turn it is.
    """
    request = {"path": str(_upload(folder, kind)), "what": kind, "fixed": dict(fixed or {})}
    answer = run("guess", request, folder, limits, owner=owner, on_progress=on_progress)
    return Guess.model_validate(answer)


def is_archive(folder: Path, kind: FileKind) -> bool:
    """Whether the upload is a ZIP archive."""
    return archive.is_archive(_upload(folder, kind))


def unpack(
    folder: Path,
    kind: FileKind,
    kinds: Sequence[FileKind],
    limits: UploadLimits,
    *,
    owner: str = "",
    on_progress: OnProgress | None = None,
) -> Unpacked:
    """Puts what is in the upload of this kind, a ZIP archive, in its place, and semantic IDs into the folder, where jobs look for
    them. kinds: that are wanted of it. Raises UploadFailed."""
    packed = _upload(folder, kind)

    def keep_results(work: Path) -> None:
        packed.unlink(missing_ok=True)
        for unpacked in kinds:
            if (work / unpacked).is_file():
                os.replace(work / unpacked, folder / UPLOAD / f"{unpacked}-{secrets.token_hex(8)}")
        if (work / archive.INDEX).is_file():
            os.replace(work / archive.INDEX, folder / archive.INDEX)

    request = {"path": str(packed), "kinds": [kind, *(other for other in kinds if other != kind)]}
    answer = run("unpack", request, folder, limits, owner=owner, on_progress=on_progress, keep=keep_results)
    return Unpacked.model_validate(answer)


def move(folder: Path, kind: FileKind, to: FileKind) -> None:
    """Takes the upload of one kind for one of the other."""
    path = _upload(folder, kind)
    os.replace(path, path.with_name(f"{to}-{secrets.token_hex(8)}"))


def check(
    folder: Path,
    readings: Mapping[FileKind, Reading],
    limits: UploadLimits,
    *,
    known: Path | None = None,
    owner: str = "",
    on_progress: OnProgress | None = None,
) -> CheckResult:
    """Checks the uploads that `readings` names; what came of an earlier check goes. Raises UploadFailed.

    known: the clean items of an accepted catalogue, against which a log that comes later is checked. owner: whose turn it is.
    """
    uploads = {}
    for kind, reading in readings.items():
        if faults := reading.faults(kind):
            raise UploadFailed(" ".join(faults))
        uploads[kind] = {"path": str(_upload(folder, kind)), "reading": reading.model_dump(mode="json")}

    def keep_results(work: Path) -> None:
        clear(folder)
        for name in FINDINGS:
            os.replace(work / name, folder / name)
        if (work / CLEAN).is_dir():
            os.replace(work / CLEAN, folder / WAITING)
        _write_readings(folder, readings)

    clear(folder)
    request = {"files": uploads, "known": None if known is None else str(known)}
    answer = run("check", request, folder, limits, owner=owner, on_progress=on_progress, keep=keep_results)
    return CheckResult.model_validate(answer)


def accept(folder: Path, checked: CheckResult, *, without_bad_rows: bool) -> None:
    """Puts the clean files into use. without_bad_rows: the visitor has said that rows may be left out. Raises UploadFailed."""
    if checked.stopped or not (folder / WAITING).is_dir():
        raise UploadFailed("The files cannot be used as they are. Mend what stops them, and check them again.")
    if checked.bad_rows and not without_bad_rows:
        raise UploadFailed(
            f"Rows that cannot be used: {checked.bad_rows:,}. Mend them, or choose to go on without them."
        )
    shutil.rmtree(folder / CLEAN, ignore_errors=True)
    os.replace(folder / WAITING, folder / CLEAN)


def add_log(staged: Path, folder: Path) -> None:
    """Moves the accepted log of one folder to the catalogue in another: as it came, as it is read, and clean."""
    clean, upload, before = folder / CLEAN, folder / UPLOAD, find(staged, "log")
    if not (staged / CLEAN / LOG).is_file() or before is None:
        raise UploadFailed("The log has not been checked yet.")
    _write_readings(folder, readings(folder) | readings(staged))
    for path in upload.glob("log-*"):
        path.unlink(missing_ok=True)
    os.replace(before, upload / before.name)
    os.replace(staged / CLEAN / LOG, clean / LOG)


def take_back_log(staged: Path, folder: Path) -> None:
    """Undoes `add_log`, as far as it came: the log is staged again, and the catalogue without one."""
    taken = find(folder, "log")
    if (folder / CLEAN / LOG).exists():
        os.replace(folder / CLEAN / LOG, staged / CLEAN / LOG)
    if taken is not None:
        os.replace(taken, staged / UPLOAD / taken.name)
    _write_readings(folder, {kind: reading for kind, reading in readings(folder).items() if kind != "log"})


def clear(folder: Path) -> None:
    """Takes away what came of an earlier check."""
    for name in FINDINGS:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / WAITING, ignore_errors=True)


def readings(folder: Path) -> dict[FileKind, Reading]:
    """How the uploads were read in the last check; empty where there was none."""
    try:
        stored: Any = read_json(folder / UPLOAD / READING)
        return {kind: Reading.model_validate(reading) for kind, reading in stored.items()}
    except ValueError:
        return {}


def as_stored(folder: Path) -> dict[str, Any]:
    """`readings`, as the store has them."""
    return {kind: reading.model_dump(mode="json") for kind, reading in readings(folder).items()}


def _write_readings(folder: Path, readings: Mapping[FileKind, Reading]) -> None:
    write_json(folder / UPLOAD / READING, {kind: reading.model_dump() for kind, reading in readings.items()})


def forget(folder: Path, kinds: Iterable[FileKind]) -> None:
    """Takes uploads away, and what was found in them."""
    for kind in kinds:
        for path in (folder / UPLOAD).glob(f"{kind}-*"):
            path.unlink(missing_ok=True)
        if kind == "catalogue":
            (folder / archive.INDEX).unlink(missing_ok=True)
    clear(folder)


def _upload(folder: Path, kind: FileKind) -> Path:
    path = find(folder, kind)
    if path is None:
        raise UploadFailed(f"There is no {kind} yet. Upload one first.")
    return path
