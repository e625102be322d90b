"""CUDA is chosen when all of it is there, the CPU otherwise, with the reason, quietly."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import onnxruntime
import pytest

from engine.machine import cores
from engine.runtime import Zoo, describe, providers, sessions
from engine.runtime.providers import CPU, CUDA, choose_providers, needed_libraries


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    choose_providers.cache_clear()
    yield
    choose_providers.cache_clear()


def test_what_this_machine_has(zoo: Zoo) -> None:
    choice = choose_providers()
    assert choice.providers in ((CPU,), (CUDA, CPU))
    assert describe()["because"] == choice.reason and describe()["runs on"] in ("CPU", "CUDA")
    assert zoo.bundles["alpha"].provider in (CPU, CUDA)


@pytest.mark.parametrize(
    ("driver", "built", "installed", "loads", "says"),
    [
        ("", True, True, True, ""),
        ("no NVIDIA driver", True, True, True, "no NVIDIA driver"),
        ("", False, True, True, "this build of ONNX Runtime has no CUDA"),
        ("", True, False, True, "providers_cuda.so is not installed"),
        ("", True, True, False, "libcudnn.so.9 cannot be loaded"),
    ],
)
def test_all_of_it_is_there_or_something_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, driver: str, built: bool, installed: bool, loads: bool, says: str
) -> None:
    monkeypatch.setattr(providers, "_driver", lambda: driver)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU] if built else [CPU])
    monkeypatch.setattr(onnxruntime, "__file__", str(tmp_path / "__init__.py"))
    (tmp_path / "capi").mkdir()
    if installed:
        (tmp_path / "capi" / "libonnxruntime_providers_cuda.so").write_bytes(b"no ELF file, so it needs nothing")
    libraries: list[str] = []
    monkeypatch.setattr(providers, "_load", lambda name: libraries.append(name) or loads)
    choice = choose_providers()
    assert choice.providers == ((CPU,) if says else (CUDA, CPU)) and says in choice.reason
    assert says or libraries == ["libcudnn.so.9"]


class Driver:
    """Stands in for libcuda.so.1."""

    def __init__(self, init: int, devices: int) -> None:
        self.init, self.devices = init, devices

    def cuInit(self, flags: int) -> int:
        return self.init

    def cuDeviceGetCount(self, count: object) -> int:
        count._obj.value = self.devices  # type: ignore[attr-defined]
        return 0


@pytest.mark.parametrize(
    ("library", "says"),
    [
        (Driver(0, 1), ""),
        (Driver(0, 0), "the NVIDIA driver sees no device"),
        (Driver(100, 1), "cuInit gives 100"),
        (object(), "libcuda.so.1 is not an NVIDIA driver"),
        (None, "libcuda.so.1 is not there"),
    ],
)
def test_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch, library: object, says: str) -> None:
    def load(name: str) -> object:
        if library is None:
            raise OSError("cannot open shared object file")
        return library

    monkeypatch.setattr(providers.ctypes, "CDLL", load)
    assert says in providers._driver() and bool(says) == bool(providers._driver())


def test_what_a_library_needs() -> None:
    library = Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_cuda.so"
    if not library.is_file():
        pytest.skip("the CPU build of ONNX Runtime: pip install onnxruntime-gpu")
    needed = needed_libraries(library)
    assert any(name.startswith("libcudart.so") for name in needed) and any(
        name.startswith("libcublas") for name in needed
    )


def test_a_library_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "x.so"
    for content in (b"", b"MZ" * 100, b"\x7fELF\x02\x01" + b"\0" * 58):
        file.write_bytes(content)
        assert needed_libraries(file) == []


def test_loading_looks_in_the_wheels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cu13" / "lib").mkdir(parents=True)
    (tmp_path / "cu13" / "lib" / "libx.so.1").touch()

    class Spec:
        submodule_search_locations = (str(tmp_path),)

    tried = []

    def load(name: str, mode: int = 0) -> None:
        tried.append(name)
        if "/" not in name:
            raise OSError

    monkeypatch.setattr(providers.importlib.util, "find_spec", lambda name: Spec)
    monkeypatch.setattr(providers.ctypes, "CDLL", load)
    assert providers._load("libx.so.1") and not providers._load("liby.so.1")
    assert tried == ["libx.so.1", str(tmp_path / "cu13" / "lib" / "libx.so.1"), "liby.so.1"]


def test_onnx_runtime_reports_to_nobody(tmp_path: Path) -> None:
    """Its telemetry begins with the import, and leaves the number by which it knows this machine in the cache."""
    without = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    code = "import engine.runtime"
    subprocess.run([sys.executable, "-c", code], check=True, env=without | {"XDG_CACHE_HOME": str(tmp_path)})
    assert not list(tmp_path.rglob("deviceid"))


def test_small_graphs_run_on_one_thread(zoo_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    create = onnxruntime.InferenceSession
    monkeypatch.setattr(
        onnxruntime,
        "InferenceSession",
        lambda content, options, **more: given.append(options.intra_op_num_threads) or create(content, options, **more),
    )
    Zoo.open(zoo_path, warm=True)
    assert given and set(given) == {1}
    given.clear()
    monkeypatch.setattr(sessions, "SMALL", 1)
    Zoo.open(zoo_path, warm=True)
    assert given and set(given) == {cores()}
