"""Say what this machine has and what is missing for what: packages, devices, datasets, bundles, a browser for the tests.

Exit code 0 where the app can be served and models can be trained, else 1. --json prints the same for programs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine import __version__
from engine.commands import options
from engine.doctor import Diagnosis, examine, find_public_data, to_json


def configure(parser: argparse.ArgumentParser) -> None:
    options.json(parser, "report")
    parser.add_argument(
        "--exports", type=Path, default=Path("exports"), help="where bundles are (default: %(default)s)"
    )
    parser.add_argument("--data", type=Path, default=Path("data"), help="where datasets are (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    report = examine(args.exports, args.data, find_public_data(Path()))
    if args.json:
        print(json.dumps(to_json(report), indent=2, ensure_ascii=False))
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
