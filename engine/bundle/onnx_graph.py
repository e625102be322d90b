"""Looks into an ONNX file before ONNX Runtime may: its inputs and outputs, and which other files it refers to.

An ONNX file can name other files as the place of its weights (external data) or of a compiled engine (EPContext). A bundle's
graph may refer to arrays of the bundle itself (`ARRAYS`), from its initializers, and to nothing else. The check reads the
protocol buffer directly, since the runtime has no onnx package. Field numbers are those of onnx.proto
(https://github.com/onnx/onnx/blob/main/onnx/onnx.proto); they are frozen by the format.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod

import numpy as np

FLOAT, INT64 = 1, 7  # TensorProto.DataType
TYPES = {1: "float32", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}
"""What a tensor in another file may be: TensorProto.DataType → dtype of numpy."""
INDEX, WEIGHTS = "index.npy", "weights.npy"
ARRAYS = (INDEX, WEIGHTS)
_NUMBER = re.compile(r"[0-9]{1,18}")
_FIELDS = 2_000_000
_DEPTH = 24
_DIMENSIONS = 64  # as many as an array of numpy has; the sizes of a million would be multiplied for days


class GraphFault(ValueError):
    """Why the graph is refused, in words."""


@dataclass(frozen=True)
class Value:
    """An input or output: element type (TensorProto.DataType) and per dimension a fixed size or None where it varies."""

    type: int
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class Elsewhere:
    """A tensor of the graph that lies in another file of its bundle: `length` bytes from `offset`, of numpy's dtype `type`."""

    name: str
    file: str
    offset: int
    length: int
    type: str
    shape: tuple[int, ...]


@dataclass
class Signature:
    inputs: dict[str, Value] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)
    elsewhere: list[Elsewhere] = field(default_factory=list)


def inspect(model: bytes) -> Signature:
    """The signature of a serialised ModelProto. Raises GraphFault where it cannot be read or refers to a file it must not."""
    reader = _Reader()
    signature = Signature()
    weights: set[str] = set()
    graphs = 0
    for number, value in reader.fields(memoryview(model)):
        if number == 7:  # graph
            graphs += 1
            reader.graph(_message(value), 1, signature.elsewhere)
            reader.signature(_message(value), signature, weights)
        elif number == 25:  # functions
            reader.function(_message(value))
        elif number == 20:  # training_info
            raise GraphFault("the graph carries training steps")
    if graphs != 1:
        raise GraphFault("this is not an ONNX model")
    for name in weights:
        signature.inputs.pop(name, None)  # before IR version 4 every weight was an input, too
    return signature


def _message(value: memoryview | int) -> memoryview:
    if isinstance(value, int):
        raise GraphFault("the file is damaged (a number where a message belongs)")
    return value


class _Reader:
    """Walks messages. The number of fields and the depth are bounded: the file is not trusted to end."""

    def __init__(self) -> None:
        self.left = _FIELDS

    def fields(self, data: memoryview) -> Iterator[tuple[int, memoryview | int]]:
        at, end = 0, len(data)

        def varint() -> int:
            nonlocal at
            value = shift = 0
            while at < end and shift < 64:
                byte = data[at]
                at += 1
                value |= (byte & 0x7F) << shift
                if byte < 0x80:
                    return value
                shift += 7
            raise GraphFault("the file is damaged (it ends within a number)")

        while at < end:
            self.left -= 1
            if self.left < 0:
                raise GraphFault(f"the graph has more than {_FIELDS:,} fields")
            tag = varint()
            number, kind = tag >> 3, tag & 7
            if not 0 < number < 1 << 29:  # protocol buffers keep 32 bits of a tag, and would read another field
                raise GraphFault("the file is damaged (a number of a field that is none)")
            if kind == 0:
                yield number, varint()
                continue
            if kind not in (1, 2, 5):
                raise GraphFault("the file is damaged (an unknown kind of field)")
            length = varint() if kind == 2 else {1: 8, 5: 4}[kind]
            if length > end - at:
                raise GraphFault("the file is damaged (it ends early)")
            yield number, data[at : at + length]
            at += length

    def each(self, data: memoryview, handlers: dict[int, Callable[[memoryview], None]]) -> None:
        for number, value in self.fields(data):
            if number in handlers:
                handlers[number](_message(value))

    def graph(self, data: memoryview, depth: int, elsewhere: list[Elsewhere] | None = None) -> None:
        """elsewhere: where to note initializers that lie in another file; None where none may."""
        if depth > _DEPTH:
            raise GraphFault(f"graphs are nested deeper than {_DEPTH} levels")
        self.each(
            data,
            {
                1: lambda node: self.node(node, depth),
                5: lambda tensor: self.tensor(tensor, elsewhere),
                15: self.sparse,
            },
        )

    def function(self, data: memoryview) -> None:
        self.each(data, {7: lambda node: self.node(node, 1), 11: lambda attribute: self.attribute(attribute, 1)})

    def node(self, data: memoryview, depth: int) -> None:
        for number, value in self.fields(data):
            if number == 4 and bytes(_message(value)) == b"EPContext":
                raise GraphFault("the graph refers to an engine compiled elsewhere (EPContext)")
            if number == 5:
                self.attribute(_message(value), depth)

    def attribute(self, data: memoryview, depth: int) -> None:
        self.each(
            data,
            {
                5: self.tensor,
                10: self.tensor,
                6: lambda graph: self.graph(graph, depth + 1),
                11: lambda graph: self.graph(graph, depth + 1),
                22: self.sparse,
                23: self.sparse,
            },
        )

    def sparse(self, data: memoryview) -> None:
        self.each(data, {1: self.tensor, 2: self.tensor})

    def tensor(self, data: memoryview, elsewhere: list[Elsewhere] | None = None) -> None:
        name, kind, outside = "", 0, False
        shape: list[int] = []
        entries: dict[str, str] = {}
        for number, value in self.fields(data):
            if number == 1:  # one size, or all of them packed
                shape += [value] if isinstance(value, int) else self.varints(value)
            elif number == 2 and isinstance(value, int):
                kind = value
            elif number == 8:
                name = _text(value)
            elif number == 13:  # external_data
                outside = True
                entry = {part: _text(content) for part, content in self.fields(_message(value))}
                entries[entry.get(1, "")] = entry.get(2, "")
            elif number == 14 and value != 0:  # data_location
                outside = True
        if outside:
            if elsewhere is None or entries.get("location") not in ARRAYS:
                raise GraphFault(
                    f"the graph keeps weights in another file than {WEIGHTS} and {INDEX}; export it in one piece"
                )
            elsewhere.append(_elsewhere(name, kind, tuple(shape), entries))

    def varints(self, data: memoryview) -> list[int]:
        """Of a packed field."""
        numbers, value, shift = [], 0, 0
        for byte in data:
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                numbers.append(value)
                value = shift = 0
            elif shift > 63:
                break
        if shift:
            raise GraphFault("the file is damaged (it ends within a number)")
        return numbers

    def signature(self, data: memoryview, signature: Signature, weights: set[str]) -> None:
        for number, value in self.fields(data):
            if number in (11, 12):
                name, described = self.value_info(_message(value))
                (signature.inputs if number == 11 else signature.outputs)[name] = described
            elif number == 5:
                for inner, name_bytes in self.fields(_message(value)):
                    if inner == 8:
                        weights.add(_text(name_bytes))

    def value_info(self, data: memoryview) -> tuple[str, Value]:
        name, kind, shape = "", 0, None
        for number, value in self.fields(data):
            if number == 1:
                name = _text(value)
            elif number == 2:  # TypeProto
                for inner, tensor in self.fields(_message(value)):
                    if inner == 1:  # tensor_type
                        for part, content in self.fields(_message(tensor)):
                            if part == 1 and isinstance(content, int):
                                kind = content
                            elif part == 2:
                                shape = tuple(
                                    self.dimension(_message(d)) for n, d in self.fields(_message(content)) if n == 1
                                )
        return name, Value(kind, shape)

    def dimension(self, data: memoryview) -> int | None:
        for number, value in self.fields(data):
            if number == 1 and isinstance(value, int):
                return value
        return None


def _elsewhere(name: str, kind: int, shape: tuple[int, ...], entries: dict[str, str]) -> Elsewhere:
    file = entries["location"]
    numbers = all(_NUMBER.fullmatch(entries.get(key, "")) for key in ("offset", "length"))
    if kind not in TYPES or len(shape) > _DIMENSIONS or not numbers:
        raise GraphFault(f"the graph does not say which part of {file} a tensor is")
    part = Elsewhere(name, file, int(entries["offset"]), int(entries["length"]), TYPES[kind], shape)
    if 0 in shape or prod(shape) * np.dtype(part.type).itemsize != part.length:
        raise GraphFault(f"a tensor of shape {list(shape)[:8]} cannot be {part.length:,} bytes of {file}")
    return part


def _text(value: memoryview | int) -> str:
    return bytes(_message(value)).decode("utf-8", "replace")
