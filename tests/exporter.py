"""Torch's exporter made quicker for tests, to the same bytes: importing this module does it."""

import functools
import sys
import traceback
from typing import Any

import torch

_export = torch.onnx.export


@functools.cache
def _prepare() -> None:
    """The source of 497 translations and the list of all operators are read anew for every graph otherwise, and where every node
    was made is noted, which `engine.export.graphs.serialised` leaves out."""
    from torch._export import utils
    from torch.onnx._internal.exporter import _registration  # seconds: most workers of a run export nothing
    from torch.utils._traceback import CapturedTraceback

    read = _registration.ONNXRegistry.from_torchlib
    _registration.ONNXRegistry.from_torchlib = staticmethod(functools.cache(read))
    utils._materialize_cpp_cia_ops = functools.cache(utils._materialize_cpp_cia_ops)
    CapturedTraceback.summary = lambda self: traceback.StackSummary()  # type: ignore[method-assign]


@functools.wraps(_export)
def export(*args: Any, **named: Any) -> Any:
    """Without coverage, which would follow every call and tells nothing of our lines."""
    _prepare()
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        return _export(*args, **named)
    finally:
        sys.settrace(trace)


torch.onnx.export = export
