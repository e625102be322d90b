"""run.json of a finished training, as whoever evaluates, exports, refits or compares it reads it."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.bundle.curve import TRAINING, WITH_VALIDATION
from engine.errors import SeqscopeError
from engine.files import contents, load_json

PROVENANCE: dict[str, tuple[type, ...]] = {
    "recipe": (dict,), "dataset": (str,), "dataset_path": (str,), "fingerprint": (str,), "command": (str,),
    "device": (str,), "versions": (dict,), "started": (str,), "seconds": (int, float),
}  # fmt: skip
"""What the record of every run holds: entry → what it may be."""
_TRAINED = PROVENANCE | {"epochs": (int,), "best_epoch": (int,), "parameters": (int,), "curve": (list,)}
_LATER: dict[str, tuple[type, ...]] = {"commit": (str, type(None)), "chosen": (dict, type(None)), "fitted_on": (str,)}
_OF_EPOCH: dict[str, tuple[type, ...]] = {
    "epoch": (int,), "step": (int,), "seconds": (int, float),
    "loss": (int, float, type(None)), "valid_ndcg": (int, float, type(None)),
}  # fmt: skip


def expect_run_folder(folder: Path) -> set[str]:
    """The names in a folder that a run is to be written to. Raises SeqscopeError where it is that of a dataset, of bundles or of
    several such."""
    names, others = contents(folder), ("dataset.json", "manifest.json")
    there = sorted(names.intersection(others))
    if "run.json" not in names:
        there += sorted(path.parent.name for kind in (*others, "run.json") for path in folder.glob(f"*/{kind}"))
    if there:
        raise SeqscopeError(
            f"{folder} is not a run: it holds datasets, bundles or runs ({there[0]}). Give another --out."
        )
    return names


def read_record(run: Path) -> dict[str, Any]:
    """Raises FileNotFoundError or NotADirectoryError where there is none, SeqscopeError where it cannot be used."""
    path = run / "run.json"
    try:
        record = load_json(path)
        wrong = fault(record, _TRAINED) or _later_fault(record)
    except ValueError as error:
        record, wrong = None, str(error)
    if isinstance(record, dict) and record.get("kind") == "tokenizer":
        raise SeqscopeError(f"{run} holds a run of a tokenizer, not of a model. Name one of `seqscope train`.")
    if wrong:
        raise SeqscopeError(f"{path} cannot be used ({wrong}). Train again with --restart.")
    return dict(record)


def dataset_of(run: Path, record: Mapping[str, Any]) -> Path:
    """Where the dataset of a run is, by its record. Raises SeqscopeError where it is not there."""
    path = Path(record["dataset_path"])
    if not path.exists():
        raise SeqscopeError(
            f"{run} was made of {path}, which is not there. Name the folder where it is now with --dataset."
        )
    return path


def fault(record: Any, kinds: Mapping[str, tuple[type, ...]]) -> str:
    """What is wrong with a record whose entries are to be of these kinds; "" for nothing."""
    if not isinstance(record, dict):
        return "no record of a training"
    for name, allowed in kinds.items():
        value = record.get(name)
        if (
            not isinstance(value, allowed)
            or isinstance(value, bool)
            or (isinstance(value, float) and not math.isfinite(value))
        ):
            return f"{name} is {str(value)[:80]!r}" if name in record else f"no '{name}' in it"
    return ""


def _later_fault(record: Mapping[str, Any]) -> str:
    for entry in record["curve"]:
        if wrong := fault(entry, _OF_EPOCH):
            return f"in curve, {wrong}"
    if record.get("fitted_on", TRAINING) not in (TRAINING, WITH_VALIDATION):
        return f"fitted_on is {str(record['fitted_on'])[:80]!r}"
    return fault(record, {name: allowed for name, allowed in _LATER.items() if name in record})
