"""Studies on logs that are not embedded, as tables: each variant beside what its paper has, as `seqscope study` measured it.

    seqscope study graph-layers ngcf-layers ngcf-dropout --dataset data/gowalla --to benchmarks/results/gowalla
    python -m benchmarks.study_tables

The first needs Gowalla imported (docs/protocol.md); the second prints the tables of benchmarks/README.md.
"""

import json
from pathlib import Path

from app.analysis import studies as views
from engine.bundle.files import Catalogue
from engine.evaluation.protocols import of_people
from engine.runtime import Study, judge
from engine.runtime.studies import STUDIES, read

RESULTS = Path(__file__).resolve().parent / "results"


def of_study(study: Study) -> list[str]:
    """Lines of Markdown: figures with their 95 % intervals over users, the difference to the baseline, then the papers' figures.
    Of a study that ranks."""
    assert study.protocol is not None
    gain, hits = of_people(study.protocol)
    seeds = len(study.variants[0].outcomes)
    results = {metric: views.table(study, metric).set_index("variant") for metric in (hits, gain)}
    papers = [f"{entry.metric}, {entry.source}" for entry in study.published]
    head = ["" if study.axis is None else study.axis.title, hits, gain, f"difference of {gain}", *papers]
    lines = [
        f"**{study.title}**, {study.dataset}, {study.people:,} users, {seeds} {'seed' if seeds == 1 else 'seeds'}:",
        "",
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
    ]
    for variant in study.variants:
        rows = [results[metric].loc[variant.name] for metric in (hits, gain)]
        ends = " to ".join(judge.signed(rows[1][end]) for end in ("lowest", "highest"))
        cells = [
            variant.title,
            *(f"{row['mean']:.4f} ({row['low']:.4f} to {row['high']:.4f})" for row in rows),
            "baseline" if variant.name == study.baseline else f"{judge.signed(rows[1]['difference'])} ({ends})",
            *(
                f"{entry.figures[variant.name]:.4f}" if variant.name in entry.figures else ""
                for entry in study.published
            ),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def table() -> str:
    """Of all studies that are kept here."""
    lines: list[str] = []
    for path in sorted(RESULTS.glob(f"*/{STUDIES}/*.json")):
        raw = json.loads(path.read_text("utf-8"))
        lines += of_study(read(path, Catalogue(raw["dataset"], raw["fingerprint"], 0)))
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
