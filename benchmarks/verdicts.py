"""Whether neural models are worth their training on a log, kept as a file, and the sentence above its table (benchmarks.quality).

A folder is one of runs, evaluated by `seqscope evaluate`, or one of exports; its models are those of one dataset.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from app.analysis import evaluation
from engine.data.dataset import Dataset, DatasetInfo
from engine.errors import SeqscopeError
from engine.evaluation.protocols import of_people, parse
from engine.evaluation.run_verdict import main_protocol, of_runs
from engine.evaluation.verdict import GROUP_COLUMNS, USERS, Side, Verdict, group_rows, sentences
from engine.files import write_json
from engine.registry import learns
from engine.runtime import Zoo

_VERDICT = TypeAdapter(Verdict)


def judge(folder: Path) -> tuple[DatasetInfo, dict[str, Verdict]]:
    """(the dataset, full ranking's protocols → the verdict under each). Raises SeqscopeError where nothing was evaluated."""
    verdicts: dict[str, Verdict | None]
    if (folder / "dataset.json").exists():
        models = Zoo.open(folder)
        judged = {name: parse(name) for name in evaluation.protocols(models)}
        info, protocols = models.info, [name for name, of in judged.items() if of.full and not of.with_times]
        verdicts = {name: evaluation.verdict(models, name, of_people(name)[0]) for name in protocols}
    else:
        measured = [path for path in sorted(folder.glob("*/metrics.json")) if (path.parent / "run.json").exists()]
        if not measured:
            raise SeqscopeError(f"{folder}: no run here was evaluated")
        dataset = Dataset(json.loads((measured[0].parent / "run.json").read_text("utf-8"))["dataset_path"])
        info, protocols = (
            dataset.info,
            list({main_protocol(json.loads(path.read_text("utf-8"))): None for path in measured}),
        )
        runs = [path.parent for path in measured]
        verdicts = {name: of_runs(runs, dataset, name, of_people(name)[0]) for name in protocols}
    return info, {name: verdict for name, verdict in verdicts.items() if verdict is not None}


def record(folder: Path, results: Path, options: Callable[[DatasetInfo], dict[str, Any]]) -> Path:
    """Keep what `judge` finds in `results`; options: what of the import decides what a figure means."""
    info, verdicts = judge(folder)
    path = results / f"{info.name}-verdict.json"
    write_json(
        path,
        {
            "dataset": info.name,
            "fingerprint": info.fingerprint,
            "options": options(info),
            "verdicts": {name: dataclasses.asdict(verdict) for name, verdict in verdicts.items()},
        },
    )
    return path


def kept(results: Path, dataset: str, fingerprint: str) -> dict[str, Verdict]:
    """Protocol → verdict, as `record` left it; empty where there is none, or it is of other data."""
    try:
        found = json.loads((results / f"{dataset}-verdict.json").read_text("utf-8"))
    except FileNotFoundError:
        return {}
    if found["fingerprint"] != fingerprint:
        return {}
    return {name: _VERDICT.validate_json(json.dumps(verdict)) for name, verdict in found["verdicts"].items()}


def sentence(results: Path, dataset: str, fingerprint: str, protocols: list[str], models: Mapping[str, Any]) -> str:
    """What stands above a table of these protocols: the verdict under the first that has one. models: name → result, of the
    table; what a training took is told as there."""
    verdicts = kept(results, dataset, fingerprint)
    for protocol in protocols:
        if protocol in verdicts:
            verdict = verdicts[protocol]
            sides = [_with_seconds(side, models) for side in (verdict.neural, verdict.untrained)]
            verdict = dataclasses.replace(verdict, neural=sides[0], untrained=sides[1])
            lines, rows = [f"{protocol}: {sentences(verdict)}{_among(verdict, protocol, models)}"], group_rows(verdict)
            if rows:
                lines += ["", f"| {' | '.join(GROUP_COLUMNS)} |", "|---" * len(GROUP_COLUMNS) + "|"]
            return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
    return f"No verdict was recorded (`python -m benchmarks.quality verdict runs/{dataset}`)."


def _with_seconds(side: Side | None, models: Mapping[str, Any]) -> Side | None:
    result = None if side is None else models.get(side.name.removesuffix(USERS))
    return side if side is None or result is None else dataclasses.replace(side, seconds=result["seconds"])


def _among(verdict: Verdict, protocol: str, models: Mapping[str, Any]) -> str:
    """Of how many models of the table the verdict is, where it is not of all: those whose rankings lay side by side."""
    there = [learns(result["recipe"]["family"]) for result in models.values() if protocol in result["metrics"]]
    words = []
    kinds = ((verdict.neural, True, "neural models"), (verdict.untrained, False, "models that need no training"))
    for side, trains, kind in kinds:
        judged = 0 if side is None else side.among
        if judged < there.count(trains):
            words.append(f"{judged} of the {there.count(trains)} {kind}")
    return f" Compared user by user: {' and '.join(words)} below." if words else ""
