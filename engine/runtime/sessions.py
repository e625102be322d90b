"""One ONNX Runtime session per graph, made on first use, shared by all threads."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from engine.bundle.files import EAGER_BYTES, Folder, Lazy
from engine.bundle.index import Float32
from engine.bundle.manifest import File
from engine.bundle.onnx_graph import FLOAT, INT64, Elsewhere, GraphFault, Signature, Value, inspect
from engine.bundle.tables import ARRAY_BYTES
from engine.machine import cores
from engine.runtime import time_limit
from engine.runtime.providers import SMALL, choose_providers

GRAPH_BYTES = 2 << 30
"""Protocol buffers end there."""
OPEN = -1
"""In the shape of an input: a size that the graph must not fix."""


Shape = tuple[int | None, ...]
ITEMS: Mapping[str, tuple[int, Shape]] = {"items": (INT64, (OPEN, OPEN))}
"""The inputs of a graph that reads histories alone."""


class Session:
    """A graph of a bundle. Small files are read, hashed and inspected at once, large ones on first use; BundleError either
    way. The session is made on first use.

    files: those of the bundle, of which this is one and others may hold tensors of it; inputs: name → (element type, shape),
    where OPEN stands for a size that the graph must leave open and None for one that it may fix; outputs: name → shape, all
    float32, None where a size varies; longest: the most columns that `items` is ever asked with.
    """

    def __init__(
        self,
        folder: Folder,
        file: str,
        files: Mapping[str, File],
        inputs: Mapping[str, tuple[int, Shape]],
        outputs: Mapping[str, Shape],
        longest: int = 2,
    ) -> None:
        self.folder, self.file = folder, file
        self.inputs, self.outputs, self._longest = inputs, outputs, longest
        self._files, self._expected = files, files[file]
        self._content: tuple[bytes, list[Elsewhere]] | None = None
        if folder.size(file, limit=GRAPH_BYTES, expected=self._expected) <= EAGER_BYTES:
            self._content = self._read()
        self._session = Lazy(self._create)

    @property
    def provider(self) -> str:
        """The execution provider in use (makes the session)."""
        return str(self._session.value().get_providers()[0])

    def run(self, items: npt.NDArray[np.int64], output: str | None = None) -> Float32:
        """items: int64 [batch, length] → an output (None: the first), float32, batch first, of the promised shape and finite."""
        output = output or next(iter(self.outputs))
        (answer,) = self.call([output], {"items": items})
        return self.checked(answer, (len(items), *self.outputs[output][1:]))

    def call(self, outputs: list[str], inputs: dict[str, npt.NDArray[Any]]) -> list[object]:
        """What the graph answers, not yet looked at. Raises BundleError where it fails or does not end, and BusyError."""
        session = self._session.value()
        try:
            with time_limit.place(self._expected.sha256) as options:
                try:
                    answers: list[object] = session.run(outputs, inputs, options)
                except Exception as error:  # onnxruntime's exceptions share no base; all are the graph's fault
                    raise self.folder.fault(self.file, "the graph failed when it was run", error) from None
        except time_limit.Endless as error:
            raise self.folder.fault(self.file, str(error)) from None
        return answers

    def checked(self, answer: object, promised: Shape, *, finite: bool = True) -> Float32:
        """The answer, once it is float32 of the promised shape (None: any size)."""
        if not isinstance(answer, np.ndarray) or answer.dtype != np.float32 or not _fits(answer.shape, promised):
            described = f"{getattr(answer, 'dtype', '?')} {getattr(answer, 'shape', '?')}"
            raise self.folder.fault(
                self.file, f"the graph answered with {described} where float32 {_words(promised)} was promised"
            )
        if finite and not np.isfinite(answer).all():
            raise self.folder.fault(self.file, "the graph answered with NaN or infinity")
        return answer

    def _agree(self, signature: Signature) -> None:
        """Raises GraphFault where the graph has not the promised inputs and outputs."""
        if self.inputs.keys() == ITEMS.keys():
            _agree_items(signature, self._longest)
        elif set(signature.inputs) != set(self.inputs):
            raise GraphFault(f"the inputs must be called {_names(self.inputs)}, not {_names(signature.inputs)}")
        else:
            for name, (kind, promised) in self.inputs.items():
                word = "int64" if kind == INT64 else "float32"
                actual = _shape(signature.inputs[name], f"input {name}", kind, word, len(promised))
                if actual is not None and any(
                    (f is not None) if w == OPEN else (f is not None and w is not None and f != w)
                    for f, w in zip(actual, promised, strict=True)
                ):
                    raise GraphFault(f"input {name} must take {_words(promised)}, not {_words(actual)}")
        for name, shape in self.outputs.items():
            _agree_output(signature, name, shape)

    def _read(self) -> tuple[bytes, list[Elsewhere]]:
        content = self.folder.read(self.file, limit=GRAPH_BYTES, expected=self._expected)
        try:
            signature = inspect(content)
            self._agree(signature)
        except GraphFault as fault:
            raise self.folder.fault(self.file, str(fault)) from None
        for part in signature.elsewhere:
            if part.file not in self._files:
                raise self.folder.fault(self.file, f"the graph keeps weights in {part.file}, which the bundle lacks")
            if part.offset + part.length > self._files[part.file].bytes:
                raise self.folder.fault(self.file, f"the graph keeps weights beyond the end of {part.file}")
        return content, signature.elsewhere

    def _create(self) -> onnxruntime.InferenceSession:
        content, elsewhere = self._content or self._read()
        self._content = None
        options = onnxruntime.SessionOptions()
        # by default all physical cores, whatever a container may use
        size = len(content) + sum(part.length for part in elsewhere)
        options.intra_op_num_threads = 1 if size <= SMALL else cores()
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle sessions must not burn a core
        # what was looked into, and no other format that the same bytes may be
        options.add_session_config_entry("session.load_model_format", "ONNX")
        options.log_severity_level = 4  # what goes wrong is raised; nothing belongs on stderr
        self._tensors = self._gathered(elsewhere)  # the session reads from their memory as long as it lives
        try:
            options.add_external_initializers(list(self._tensors), list(self._tensors.values()))
            providers = list(choose_providers().providers)
            return time_limit.loaded(
                self._expected.sha256, lambda: onnxruntime.InferenceSession(content, options, providers=providers)
            )
        except time_limit.Endless as error:
            raise self.folder.fault(self.file, str(error)) from None
        except Exception as error:  # see run
            raise self.folder.fault(self.file, "ONNX Runtime cannot load the graph", error) from None

    def _gathered(self, elsewhere: list[Elsewhere]) -> dict[str, onnxruntime.OrtValue]:
        """By name; a file is read once, whole, as only all of it can be checked. ONNX Runtime is handed all of them: it opens no
        file by itself."""
        content = {
            file: self.folder.read(file, limit=ARRAY_BYTES, expected=self._files[file])
            for file in {part.file for part in elsewhere}
        }
        tensors = {}
        for part in elsewhere:
            values = np.frombuffer(content[part.file], np.uint8, part.length, part.offset)
            # where the file begins in memory is nobody's choice, and sums are fastest where numbers are aligned
            tensors[part.name] = onnxruntime.OrtValue.ortvalue_from_numpy(
                values.copy().view(part.type).reshape(part.shape)
            )
        return tensors


def _agree_items(signature: Signature, longest: int) -> None:
    """Raises GraphFault where the one input is not `items` int64 [batch, length]."""
    if set(signature.inputs) != {"items"}:
        raise GraphFault(f"the one input must be called items, not {_names(signature.inputs)}")
    shape = _shape(signature.inputs["items"], "input items", INT64, "int64", 2)
    # exporters fix the length where there is only one
    if shape is not None and shape != (None, None) and (shape != (None, 1) or longest > 1):
        raise GraphFault(f"input items must take any batch and length, not {_words(shape)}")


def _agree_output(signature: Signature, name: str, shape: Shape) -> None:
    """Raises GraphFault where there is no output of that name, float32 and of that shape."""
    if name not in signature.outputs:
        raise GraphFault(f"an output must be called {name}, not {_names(signature.outputs)}")
    actual = _shape(signature.outputs[name], f"output {name}", FLOAT, "float32", len(shape))
    if actual is not None and not _fits(actual, shape):
        raise GraphFault(f"output {name} must be {_words(shape)}, not {_words(actual)}")


def _shape(value: Value, name: str, kind: int, word: str, rank: int) -> Shape | None:
    """The shape, None where the graph leaves it open (every answer is checked again)."""
    if value.type != kind:
        raise GraphFault(f"{name} must be {word}")
    if value.shape is not None and len(value.shape) != rank:
        raise GraphFault(f"{name} must have {rank} dimensions, not {len(value.shape)}")
    return value.shape


def _fits(actual: Shape, promised: Shape) -> bool:
    return len(actual) == len(promised) and all(
        f is None or w is None or f == w for f, w in zip(actual, promised, strict=True)
    )


def _words(shape: Shape) -> str:
    return "[" + ", ".join("any" if size is None or size == OPEN else str(size) for size in shape) + "]"


def _names(values: Iterable[str]) -> str:
    return ", ".join(sorted(values))[:120] or "nothing"
