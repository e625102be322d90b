"""Jobs on a Ray cluster: what the launcher asks of it, and the same jobs through a local one where Ray is installed."""

import importlib.util
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.jobs import launch as module
from app.jobs import status
from app.jobs.launch import SUBMISSION, OnRay
from app.jobs.queue import Queue
from app.jobs.runner import ROOT
from app.jobs.spec import Job
from app.jobs.status import Status
from engine.errors import SeqscopeError
from tests.jobs.conftest import gone, job, step
from tests.jobs.test_runner import LINES, lines, pids
from tests.waiting import wait


class Cluster:
    """In place of Ray's client."""

    def __init__(self) -> None:
        self.jobs: dict[str, str] = {}
        self.asked: list[dict[str, Any]] = []
        self.away = False

    def submit_job(self, **words: Any) -> str:
        if self.away:
            raise RuntimeError("Request failed with status code 500\nTraceback")
        self.asked.append(words)
        self.jobs[words["submission_id"]] = "PENDING"
        return str(words["submission_id"])

    def get_job_status(self, name: str) -> str:
        if self.away:
            raise ConnectionError("nobody there")
        return self.jobs[name]

    def stop_job(self, name: str) -> bool:
        self.jobs[name] = "STOPPED"
        return True


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(module, "KNOWN", 0.0)
    monkeypatch.setattr(module, "UNASKED", 0.0)
    return Cluster()


@pytest.fixture
def launcher(cluster: Cluster) -> OnRay:
    return OnRay("http://head:8265", cluster)


@pytest.fixture(autouse=True)
def long(folder: Path) -> Job:
    """The job in `folder`."""
    written = job(step("say", "x"))
    written.write(folder)
    return written


def test_what_is_handed_over(folder: Path, launcher: OnRay, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_HOME", "/shared/home")
    monkeypatch.setenv("SEQSCOPE_RAY_ADDRESS", "http://head:8265")
    monkeypatch.setenv("OIDC_SECRET", "x")
    monkeypatch.setenv("SEQSCOPE_RAY_PYTHON", "/opt/seqscope/bin/python")
    launcher.start(folder)
    (asked,) = cluster.asked
    assert asked["entrypoint"] == f"/opt/seqscope/bin/python -m app.jobs.runner {folder}"
    assert asked["submission_id"].startswith("seqscope-job-") and asked["metadata"] == {"seqscope": "job"}
    variables = asked["runtime_env"]["env_vars"]
    assert variables["PYTHONPATH"] == str(ROOT) and variables["SEQSCOPE_HOME"] == "/shared/home"
    assert not {"OIDC_SECRET", "SEQSCOPE_RAY_ADDRESS", "SEQSCOPE_RAY_PYTHON"} & variables.keys()
    assert json.loads((folder / SUBMISSION).read_text())["submission"] == asked["submission_id"]
    assert status.read(folder).words == "Handed to the Ray cluster"
    assert (asked["entrypoint_num_cpus"], asked["entrypoint_num_gpus"]) == (1, 0)


def test_what_a_job_takes_of_the_cluster(
    folder: Path, long: Job, launcher: OnRay, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQSCOPE_RAY_CPUS", "4")
    monkeypatch.setenv("SEQSCOPE_RAY_GPUS", "0.5")
    launcher.start(folder)
    (asked,) = cluster.asked
    assert (asked["entrypoint_num_cpus"], asked["entrypoint_num_gpus"]) == (4, 0.5)
    short = folder.with_name("short")
    short.mkdir()
    long.model_copy(update={"short": True}).write(short)
    launcher.start(short)
    assert (cluster.asked[-1]["entrypoint_num_cpus"], cluster.asked[-1]["entrypoint_num_gpus"]) == (1, 0)
    monkeypatch.setenv("SEQSCOPE_RAY_GPUS", "two")
    cluster.jobs = dict.fromkeys(cluster.jobs, "FAILED")
    monkeypatch.setattr(module, "KNOWN", -1.0)
    with pytest.raises(SeqscopeError, match="SEQSCOPE_RAY_GPUS is 'two'"):
        launcher.start(folder)


def test_a_runner_is_there_as_long_as_the_cluster_says_so(folder: Path, launcher: OnRay, cluster: Cluster) -> None:
    assert not launcher.alive(folder)
    launcher.start(folder)
    (name,) = cluster.jobs
    for state, lives in (("PENDING", True), ("RUNNING", True), ("SUCCEEDED", False), ("STOPPED", False)):
        cluster.jobs[name] = state
        assert launcher.alive(folder) is lives
        assert OnRay("http://head:8265", cluster).alive(folder) is lives  # a server that starts again
    cluster.jobs[name] = "RUNNING"
    launcher.start(folder)
    assert len(cluster.asked) == 1  # it has one
    cluster.jobs[name] = "FAILED"
    launcher.start(folder)
    assert len(cluster.asked) == 2


def test_a_cluster_that_cannot_be_asked(folder: Path, launcher: OnRay, cluster: Cluster) -> None:
    launcher.start(folder)
    cluster.away = True
    assert launcher.alive(folder)  # it wrote just now
    Status(state="running", heartbeat=1.0).write(folder)
    assert not launcher.alive(folder)
    (folder / SUBMISSION).unlink()
    with pytest.raises(SeqscopeError, match=r"did not take the job \(Request failed with status code 500\)"):
        launcher.start(folder)


def test_a_cluster_that_does_not_answer_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks holds the queue: every page that hands a job in would wait."""
    pytest.importorskip("ray.job_submission")
    monkeypatch.setattr(module, "ANSWER", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        launcher = OnRay(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(SeqscopeError, match="cannot be reached"):
            launcher.start(folder)
        (folder / SUBMISSION).write_text(json.dumps({"submission": "x"}))
        assert not launcher.alive(folder)
        began = time.monotonic()
        assert not launcher.alive(folder) and time.monotonic() - began < 0.1  # nor is it asked again soon


def test_one_that_waits_in_the_cluster_can_be_cancelled(tmp_path: Path, launcher: OnRay, cluster: Cluster) -> None:
    queue = Queue(tmp_path / "queue", launcher=launcher)
    queue.submit(job(step("say", "x"), id="waits"))
    queue.look()
    assert queue.status("waits").state == "queued" and list(cluster.jobs.values()) == ["PENDING"]
    queue.cancel("waits")
    queue.look()
    assert list(cluster.jobs.values()) == ["STOPPED"]
    queue.look()
    assert queue.status("waits").state == "cancelled"
    queue.stop()


def test_without_ray_it_says_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ray", "ray.job_submission"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SeqscopeError, match=r"pip install 'seqscope\[ray\]'"):
        OnRay("http://head:8265").start(folder)


# --- a real one


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    """A cluster of this machine alone."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'seqscope[ray]'")
    import ray

    for last in (False, False, True):
        try:
            context = ray.init(num_cpus=1, include_dashboard=True, dashboard_port=0, log_to_driver=False)
            break
        except Exception:  # on a busy machine its processes may take longer to start than Ray waits for them
            ray.shutdown()
            if last:
                raise
    yield f"http://{context.dashboard_url}"
    ray.shutdown()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_job_on_a_real_cluster(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_RAY_PYTHON", sys.executable)
    out = tmp_path / "out"
    queue = Queue(tmp_path / "jobs", tick=0.2, launcher=OnRay(address))
    queue.start()
    queue.submit(job(step("count", out, 10, 0.3), id="counts"))
    wait(lambda: len(lines(out)) >= 2, 180)
    again = Queue(tmp_path / "jobs", tick=0.2, launcher=OnRay(address))
    queue.stop()
    again.start()  # the next server knows the runner
    end: Status = wait(lambda: again.status("counts") if again.status("counts").over else None, 180)
    assert (end.state, end.tries) == ("done", 0) and lines(out) == LINES and len(pids(out)) == 1
    again.submit(job(step("fail", "The loss is nan."), id="fails"))
    end = wait(lambda: again.status("fails") if again.status("fails").over else None, 180)
    assert (end.state, end.message) == ("failed", "The loss is nan.")
    long = tmp_path / "long"
    again.submit(job(step("count", long, 10_000, 0.05), id="long"))
    wait(lambda: lines(long), 180)
    again.cancel("long")
    end = wait(lambda: again.status("long") if again.status("long").over else None, 180)
    assert end.state == "cancelled"
    wait(lambda: gone(pids(long)[0]))
    again.stop()
    assert os.path.exists(tmp_path / "jobs" / "long" / SUBMISSION)
