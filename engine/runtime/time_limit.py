"""The runs of graphs in this process: at most so many at a time, none longer than the limit, and no graph again that reached it.

    with time_limit.place(digest) as options:
        session.run(outputs, inputs, options)

A graph may hold a Loop that comes to no end. ONNX Runtime looks at `RunOptions.terminate` between the nodes of a graph and
between the turns of a loop, so a thread that sets it ends every run but one that stays within a single node. What is constant in
a graph is computed when it is loaded (`loaded`), which takes no place and cannot be ended: nobody waits for it beyond the limit.

SEQSCOPE_MODEL_SECONDS  for one run of a graph, and to load it, by the clock and of the processor's time (default 30); twice
                        that for a place
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import onnxruntime

from engine.bundle.errors import BusyError
from engine.machine import cores, number

Made = TypeVar("Made")
LIMIT = "SEQSCOPE_MODEL_SECONDS"
SECONDS = 30.0
# More graphs at a time than cores finish no sooner; each of them only takes longer.
PLACES = cores()
_TICK = 0.25
"""Seconds between two looks at the runs: one thread for all of them costs a run nothing."""
_places = threading.BoundedSemaphore(PLACES)
_lock = threading.Lock()
_running: list[Run] = []
_endless: dict[str, str] = {}
_watcher: threading.Thread | None = None


class Endless(Exception):
    """The graph did not end, now or before. The message is the reason, in words."""


@dataclass(eq=False)
class Run:
    graph: str
    limit: float
    began: float = field(default_factory=time.monotonic)
    before: float = field(default_factory=time.process_time)
    """What this process had of the processor before it."""
    options: onnxruntime.RunOptions = field(default_factory=onnxruntime.RunOptions)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def is_endless(self) -> bool:
        """By the clock and by the processor's time: on a machine that does something else every graph takes long."""
        return min(self.seconds, time.process_time() - self.before) > self.limit


def limit() -> float:
    """Seconds. Raises SeqscopeError where the variable is no number above 0."""
    return number(LIMIT, SECONDS)


@contextmanager
def place(graph: str) -> Iterator[onnxruntime.RunOptions]:
    """One of the places, for one run of the graph with this digest, and the options to run it with.

    Raises Endless where the graph did not end (whatever it answered), or did not before, and BusyError where no place gets free.
    """
    check(graph)
    seconds = limit()
    if not _places.acquire(timeout=2 * seconds):  # those that have them may be about to be ended
        raise BusyError("The models here are busy: no place got free for this question. Try again in a while.")
    try:
        check(graph)  # somebody else may have asked it meanwhile
        run = Run(graph, seconds)
        with _lock:
            _watch()
            _running.append(run)
        try:
            yield run.options
        finally:
            with _lock:
                _running.remove(run)
            if run.options.terminate:
                check(graph)
    finally:
        _places.release()


def loaded(graph: str, load: Callable[[], Made]) -> Made:
    """What `load` makes of the graph with this digest, in a thread of its own. Raises what `load` raises, and Endless where it
    takes longer than the limit, whereupon the thread goes on alone."""
    check(graph)
    run, made = Run(graph, limit()), Future[Made]()

    def work() -> None:
        try:
            made.set_result(load())
        except BaseException as error:
            made.set_exception(error)

    threading.Thread(target=work, name="seqscope-load", daemon=True).start()
    while not wait([made], _TICK).done:
        if run.is_endless:
            _refuse(run)
            check(graph)
    return made.result()


def check(graph: str) -> None:
    """Raises Endless where the graph with this digest is refused."""
    reason = _endless.get(graph)
    if reason is not None:
        raise Endless(reason)


def _refuse(run: Run) -> None:
    _endless[run.graph] = (
        f"the graph did not end within {run.limit:g} s; it is not asked again until the model is exported anew or "
        "the server is started again"
    )


def running() -> list[Run]:
    """Those in progress, the longest first."""
    with _lock:
        return list(_running)


def stalled() -> float:
    """Seconds for which every place has been held by the same run; 0.0 where one is free."""
    runs = running()
    return min(run.seconds for run in runs) if len(runs) >= PLACES else 0.0


def _watch() -> None:
    """Starts the thread that looks at the clock; again after a fork, which takes no threads along."""
    global _watcher  # noqa: PLW0603
    if _watcher is None or not _watcher.is_alive():
        _watcher = threading.Thread(target=_look, name="seqscope-runs", daemon=True)
        _watcher.start()


def _look() -> None:
    while True:
        time.sleep(_TICK)
        for run in running():
            if run.is_endless and not run.options.terminate:
                _refuse(run)
                run.options.terminate = True
