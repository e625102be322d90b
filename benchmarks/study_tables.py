"""Studies on logs that are not embedded, as tables: each variant beside what its paper has, as `seqscope study` measured it.

    seqscope study graph-layers ngcf-layers ngcf-dropout --dataset data/gowalla --to benchmarks/results/gowalla
    seqscope study --dataset data/beauty --to benchmarks/results/beauty
    python -m benchmarks.study_tables

The first two need Gowalla and Beauty imported (docs/protocol.md); the third prints the tables of benchmarks/README.md.
"""

import json
from pathlib import Path

from app.analysis import studies as views
from engine.bundle.files import Catalogue
from engine.evaluation.protocols import of_people
from engine.runtime import Study, judge
from engine.runtime.studies import MEASURES, OF_RUNS, STUDIES, read
from engine.writing import count

RESULTS = Path(__file__).resolve().parent / "results"


def of_study(study: Study) -> list[str]:
    """Lines of Markdown: a row per variant."""
    people = "" if study.people is None else f" {count(study.people, 'user')},"
    seeds = count(len(study.variants[0].outcomes), "seed")
    head, *rows = of_tokenizers(study) if study.protocol is None else of_rankings(study, study.protocol)
    head = ["" if study.axis is None else study.axis.title, *head]
    return [
        f"**{study.title}**, {study.dataset},{people} {seeds}:",
        "",
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def of_tokenizers(study: Study) -> list[list[str]]:
    """The head, without the first column, and a row per variant: what tokenizers make of the catalogue, means over seeds."""
    figures = [name for name in OF_RUNS if name in study.figures]
    rows = [
        [
            f"{variant.title} (baseline)" if variant.name == study.baseline else variant.title,
            *(format(variant.figure(name), MEASURES[name].form) for name in figures),
        ]
        for variant in study.variants
    ]
    return [[MEASURES[name].title for name in figures], *rows]


def of_rankings(study: Study, protocol: str) -> list[list[str]]:
    """The head, without the first column, and a row per variant: figures with their 95 % intervals over users, differences to
    the baseline, then the papers' figures."""
    gain, hits = of_people(protocol)
    results = {metric: views.table(study, metric).set_index("variant") for metric in (hits, gain)}
    papers = [f"{entry.metric}, {entry.source}" for entry in study.published]
    lines = [[hits, gain, f"difference of {gain}", *papers]]
    for variant in study.variants:
        rows = [results[metric].loc[variant.name] for metric in (hits, gain)]
        ends = " to ".join(judge.signed(rows[1][end]) for end in ("lowest", "highest"))
        lines.append([
            variant.title,
            *(f"{row['mean']:.4f} ({row['low']:.4f} to {row['high']:.4f})" for row in rows),
            "baseline" if variant.name == study.baseline else f"{judge.signed(rows[1]['difference'])} ({ends})",
            *(
                f"{entry.figures[variant.name]:.4f}" if variant.name in entry.figures else ""
                for entry in study.published
            ),
        ])  # fmt: skip
    return lines


def table() -> str:
    """Of all studies that are kept here, in the order of their pages."""
    studies = []
    for path in sorted(RESULTS.glob(f"*/{STUDIES}/*.json")):
        raw = json.loads(path.read_text("utf-8"))
        studies.append(read(path, Catalogue(raw["dataset"], raw["fingerprint"], 0)))
    studies.sort(key=lambda study: (study.dataset, study.order))
    return "\n".join(line for study in studies for line in of_study(study))


if __name__ == "__main__":
    print(table())
