"""Ways to damage the folder of a bundle, and what must come of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto

from engine.runtime import Zoo
from tests.runtime import bundles
from tests.runtime.bundles import seal

Spoil = Callable[[Path], object]
"""Of a bundle's folder."""
Cases = Mapping[str, Mapping[str, tuple[str, Spoil]]]
"""File that is named → what is wrong with it → a part of the reason, and the way to spoil the folder of "alpha"."""


def each(cases: Cases) -> pytest.MarkDecorator:
    """Parametrises a test by (file, says, spoil)."""
    flat = {name: (file, *case) for file, of_file in cases.items() for name, case in of_file.items()}
    assert len(flat) == sum(map(len, cases.values()))
    return pytest.mark.parametrize(("file", "says", "spoil"), flat.values(), ids=flat)


def refuses(path: Path, file: str, says: str, spoil: Spoil) -> None:
    """Spoilt, "alpha" is refused by name, file and reason, and "beta" goes on."""
    spoil(path / "alpha")
    zoo = Zoo.open(path)
    (refusal,) = zoo.refused
    assert (refusal.name, refusal.file) == ("alpha", file)
    assert says in refusal.reason
    assert len(refusal.reason) < 700 and "\n" not in refusal.reason and "Traceback" not in refusal.reason
    assert str(refusal).startswith(f"alpha/{file}: ")
    assert list(zoo.bundles) == ["beta"] and len(zoo.bundles["beta"].recommend_one([1, 2], 3).items) == 3


def edit(change: Callable[[dict[str, Any]], object]) -> Spoil:
    """Of the manifest, and of nothing else."""

    def spoil(folder: Path) -> None:
        raw = bundles.entries(folder)
        change(raw)
        bundles.edit(folder, **raw)

    return spoil


def raw(file: str, content: bytes) -> Spoil:
    return lambda f: ((f / file).write_bytes(content), seal(f))


def graph(model: onnx.ModelProto, file: str = "encoder.onnx") -> Spoil:
    return raw(file, model.SerializeToString())


def outside(tensor: onnx.TensorProto) -> None:
    """Its weights are elsewhere."""
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../../../etc/passwd")
    tensor.ClearField("raw_data")
