"""Torch's exporter made quicker for tests, to the same bytes: importing this module does it."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch

_export = torch.onnx.export


@functools.cache
def _read_translations_once() -> None:
    """The source of 497 translations is read anew for every graph otherwise; nothing is added to them."""
    from torch.onnx._internal.exporter import _registration  # seconds: most workers of a run export nothing

    read = _registration.ONNXRegistry.from_torchlib
    _registration.ONNXRegistry.from_torchlib = staticmethod(functools.cache(read))


@functools.wraps(_export)
def export(*args: Any, **named: Any) -> Any:
    """Without coverage, which would follow every call and tells nothing of our lines."""
    _read_translations_once()
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        return _export(*args, **named)
    finally:
        sys.settrace(trace)


torch.onnx.export = export
