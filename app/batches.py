"""Every model's lists for many histories, as a job of its owner, which outlives the page and the server.

    batches.start(owner, "sample", models.path, is_own=False, given=folder, …)
    for one in batches.of(owner, "sample"): one.row, one.status, batches.result(one)

What it is given and what it makes lie with the job. Over a visitor's own dataset it works in that dataset's folder, so that no
other job does meanwhile; over one of the server's, which nobody changes, in its own. Nothing here needs Streamlit.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from app import home, work
from app.jobs import kinds, spec
from app.jobs.spec import FILES
from app.reports.histories import PEOPLE, Look
from app.store.records import Job
from app.store.server import open_store
from app.uploads.limits import UploadLimits
from app.uploads.runner import run
from app.work import Work
from engine.errors import SeqscopeError
from engine.files import read_json

MEMORY = 6_000
"""MB that the process may take."""
FORMS = {"parquet": "Parquet", "csv": "CSV"}


def start(
    owner: str,
    dataset: str,
    zoo: Path,
    *,
    is_own: bool,
    given: Path,
    models: Sequence[str],
    k: int,
    form: str,
    titles: bool,
    name: str,
    columns: Mapping[str, str] | None = None,
) -> Job:
    """given: a staged folder that becomes the job's; the one file in it has the histories, else they are the dataset's people.

    name: of the file that is offered; columns: role → column, where somebody said so.

    Raises SeqscopeError, QuotaReached among them; the staged folder is then gone.
    """
    try:
        if form not in FORMS:
            raise SeqscopeError(f"Lists are written as {' or '.join(FORMS.values())}.")
        uploads = sorted(path.name for path in given.iterdir())
        open_store().quota.check(owner, bytes=max(1, home.size(given)))
        manifests = [read_json(zoo / model / "manifest.json") for model in models]
        # one that writes codes answers one history after the other
        few = home.size(given) <= kinds.FEW_BYTES and not any(about.get("generator") for about in manifests)

        def make(job: str) -> spec.Job:
            jobs = home.root() / "jobs"
            workplace = home.here().dataset(owner, dataset).path if is_own else jobs / job
            files = os.path.relpath(jobs / job / FILES, workplace)
            source = f"{files}/{uploads[0]}" if uploads else PEOPLE
            words = ["report", "batch", os.path.relpath(zoo, workplace) if is_own else os.path.abspath(zoo), source]
            words += ["--to", f"{files}/{_output(form)}", "--bounded", "--memory", str(MEMORY), "-k", str(k)]
            words += ["--overwrite", "--models", *models, *(["--titles"] if titles else [])]
            words += [f"--{role}-column={column}" for role, column in (columns or {}).items()]
            request = kinds.JobRequest(job, workplace, jobs, name="", title="", owner=owner, dataset=dataset)
            return kinds.batch(request, words, short=few)

        model_titles = [manifest.get("title", model) for model, manifest in zip(models, manifests, strict=True)]
        about = {"models": list(models), "model_titles": model_titles, "k": k, "form": form, "name": name}
        return work.submit(owner, dataset, "batch", about, make, given)
    finally:
        home.here().discard(given)  # nothing where it went along


def look(folder: Path, path: Path, columns: Mapping[str, str], limits: UploadLimits, owner: str = "") -> Look:
    """What a file of histories seems to hold, read by a child in `folder` (app/uploads). Raises SeqscopeError."""
    request = {"path": str(path), "columns": dict(columns)}
    return Look.model_validate(run("histories", request, folder, limits, owner=owner))


def of(owner: str, dataset: str | None = None) -> list[Work]:
    """The newest first; over one dataset, or all."""
    return [work.get(owner, row.id) for row in open_store().jobs.of(owner, dataset) if row.kind == "batch"]


def result(job: Work) -> Path | None:
    """What came out, as long as it is kept."""
    path = home.here().job(job.row.id) / FILES / _output(str(job.row.spec.get("form")))
    return path if job.row.state == "done" and path.is_file() else None


def summary(job: Work) -> str:
    """What the command said at its end."""
    lines = work.log(job.row.owner, job.row.id).strip().splitlines()
    return lines[-1].partition(": ")[2] if lines else ""


def _output(form: str) -> str:
    return f"lists.{'csv' if form == 'csv' else 'parquet'}"
