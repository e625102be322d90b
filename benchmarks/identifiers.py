"""Tokenizers on public catalogues: what their identifiers are worth, beside the codes that LETTER's authors published.

    seqscope data import interactions.csv --items items.jsonl --out data/beauty     (docs/data.md)
    seqscope train sasrec --dataset data/beauty --recipe beauty/sasrec-bce          the teacher, and who judges
    seqscope train lightgcn --dataset data/beauty                                   the other teacher
    python -m benchmarks.identifiers run [VARIANT …]        fits into runs/, writes benchmarks/results/identifiers-*.json
    python -m benchmarks.identifiers table                  prints the table of benchmarks/README.md, with the goals

Published codes are read where the public logs are (SEQSCOPE_DATA, or ../shared/data). The ablation is LETTER's recipe with α or β
or both at 0, so that nothing else differs, with three seeds each. A result names its command, recipe, seconds, device, commit and
fingerprint.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from benchmarks.quality import options
from benchmarks.quality_tables import floors
from engine.commands.doctor import find_public_data
from engine.data.dataset import Dataset
from engine.files import write_json
from engine.text.embeddings import read_items
from engine.tokenizers.base import Learning, Material
from engine.tokenizers.collisions import settle
from engine.tokenizers.kmeans import ResidualKMeans
from engine.tokenizers.letter import Letter
from engine.tokenizers.p5 import together
from engine.tokenizers.recipe import load
from engine.tokenizers.report import Judge, categories, describe, figures, neighbours, shared, unit
from engine.tokenizers.run import tokenize
from engine.training import compute as devices
from engine.training.run import commit

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).resolve().parent / "results"
JUDGE = "sasrec-bce"
SEEDS = (1, 2, 3)
ABLATION = {
    "letter-none": ("RQ-VAE with LETTER's settings", ["tokenizer.alpha=0", "tokenizer.beta=0"]),
    "letter-diversity": ("… + diversity", ["tokenizer.alpha=0"]),
    "letter-collaborative": ("… + collaborative", ["tokenizer.beta=0"]),
    "letter": ("… + both: LETTER", []),
}
"""LETTER's recipe with its terms and without: title, and what is set."""
# variant → recipe and what is set in it
VARIANTS: dict[str, tuple[str, list[str]]] = {
    "random": ("random", ["tokenizer.levels=4"]),
    "residual-kmeans": ("residual-kmeans", []),
    "rqvae": ("rqvae", []),
    **{name: ("letter", sets) for name, (_, sets) in ABLATION.items()},
    **{
        f"{name}-seed{seed}": ("letter", [*sets, f"training.seed={seed}"])
        for seed in SEEDS[1:]
        for name, (_, sets) in ABLATION.items()
    },
    "letter-lightgcn": ("letter", ["tokenizer.teacher=lightgcn"]),
    "p5-semid": ("p5-semid", []),
    "p5-cid": ("p5-cid", []),
    "p5-tid": ("p5-tid", []),
}
TITLES = {
    "random": "random, 4 levels",
    "residual-kmeans": "residual k-means",
    "rqvae": "RQ-VAE as TIGER, 3 levels",
    **{name: title for name, (title, _) in ABLATION.items()},
    **{f"{name}-seed{seed}": f"{title}, seed {seed}" for seed in SEEDS[1:] for name, (title, _) in ABLATION.items()},
    "letter-lightgcn": "LETTER, taught by LightGCN",
    "teacher-alone": "the teacher's vectors alone, residual k-means",
    "published": "LETTER, codes of its authors",
    "p5-semid": "category path",
    "p5-cid": "collaborative clusters",
    "p5-tid": "title tokens",
}
PUBLISHED = {"beauty": "Beauty", "instruments": "Instruments"}


def fit(variant: str, dataset: Dataset, settings: list[str], restart: bool) -> None:
    """Fit one variant and keep its result."""
    name = dataset.info.name
    recipe_name, sets = VARIANTS[variant]
    recipe = load(recipe_name, name, None, [*sets, *settings])
    folder = Path("runs") / name / variant
    judge = Path("runs") / name / JUDGE
    report = tokenize(recipe, dataset, folder, device="cpu", restart=restart, judge=judge)
    record = json.loads((folder / "run.json").read_text("utf-8"))
    words = " ".join(f"--set {text}" for text in [*sets, *settings])
    keep(
        variant,
        dataset,
        report,
        record
        | {
            "command": f"seqscope tokenize {recipe_name} --dataset {dataset.path} --out {folder} --judge {judge} {words}".strip()
        },
    )


def of_the_authors(dataset: Dataset, what: str, ending: str) -> Path | None:
    """The file that LETTER's authors publish of a catalogue; None, and a line that says so, where it is not here."""
    public, name = find_public_data(ROOT), dataset.info.name
    path = None if public is None else public / name / f"{PUBLISHED[name]}{ending}"
    if path is not None and path.is_file():
        return path
    print(f"{what}: not found (set SEQSCOPE_DATA to the folder of public logs)")
    return None


def published(dataset: Dataset) -> None:
    """The codes that LETTER's authors publish for the same items, under the same measures."""
    path, name = of_the_authors(dataset, "published codes", ".index.json"), dataset.info.name
    if path is None:
        return
    items = read_items(dataset.path)
    numbers = items["id" if "id" in items.column_names else "item_id"].to_pylist()
    raw = json.loads(path.read_text("utf-8"))
    codes = np.array([[int(token[3:-1]) for token in raw[str(number)]] for number in numbers], np.int32)
    judge_run = Path("runs") / name / JUDGE
    judge = Judge.of(judge_run, dataset) if judge_run.exists() else None
    report = figures(codes, (256,) * codes.shape[1], dataset.popularity, categories(items), judge)
    report["before"] = report["after"] = report["collisions"]
    vectors = np.load(path.with_name(path.name.replace(".index.json", ".cf32.npy")))[np.array(numbers, np.int64)]
    report["own_teacher"] = {
        "shared": shared(codes, neighbours(vectors)),
        "of": "the authors' SASRec vectors",
    }
    keep("published", dataset, report, {"command": "python -m benchmarks.identifiers run published", "recipe": None})


def teacher_alone(dataset: Dataset) -> None:
    """Codes of the teacher's vectors, at unit length, and of no words at all: about as many codes as nearest items can share."""
    folder = Path("runs") / dataset.info.name / JUDGE
    judge = Judge.of(folder, dataset)
    recipe = load("residual-kmeans", dataset.info.name, None, ["tokenizer.levels=4"])
    items = read_items(dataset.path)
    material = Material(items, unit(judge.vectors), training=dataset.training)
    began = time.monotonic()
    tokenizer = ResidualKMeans.fit(
        material,
        recipe.tokenizer,
        np.random.default_rng(recipe.training.seed),
        Learning(recipe.optimiser, recipe.training),
    )
    identifiers = settle(tokenizer, material, recipe.collisions, {})
    report = describe(tokenizer, identifiers, material, dataset, judge)
    record = {
        "command": "python -m benchmarks.identifiers run teacher-alone", "recipe": recipe.to_dict(), "commit": commit(),
        "seconds": round(time.monotonic() - began, 1), "device": devices.describe(devices.choose("cpu")),
        "about": {"vectors": f"items of {folder.name}"},
    }  # fmt: skip
    keep("teacher-alone", dataset, report, record)


def without_text(dataset: Dataset, settings: list[str]) -> None:
    """LETTER where items have no words: what it quantises is whose sequences an item is in (leading singular vectors of the
    training co-occurrence, damped by PPMI), and its teacher are the authors' own vectors."""
    path, name = of_the_authors(dataset, "the authors' vectors", ".cf32.npy"), dataset.info.name
    if path is None:
        return
    items = read_items(dataset.path)
    numbers = np.array([int(number) for number in items["item_id"].to_pylist()])
    vectors = co_occurrence(dataset)
    material = Material(items, vectors, np.load(path)[numbers].astype(np.float32), dataset.training)
    recipe = load("letter", name, None, settings)
    learning = Learning(recipe.optimiser, recipe.training, label=f"{name}/letter")
    began = time.monotonic()
    tokenizer = Letter.fit(material, recipe.tokenizer, np.random.default_rng(recipe.training.seed), learning)
    about = {
        "collisions": recipe.collisions.policy,
        "vectors": "co-occurrence",
        "teacher": "the authors' SASRec vectors",
    }
    identifiers = settle(tokenizer, material, recipe.collisions, about)
    report = describe(tokenizer, identifiers, material, dataset, None)
    near = neighbours(material.of("collaborative"))
    report["own_teacher"] = {"shared": shared(identifiers.codes, near), "of": about["teacher"]}
    record = {
        "recipe": recipe.to_dict(), "about": about, "seconds": round(time.monotonic() - began, 1), "commit": commit(),
        "command": " ".join(
            ["python -m benchmarks.identifiers run letter --dataset", str(dataset.path), *(f"--set {text}" for text in settings)]
        ),
        "device": devices.describe(devices.choose("cpu")), "epochs": recipe.training.epochs,
    }  # fmt: skip
    keep("letter", dataset, report, record)


def co_occurrence(dataset: Dataset, dim: int = 128) -> np.ndarray:
    """float32 [items, dim]: leading singular vectors of max(0, log of how much oftener two items meet than by chance)."""
    graph = together(dataset.training, dataset.num_items)
    degree = np.maximum(np.asarray(graph.sum(1)).ravel(), 1)
    graph = graph.tocoo()
    ratio = graph.data * degree.sum() / (degree[graph.row] * degree[graph.col])
    ppmi = sparse.csr_array((np.maximum(np.log(ratio), 0), (graph.row, graph.col)), shape=graph.shape)
    left, values, _ = svds(ppmi, k=dim, rng=np.random.default_rng(0))
    return np.ascontiguousarray(left * np.sqrt(values), np.float32)


def keep(variant: str, dataset: Dataset, report: dict[str, Any], record: dict[str, Any]) -> None:
    result = {
        "dataset": dataset.info.name,
        "variant": variant,
        "fingerprint": dataset.info.fingerprint,
        "options": options(dataset.info),
        **{key: record.get(key) for key in ("recipe", "command", "commit", "device", "seconds", "epochs", "versions")},
        "about": record.get("about"),
        "report": report,
    }
    path = RESULTS / f"identifiers-{dataset.info.name}-{variant}.json"
    write_json(path, result)
    print(path)


def table() -> tuple[str, bool]:
    """The Markdown table of all results, the goals, and whether every goal is met."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(RESULTS.glob("identifiers-*.json")):
        result = json.loads(path.read_text("utf-8"))
        found[f"{result['dataset']}-{result['variant']}"] = result
    lines = [
        "| catalogue | tokenizer | codes used | perplexity, level 1 | excess (sharing) as fitted | after the policy | lost | "
        "codes shared with the nearest (dot · cosine) | NDCG@10 by codes | purity, level 1 | tail | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    order = list(TITLES)
    for result in sorted(found.values(), key=lambda r: (r["dataset"], order.index(r["variant"]))):
        report = result["report"]
        near, ranking = report.get("neighbours"), report.get("ranking")
        before, after = report["before"], report["after"]
        cells = [
            result["dataset"],
            TITLES[result["variant"]] + (", of co-occurrence: no text" if _without_text(result) else ""),
            " ".join(str(level["used"]) for level in report["levels"][:4])
            + (" …" if len(report["levels"]) > 4 else ""),
            f"{report['levels'][0]['perplexity']:.1f}",
            f"{before['excess']:.2%} ({before['sharing']:.2%})",
            f"{after['excess']:.2%}, largest {after['largest']}",
            f"{report['reconstruction']:.1%}" if report.get("reconstruction") is not None else "",
            f"{near['shared']:.3f} · {near['shared_by_cosine']:.3f}" if near else "",
            f"{ranking['quantised']:.4f} of {ranking['own']:.4f}" if ranking else "",
            f"{report['purity']['depths'][0]['purity']:.2f}" if "purity" in report else "",
            f"{report['squeeze']['ratio']:.2f}",
            f"{result['seconds']:,.0f}" if result.get("seconds") is not None else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    goals = _goals(found)
    lines += ["", *(f"* {text}: {'met' if met else '**missed**'}" for text, met in goals)]
    lines += [f"* By construction, no goal: {text}" for text in _properties(found)]
    floor = floors("beauty", "full")
    if "markov" in floor:
        words = f"popularity's NDCG@10 is {floor['popularity']:.4f}, the Markov chain's {floor['markov']:.4f}"
        lines.append(f'* For "NDCG@10 by codes": on the same users of beauty {words}')
    return "\n".join(lines), all(met for _, met in goals)


def _without_text(result: dict[str, Any]) -> bool:
    return (result["about"] or {}).get("vectors") == "co-occurrence"


def _properties(found: dict[str, dict[str, Any]]) -> list[str]:
    """What cannot be otherwise, beside the published codes."""
    properties = []
    for name in PUBLISHED:
        ours, theirs = (found.get(f"{name}-{variant}", {}).get("report") for variant in ("letter", "published"))
        if ours and theirs:
            used, others = (" ".join(str(level["used"]) for level in report["levels"]) for report in (ours, theirs))
            properties += [
                f"{name}: codes that no item takes are revived while LETTER is fitted, so it uses {used} (published {others})",
                f"{name}: items that collide are separated after fitting, which leaves {ours['after']['excess']:.3%} in excess "
                f"(published, after their authors' rounds of assigning anew: {theirs['after']['excess']:.3%})",
            ]
    return properties


def _goals(found: dict[str, dict[str, Any]]) -> list[tuple[str, bool]]:
    goals = []
    for name in PUBLISHED:
        ours, theirs = (found.get(f"{name}-{variant}", {}).get("report") for variant in ("letter", "published"))
        if ours and theirs:
            one, other = ours["before"]["excess"], theirs["before"]["excess"]
            text = f"{name}: our LETTER collides no more as fitted than the published codes, {one:.3%} ≤ {other:.3%}"
            if _without_text(found[f"{name}-letter"]):
                text += " (ours without any text, which this log lacks; theirs of text)"
            goals.append((text, one <= other))
    reports: dict[str, Any] = {variant: found.get(f"beauty-{variant}", {}).get("report") for variant in VARIANTS}

    def mean(variant: str, value: Callable[[dict[str, Any]], float]) -> float | None:
        """Over the seeds; None until all are there."""
        names = [variant, *(f"{variant}-seed{seed}" for seed in SEEDS[1:])]
        there = [reports[name] for name in names if reports.get(name)]
        return float(np.mean([value(report) for report in there])) if len(there) == len(names) else None

    for beside, without, with_it in (
        ("", "letter-none", "letter-diversity"),
        (", beside the collaborative term", "letter-collaborative", "letter"),
    ):
        for text, value, sign in (
            ("raises the perplexity of level 1, {:.1f} → {:.1f}", lambda r: r["levels"][0]["perplexity"], 1),
            ("lowers collisions as fitted, {:.2%} → {:.2%}", lambda r: r["before"]["excess"], -1),
        ):
            one, other = mean(without, value), mean(with_it, value)
            if one is not None and other is not None:
                words = f"beauty{beside}: diversity {text.format(one, other)} (means of {len(SEEDS)} seeds)"
                goals.append((words, sign * (other - one) > 0))
    for title, base in (("RQ-VAE as TIGER", "rqvae"), ("RQ-VAE with LETTER's settings", "letter-none")):
        for key, by in (("shared", "dot product"), ("shared_by_cosine", "cosine")):
            if reports[base] and reports["letter"]:
                one, other = (reports[name]["neighbours"][key] for name in (base, "letter"))
                sentence = (
                    f"beauty: LETTER against {title}: nearest items ({by}) share at least 3 times as many codes, "
                    f"{one:.3f} → {other:.3f}, {other / one:.2f} times"
                )
                goals.append((sentence, other >= 3 * one))
    return goals


ALONE = {"published": published, "teacher-alone": teacher_alone}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    run = actions.add_parser("run", help="fit variants and keep their results")
    run.add_argument("variants", nargs="*", choices=[*VARIANTS, *ALONE, []], default=[])
    run.add_argument("--dataset", type=Path, default=Path("data/beauty"), metavar="DIR")
    run.add_argument(
        "--set", action="append", default=[], metavar="TABLE.KEY=VALUE", help="for every variant of this call"
    )
    run.add_argument("--restart", action="store_true", help="fit again what runs/ holds")
    actions.add_parser("table", help="print the table; exit code 1 where a goal is missed")
    args = parser.parse_args()
    if args.action == "run":
        dataset = Dataset(args.dataset)
        for variant in args.variants or [*VARIANTS, *ALONE]:
            if variant in ALONE:
                ALONE[variant](dataset)
            elif variant == "letter" and dataset.info.name == "instruments":
                without_text(dataset, args.set)
            else:
                fit(variant, dataset, args.set, args.restart)
        return
    text, met = table()
    print(text)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
