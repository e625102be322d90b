"""The app, whose preparations make no semantic IDs: tests/jobs/test_engine.py has them, and here somebody waits."""

from pathlib import Path
from typing import Any

from streamlit.starlette import App

from app import serve
from app.jobs import kinds
from app.jobs.spec import Job

prepare = kinds.prepare


def without_identifiers(*request: Any) -> Job:
    job, names = prepare(*request), {*kinds.tokenizers()}
    steps = tuple(step for step in job.steps if not names & {step.key, *step.needs})
    return job.model_copy(update={"steps": steps})


kinds.prepare = without_identifiers
app = App(Path(serve.__file__))  # `streamlit run` reads the file for a line like this one before it imports it
app = serve.app
