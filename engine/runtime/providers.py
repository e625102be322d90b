"""Where graphs run: CUDA when this machine has all it takes, else the CPU. Found out by looking, never by failing.

onnxruntime's own answers (get_available_providers, get_device) name what it was compiled with, and a session that cannot
have CUDA falls back with a page of errors on stderr. So the driver, a device and every library that the CUDA provider needs
are looked for first; a session that was given CUDA says afterwards which provider it really got (`Session.provider`).
"""

import ctypes
import functools
import importlib.util
import struct
from pathlib import Path
from typing import NamedTuple

import onnxruntime

from engine.machine import cores

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
SMALL = 16 << 20
"""Bytes of a graph that another thread makes no faster: TIGER's of 10 MB, asked on two cores that were otherwise idle, took as
long on one thread as on two, and a fifth less of the processor."""
_CUDA_LIBRARY = "libonnxruntime_providers_cuda.so"
# Loaded lazily (ONNX Runtime pull request 29252), so no ELF entry names it; without it some kernels fail once they run.
_CUDNN = "libcudnn.so.9"


class Choice(NamedTuple):
    """providers: for InferenceSession, best first; reason: why, in words."""

    providers: tuple[str, ...]
    reason: str


@functools.cache
def choose_providers() -> Choice:
    """Looks once per process. Sets nothing up but the loading of CUDA's libraries where they are installed as wheels."""
    missing = _missing()
    if missing:
        return Choice((CPU,), missing)
    return Choice((CUDA, CPU), "a CUDA device and every library that ONNX Runtime needs are there")


def describe() -> dict[str, str]:
    """What `seqscope doctor` prints about inference: label → value."""
    choice = choose_providers()
    return {
        "onnxruntime": onnxruntime.__version__,
        "runs on": "CUDA" if CUDA in choice.providers else "CPU",
        "because": choice.reason,
        "threads per graph": f"1, above {SMALL >> 20} MB {cores()}",
    }


def _missing() -> str:
    """What keeps CUDA from being used, or ""."""
    driver = _driver()
    if driver:
        return driver
    if CUDA not in onnxruntime.get_available_providers():
        return "this build of ONNX Runtime has no CUDA (install onnxruntime-gpu instead of onnxruntime)"
    library = Path(onnxruntime.__file__).parent / "capi" / _CUDA_LIBRARY
    if not library.is_file():
        return f"{_CUDA_LIBRARY} is not installed"
    absent = [name for name in [*needed_libraries(library), _CUDNN] if not _load(name)]
    return f"{', '.join(absent)} cannot be loaded (install onnxruntime-gpu[cuda,cudnn])" if absent else ""


def _driver() -> str:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1 is not there)"
    try:
        code = cuda.cuInit(0)
        if code:
            return f"the NVIDIA driver does not start (cuInit gives {code})"
        count = ctypes.c_int(0)
        code = cuda.cuDeviceGetCount(ctypes.byref(count))
    except AttributeError:
        return "libcuda.so.1 is not an NVIDIA driver"
    return "" if not code and count.value > 0 else "the NVIDIA driver sees no device"


def _load(name: str) -> bool:
    """Loads a library by name, from the system or from the nvidia-* wheels; once loaded, the provider finds it by name."""
    candidates = [name]
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        candidates += sorted(str(path) for path in Path(root).glob(f"**/lib/{name}"))
    for candidate in candidates:
        try:
            ctypes.CDLL(candidate, mode=getattr(ctypes, "RTLD_GLOBAL", 0))
            return True
        except OSError:
            continue
    return False


def needed_libraries(library: Path) -> list[str]:
    """NVIDIA's libraries among the DT_NEEDED entries of a 64-bit ELF file (System V ABI, "Dynamic Section").

    The provider itself must not be loaded to find out: it expects ONNX Runtime's own loader.
    """
    with library.open("rb") as stream:
        header = stream.read(64)
        if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
            return []
        offset, size, count = *struct.unpack_from("<Q", header, 32), *struct.unpack_from("<HH", header, 54)
        stream.seek(offset)
        table = stream.read(size * count) if size >= 56 else b""
        loads, dynamic = [], None
        for at in range(0, len(table), size or 1):
            kind, _, where, address, _, length = struct.unpack_from("<IIQQQQ", table, at)
            if kind == 1:
                loads.append((address, where, length))
            elif kind == 2:
                dynamic = (where, length)
        if dynamic is None:
            return []
        stream.seek(dynamic[0])
        entries = list(struct.iter_unpack("<qQ", stream.read(dynamic[1] // 16 * 16)))
        values = dict(entries)
        if 5 not in values or 10 not in values:  # DT_STRTAB, DT_STRSZ
            return []
        place = next(
            (where + values[5] - address for address, where, length in loads if 0 <= values[5] - address < length), None
        )
        if place is None:
            return []
        stream.seek(place)
        names = stream.read(values[10])
    needed = [names[value : names.index(b"\0", value)].decode() for tag, value in entries if tag == 1]
    return [name for name in needed if name.startswith(("libcu", "libnv"))]
