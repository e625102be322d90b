"""One ONNX Runtime session per graph, made on first use, shared by all threads."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt
import onnxruntime

from engine.runtime.files import EAGER_BYTES, Folder
from engine.runtime.graphs import FLOAT, INT64, GraphFault, Signature, Value, inspect
from engine.runtime.index import Float32
from engine.runtime.lazily import Lazily
from engine.runtime.manifest import File
from engine.runtime.providers import choose_providers, cores

GRAPH_BYTES = 2 << 30
"""Protocol buffers end there."""
# More graphs at a time than cores finish no sooner; each of them only takes longer.
_slots = threading.BoundedSemaphore(cores())


class Graph:
    """A graph of a bundle: input `items` int64 [batch, length], one float32 output called as given here.

    longest: the most columns it is ever asked with; shape: the output's, None where a size varies. Small files are read, hashed
    and inspected at once, large ones on first use; BundleError either way. The session is made on first use.
    """

    def __init__(
        self, folder: Folder, file: str, expected: File, longest: int, output: str, shape: tuple[int | None, ...]
    ) -> None:
        self.folder, self.file, self.output, self.shape = folder, file, output, shape
        self._longest = longest
        self._expected = expected
        self._content: bytes | None = None
        if folder.size(file, limit=GRAPH_BYTES, expected=expected) <= EAGER_BYTES:
            self._content = self._read()
        self._session = Lazily(self._create)

    @property
    def provider(self) -> str:
        """The execution provider in use (makes the session)."""
        return str(self._session.value().get_providers()[0])

    def run(self, items: npt.NDArray[np.int64]) -> Float32:
        """items: int64 [batch, length] → the output, float32, batch first, of the promised shape and finite."""
        session = self._session.value()
        with _slots:
            try:
                (found,) = session.run([self.output], {"items": items})
            except Exception as error:  # onnxruntime's exceptions share no base; all are the graph's fault
                raise self.folder.fault(self.file, f"the graph failed ({_first_line(error)})") from None
        promised = (len(items), *self.shape[1:])
        if not isinstance(found, np.ndarray) or found.dtype != np.float32 or not _fits(found.shape, promised):
            described = f"{getattr(found, 'dtype', '?')} {getattr(found, 'shape', '?')}"
            raise self.folder.fault(
                self.file, f"the graph answered with {described} where float32 {_words(promised)} was promised"
            )
        if not np.isfinite(found).all():
            raise self.folder.fault(self.file, "the graph answered with NaN or infinity")
        return found

    def _read(self) -> bytes:
        content = self.folder.read(self.file, limit=GRAPH_BYTES, expected=self._expected)
        try:
            self._agree(inspect(content))
        except GraphFault as fault:
            raise self.folder.fault(self.file, str(fault)) from None
        return content

    def _agree(self, signature: Signature) -> None:
        if set(signature.inputs) != {"items"}:
            raise GraphFault(f"the one input must be called items, not {_names(signature.inputs)}")
        if self.output not in signature.outputs:
            raise GraphFault(f"an output must be called {self.output}, not {_names(signature.outputs)}")
        found = _shape(signature.inputs["items"], "input items", INT64, "int64", 2)
        # exporters fix the length where there is only one
        if found is not None and found != (None, None) and (found != (None, 1) or self._longest > 1):
            raise GraphFault(f"input items must take any batch and length, not {_words(found)}")
        what = f"output {self.output}"
        found = _shape(signature.outputs[self.output], what, FLOAT, "float32", len(self.shape))
        if found is not None and not _fits(found, self.shape):
            raise GraphFault(f"{what} must be {_words(self.shape)}, not {_words(found)}")

    def _create(self) -> onnxruntime.InferenceSession:
        content = self._content or self._read()
        self._content = None
        choice = choose_providers()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = choice.threads  # by default all physical cores, whatever a container may use
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle sessions must not burn a core
        options.log_severity_level = 4  # what goes wrong is raised; nothing belongs on stderr
        try:
            return onnxruntime.InferenceSession(content, options, providers=list(choice.providers))
        except Exception as error:  # see run
            raise self.folder.fault(self.file, f"ONNX Runtime cannot load the graph ({_first_line(error)})") from None


def _shape(value: Value, what: str, kind: int, word: str, rank: int) -> tuple[int | None, ...] | None:
    """The shape, None where the graph leaves it open (every answer is checked again)."""
    if value.type != kind:
        raise GraphFault(f"{what} must be {word}")
    if value.shape is not None and len(value.shape) != rank:
        raise GraphFault(f"{what} must have {rank} dimensions, not {len(value.shape)}")
    return value.shape


def _fits(found: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(found) == len(wanted) and all(
        f is None or w is None or f == w for f, w in zip(found, wanted, strict=True)
    )


def _words(shape: tuple[int | None, ...]) -> str:
    return "[" + ", ".join("any" if size is None else str(size) for size in shape) + "]"


def _names(values: dict[str, Value]) -> str:
    return ", ".join(sorted(values))[:80] or "nothing"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
