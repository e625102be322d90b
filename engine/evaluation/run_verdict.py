"""The verdict (engine/evaluation/verdict.py) on finished runs that lie side by side, for `seqscope evaluate` and benchmarks."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.bundle.tables import side_tables
from engine.data.dataset import Dataset
from engine.errors import SeqscopeError
from engine.evaluation import memorisation, metrics
from engine.evaluation.protocols import in_order, parse
from engine.evaluation.record import read_record
from engine.evaluation.tables import COST, Ranks, common, ranks, read_metrics
from engine.evaluation.verdict import USERS, Contender, Verdict, verdict, without_seed
from engine.files import read_json
from engine.registry import MODELS, learns


class EvaluatedRun(NamedTuple):
    name: str
    record: dict[str, Any]
    """run.json."""
    measured: dict[str, dict[str, float]]
    """metrics.json."""
    table: pa.Table
    """ranks.parquet."""
    milliseconds: float | None

    @property
    def family(self) -> str:
        return str(self.record["recipe"]["family"])


def main_protocol(measured: Iterable[str]) -> str:
    """Of the protocols that a run was evaluated under, the one that models are judged by."""
    named = {name: parse(name) for name in measured}
    return in_order(n for n, of in named.items() if not (of.part or of.trained_users or of.with_times))[0]


def of_runs(folders: Iterable[Path], dataset: Dataset, protocol: str, metric: str) -> Verdict | None:
    """The verdict under `protocol`, over the people that all runs were asked for. None where none of `folders` is a run of this
    very dataset that was evaluated so; others are left out."""
    runs = [run for folder in sorted(folders) if (run := _read(folder, dataset.info.fingerprint)) is not None]
    rows: dict[str, Ranks] = {}
    of_row: dict[str, EvaluatedRun] = {}
    for run in runs:
        for suffix in ("", USERS):
            variant = protocol + suffix
            row = ranks(run.table, variant, metrics.beam_width(run.measured, variant))
            if row is not None:
                rows[run.name + suffix], of_row[run.name + suffix] = row, run
    people, _ = common(rows)
    if not people:
        return None
    alike: dict[tuple[str, str], dict[int, str]] = {}
    for name, run in of_row.items():
        key = without_seed(run.record["recipe"]) if learns(run.family) else run.name
        seed = run.record["recipe"]["training"]["seed"] if learns(run.family) else 0
        alike.setdefault((key, name.removeprefix(run.name)), {}).setdefault(seed, name)  # a copy is no other training
    contenders = [_contender([(name, of_row[name]) for name in names.values()], people) for names in alike.values()]
    some = next(iter(people.values()))
    kinds, cases = memorisation.of_test(dataset), dataset.cases("test")
    memorised = None if kinds is None else some.lookup(cases.users[cases.owner], cases.targets, kinds)
    return verdict(contenders, metric, dataset.popularity, memorised)


def other_seeds(run: Path) -> pa.Table | None:
    """The full rankings of the runs beside `run` that differ from it in their seed alone: the columns of ranks.parquet and seed
    (int64). None where there are none, or nothing is learned."""
    record = read_record(run)
    if not learns(record["recipe"]["family"]):
        return None
    seeds = {record["recipe"]["training"]["seed"]}
    tables = []
    for folder in sorted(run.absolute().parent.iterdir()):
        other = _read(folder, record["fingerprint"])
        if other is None or without_seed(other.record["recipe"]) != without_seed(record["recipe"]):
            continue
        seed, fitted_on = other.record["recipe"]["training"]["seed"], other.record.get("fitted_on")
        if seed in seeds or fitted_on != record.get("fitted_on"):
            continue
        seeds.add(seed)
        full = [parse(name).full for name in other.table["protocol"].to_pylist()]
        table = other.table.filter(pa.array(full))
        tables.append(table.append_column("seed", pa.array([seed] * len(table), pa.int64())))
    return pa.concat_tables(tables) if tables else None


def _read(folder: Path, fingerprint: str) -> EvaluatedRun | None:
    try:
        record = read_record(folder)
        if record["fingerprint"] != fingerprint:
            return None
        if record["recipe"]["family"] not in MODELS or not isinstance(record["recipe"]["training"]["seed"], int):
            return None
        measured, columns = read_metrics(folder), side_tables(0)["ranks.parquet"]
        table = pq.ParquetFile(folder / "ranks.parquet").read().select(list(columns))
        table.cast(pa.schema({name: column.type for name, column in columns.items()}))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException, SeqscopeError):
        return None  # no finished run, or none that was evaluated
    cost = read_json(folder / COST).get("milliseconds")
    milliseconds = cost if isinstance(cost, int | float) and math.isfinite(cost) else None
    return EvaluatedRun(folder.name, record, measured, table, milliseconds) if measured else None


def _contender(runs: list[tuple[str, EvaluatedRun]], people: dict[str, Ranks]) -> Contender:
    name, first = runs[0]
    by_seed = sorted(runs, key=lambda run: run[1].record["recipe"]["training"]["seed"])
    return Contender(
        name=name,
        title=first.name + (", user vectors" if name.endswith(USERS) else ""),
        learns=learns(first.family),
        ranks=tuple(people[row] for row, _ in by_seed),
        seconds=float(np.mean([run.record["seconds"] for _, run in runs])),
        parameters=first.record["parameters"],
        milliseconds=first.milliseconds,
        improving=any(run.record.get("improving") for _, run in runs),
    )
