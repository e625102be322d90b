"""Say what this machine has and what is missing for what: packages, devices, datasets, bundles, a browser for the tests.

Exit code 0 where the app can be served and models can be trained, else 1. --json prints the same for programs.
"""
# Works where half of the packages are missing, and says which.

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine import __version__
from engine.commands import options
from engine.errors import SeqscopeError
from engine.machine import memory
from engine.writing import count

TRAINING = ("torch", "numpy", "pyarrow", "safetensors")
IMPORTING = ("duckdb", "numpy", "pyarrow")
EXPORTING = ("onnx", "onnxscript", "onnxruntime", "umap-learn", "pydantic")
APP = ("streamlit", "plotly", "duckdb", "onnxruntime", "pyarrow", "pydantic")
BROWSER = ("playwright", "axe-playwright-python")

_BUILDS = {"onnxruntime": ("onnxruntime-gpu", "onnxruntime")}
"""One import name, several distributions."""
_CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The first, Debian's without windows, takes 7 % less of the processor for the browser tests."""


@dataclass(frozen=True)
class Ability:
    """Something one may want to do here. `needed`: without it `seqscope doctor` exits with 1."""

    name: str
    works: bool
    needed: bool
    note: str
    """What it works with; or what is missing and how to get it."""


@dataclass(frozen=True)
class Diagnosis:
    machine: dict[str, str]
    packages: dict[str, str | None]
    """Version, or None where a package is not installed."""
    torch: dict[str, Any]
    inference: dict[str, str]
    chromium: str | None
    data: dict[str, Any]
    abilities: list[Ability]

    @property
    def healthy(self) -> bool:
        return all(ability.works for ability in self.abilities if ability.needed)


def examine(exports: Path, data: Path, public: Path | None) -> Diagnosis:
    """Looks at this machine and at the folders of bundles, of datasets and of public logs (see `find_public_data`)."""
    packages = {name: version(name) for name in sorted({*TRAINING, *IMPORTING, *EXPORTING, *APP, *BROWSER})}
    learning, inference, chromium = describe_torch(), describe_inference(), find_chromium()
    bundles = describe_exports(exports)
    abilities = [
        *_abilities_of_the_engine(packages, learning),
        *_abilities_of_the_app(packages, inference, bundles, exports),
        _browser_tests(packages, chromium),
    ]
    folders = {"exports": bundles, "datasets": describe_datasets(data), "public": describe_public(public)}
    return Diagnosis(describe_machine(), packages, learning, inference, chromium, folders, abilities)


# --- facts ---------------------------------------------------------------------------------------------------------------


def version(package: str) -> str | None:
    for name in _BUILDS.get(package, (package,)):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def find_chromium(environ: Mapping[str, str] = os.environ) -> str | None:
    """The browser that the browser tests drive: SEQSCOPE_CHROMIUM where it is set, else the first on the path."""
    named = environ.get("SEQSCOPE_CHROMIUM")
    return next((path for name in ([named] if named else _CHROMIUMS) if (path := shutil.which(name))), None)


def find_public_data(root: Path, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Public logs that importers and benchmarks are tried on: SEQSCOPE_DATA, else ../shared/data beside `root`, else None."""
    named = environ.get("SEQSCOPE_DATA")
    if named:
        return Path(named)
    beside = root.resolve().parent / "shared" / "data"
    return beside if beside.is_dir() else None


def describe_machine() -> dict[str, str]:
    total, free = memory()
    disk = shutil.disk_usage(Path.cwd())
    return {
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1),
        "memory": f"{_gib(total)}, {_gib(free)} free" if total else "unknown",
        "disk": f"{_gib(disk.free)} free of {_gib(disk.total)} here",
    }


def describe_torch() -> dict[str, Any]:
    """version, cuda (the build's) and devices; or error, in words."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        return {"error": f"not installed ({error})" if version("torch") is None else f"cannot be imported: {error}"}
    devices = []
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        properties = torch.cuda.get_device_properties(number)
        devices.append(
            {
                "name": properties.name,
                "memory": _gib(properties.total_memory),
                "capability": f"{properties.major}.{properties.minor}",
                "bf16": properties.major >= 8,
            }
        )
    return {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
        "devices": devices,
    }


def describe_inference() -> dict[str, str]:
    """Label → value, from `engine.runtime.providers`; or error, in words."""
    try:
        providers = importlib.import_module("engine.runtime.providers")
    except ImportError as error:
        return {"error": f"not available ({error})"}
    return dict(providers.describe())


def describe_exports(folder: Path) -> list[dict[str, Any]]:
    """Per dataset folder in exports/: name, the models that open, and what is wrong with those that do not."""
    entries = []
    for path in _dataset_folders(folder):
        entry: dict[str, Any] = {"name": path.name, "models": [], "faults": []}
        try:
            zoo = importlib.import_module("engine.runtime.zoo").Zoo.open(path)
        except ImportError as error:
            entry["faults"].append(f"not looked into ({error})")
        except SeqscopeError as error:
            entry["faults"].append(str(error))
        else:
            entry["models"] = list(zoo.bundles)
            entry["faults"] += [str(refusal) for refusal in zoo.refused]
        entries.append(entry)
    return entries


def describe_datasets(folder: Path) -> list[dict[str, Any]]:
    """Per prepared dataset in data/: name, and its counts or what is wrong with it."""
    entries = []
    for path in _dataset_folders(folder):
        try:
            info = importlib.import_module("engine.data.dataset").DatasetInfo.read(path / "dataset.json")
            entries.append({"name": path.name, **{key: info.counts[key] for key in ("users", "items", "events")}})
        except (ImportError, SeqscopeError, KeyError) as error:
            entries.append({"name": path.name, "fault": str(error)})
    return entries


def describe_public(folder: Path | None) -> dict[str, Any] | None:
    """The folder of `find_public_data` and the logs in it (None: it is no folder)."""
    if folder is None:
        return None
    return {
        "folder": str(folder),
        "logs": sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else None,
    }


def _dataset_folders(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("*/dataset.json")) if folder.is_dir() else []


def _gib(count: float) -> str:
    return f"{count / 2**30:.1f} GiB"


# --- conclusions ---------------------------------------------------------------------------------------------------------


def _missing(names: Iterable[str], packages: Mapping[str, str | None]) -> str:
    """What to install, or ""."""
    absent = [_BUILDS.get(name, (name,))[0] for name in dict.fromkeys(names) if packages[name] is None]
    if not absent:
        return ""
    target = "install-dev" if set(absent) & set(BROWSER) else "install"
    return f"not installed: {', '.join(absent)} (make {target})"


def _ability(name: str, missing: str, note: str, *, needed: bool = False) -> Ability:
    return Ability(name, works=not missing, needed=needed, note=missing or note)


def _abilities_of_the_engine(packages: Mapping[str, str | None], learning: Mapping[str, Any]) -> list[Ability]:
    devices = learning.get("devices", [])
    on = ", ".join(f"{device['name']} ({device['memory']})" for device in devices) or "the CPU"
    broken = f"torch {learning['error']}" if "error" in learning and packages["torch"] else ""
    return [
        _ability("Train", _missing(TRAINING, packages) or broken, f"on {on}", needed=True),
        _ability("Import logs", _missing(IMPORTING, packages), "with DuckDB"),
        _ability("Export bundles", _missing((*TRAINING, *EXPORTING), packages), "through ONNX"),
    ]


def _abilities_of_the_app(
    packages: Mapping[str, str | None], inference: Mapping[str, str], exports: list[dict[str, Any]], folder: Path
) -> list[Ability]:
    models = {entry["name"]: len(entry["models"]) for entry in exports if entry["models"]}
    missing = _missing(APP, packages) or ("" if "error" not in inference else f"ONNX Runtime {inference['error']}")
    if not missing and not models:
        faults = [fault for entry in exports for fault in entry["faults"]]
        missing = faults[0] if faults else f"no bundle in {folder}/ (make exports rebuilds the sample)"
    note = ", ".join(f"{name} with {count(number, 'model')}" for name, number in models.items())
    return [_ability("Serve the app", missing, note, needed=True)]


def _browser_tests(packages: Mapping[str, str | None], chromium: str | None) -> Ability:
    missing = _missing(BROWSER, packages)
    if not missing and chromium is None:
        missing = "chromium not found (apt-get install chromium, or name one in SEQSCOPE_CHROMIUM)"
    return _ability("Browser tests", missing, f"with {chromium}")


# --- the command -----------------------------------------------------------------------------------------------------------


def configure(parser: argparse.ArgumentParser) -> None:
    options.json(parser, "report")
    parser.add_argument(
        "--exports", type=Path, default=Path("exports"), help="where bundles are (default: %(default)s)"
    )
    parser.add_argument("--data", type=Path, default=Path("data"), help="where datasets are (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    report = examine(args.exports, args.data, find_public_data(Path()))
    if args.json:
        facts = {"seqscope": __version__, "healthy": report.healthy, **asdict(report)}
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        print("\n".join(_lines(report)))
    return 0 if report.healthy else 1


def _lines(report: Diagnosis) -> Iterator[str]:
    yield f"seqscope {__version__}"
    yield from _section("Machine", report.machine)
    yield from _section("PyTorch", _torch(report.torch))
    yield from _section("Inference", report.inference)
    yield from _section("Packages", {name: version or "not installed" for name, version in report.packages.items()})
    yield from _section("Data", dict(_data(report.data)))
    yield ""
    yield "What works here"
    for ability in report.abilities:
        mark = "✓" if ability.works else "✗" if ability.needed else "–"
        yield f"  {mark} {ability.name:<16} {ability.note}"


def _section(title: str, rows: dict[str, str]) -> Iterator[str]:
    width = max(map(len, rows), default=0)
    yield ""
    yield title
    yield from (f"  {label:<{width}}  {value}" for label, value in rows.items())


def _torch(facts: dict[str, Any]) -> dict[str, str]:
    if "error" in facts:
        return {"torch": facts["error"]}
    rows = {"version": facts["version"], "threads": str(facts["threads"])}
    for number, device in enumerate(facts["devices"]):
        bf16 = "bf16" if device["bf16"] else "no bf16"
        rows[f"cuda:{number}"] = f"{device['name']}, {device['memory']}, capability {device['capability']}, {bf16}"
    if not facts["devices"]:
        built = "built for CUDA " + facts["cuda"] if facts["cuda"] else "built without CUDA"
        rows["devices"] = f"the CPU alone ({built}; no CUDA device)"
    return rows


def _data(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for entry in facts["exports"]:
        models = ", ".join(entry["models"]) or "no model that opens"
        yield f"bundles: {entry['name']}", "; ".join([models, *entry["faults"]])
    if not facts["exports"]:
        yield "bundles", "none"
    for entry in facts["datasets"]:
        counts = entry.get("fault") or ", ".join(f"{entry[key]:,} {key}" for key in ("users", "items", "events"))
        yield f"dataset: {entry['name']}", counts
    if not facts["datasets"]:
        yield "datasets", "none"
    public = facts["public"]
    if public is None:
        yield "public logs", "none (SEQSCOPE_DATA is not set; only tests and benchmarks on public logs use it)"
    else:
        yield (
            "public logs",
            f"{public['folder']}: " + ("not a folder" if public["logs"] is None else ", ".join(public["logs"])),
        )
