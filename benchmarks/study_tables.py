"""Studies on logs that are not embedded, as tables: each variant beside what its paper has, as `seqscope study` measured it.

seqscope study graph-layers --dataset data/gowalla --to benchmarks/gowalla
python -m benchmarks.study_tables
"""

from __future__ import annotations

import json
from pathlib import Path

from app.analysis import studies as views
from engine.bundle.files import Catalogue
from engine.runtime import Study, judge
from engine.runtime.studies import STUDIES, of_people, read

HERE = Path(__file__).resolve().parent


def table(study: Study) -> list[str]:
    """Figures with their 95 % intervals over users, the difference to the baseline, then the papers' figures."""
    assert study.protocol is not None
    metrics = of_people(study.protocol)
    papers = [f"{entry.metric}, {entry.source}" for entry in study.published]
    head = [study.axis.title if study.axis else "", *metrics, f"difference of {metrics[0]}", *papers]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    results = {metric: views.table(study, metric).set_index("variant") for metric in metrics}
    for variant in study.variants:
        rows = [results[metric].loc[variant.name] for metric in metrics]
        cells = [variant.title, *(f"{row['mean']:.4f} ({row['low']:.4f} to {row['high']:.4f})" for row in rows)]
        first = rows[0]
        ends = f"{judge.signed(first['lowest'])} to {judge.signed(first['highest'])}"
        apart = f"{judge.signed(first['difference'])} ({ends})"
        cells.append("baseline" if first["verdict"] == "baseline" else apart)
        cells += [
            f"{entry.figures[variant.name]:.4f}" if variant.name in entry.figures else "" for entry in study.published
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    for path in sorted(HERE.glob(f"*/{STUDIES}/*.json")):
        raw = json.loads(path.read_text("utf-8"))
        study = read(path, Catalogue(raw["dataset"], raw["fingerprint"], 0))
        seeds = len(study.variants[0].outcomes)
        print(
            f"**{study.title}**, {study.dataset}, {study.people:,} users, {seeds} {'seed' if seeds == 1 else 'seeds'}:\n"
        )
        print("\n".join(table(study)), end="\n\n")


if __name__ == "__main__":
    main()
