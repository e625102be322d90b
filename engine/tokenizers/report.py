"""The report of a tokenizer's run: report.json, and its table for people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from engine.data.dataset import Dataset
from engine.data.identifiers import Identifiers
from engine.tokenizers import measures
from engine.tokenizers.base import Codes, Material, Tokenizer
from engine.tokenizers.judge import Judge

CATEGORIES = ("categories", "category", "genres", "genre")


def describe(
    tokenizer: Tokenizer, identifiers: Identifiers, material: Material, dataset: Dataset, judge: Judge | None
) -> dict[str, Any]:
    """What report.json holds. judge: the SASRec run that collaborative figures are taken against; None leaves them out."""
    codes = identifiers.codes[:, : len(tokenizer.sizes)]  # without a number that only counts
    codes = np.where(codes >= np.array(tokenizer.sizes), -1, codes)
    report = figures(codes, tokenizer.sizes, dataset.popularity, categories(material.items), judge)
    raw = tokenizer.identify(material)
    quantised = tokenizer.quantised(codes)
    report["before"] = measures.collisions(raw)
    report["after"] = measures.collisions(identifiers.codes)
    report["policy"] = identifiers.about.get("collisions")
    report["moved"] = int((codes != raw[:, : codes.shape[1]]).any(1).sum())
    report["reconstruction"] = tokenizer.lost(material, codes)
    if judge is not None and quantised is not None:
        report["neighbours"]["cosine"] = measures.cosine(quantised, judge.nearest)
        if judge.name == identifiers.about.get("teacher", {}).get("run"):
            # LETTER's ẑ lives in the teacher's space, so it can stand in for the teacher's vectors as it is
            report["ranking"]["latents"] = judge.rank(quantised @ judge.axes(quantised.shape[1]).T)
    return report


def figures(
    codes: Codes,
    sizes: tuple[int, ...],
    popularity: np.ndarray,
    labels: tuple[str, np.ndarray] | None,
    judge: Judge | None,
) -> dict[str, Any]:
    """The figures that need nothing but codes; also of codes that somebody else published."""
    report: dict[str, Any] = {
        "items": len(codes),
        "levels": measures.usage(codes, sizes),
        "collisions": measures.collisions(codes),
        "squeeze": measures.squeeze(codes, popularity),
    }
    if labels is not None:
        report["purity"] = {"column": labels[0], "depths": measures.purity(codes, labels[1])}
    if judge is not None:
        report["neighbours"] = {
            "of": judge.name,
            "shared": measures.shared(codes, judge.nearest),
            "shared_by_cosine": measures.shared(codes, judge.nearest_by_cosine),
            "chance": measures.shared_by_chance(codes),
        }
        expressed = measures.expressed(codes, judge.vectors)
        report["ranking"] = {
            "of": judge.name,
            "own": judge.rank(judge.vectors),
            "quantised": judge.rank(expressed),
            "validation": judge.rank(expressed, "valid"),
        }
    return report


def categories(items: pa.Table) -> tuple[str, np.ndarray] | None:
    """A column of categories and the category of each item, int [items], −1 where it has none; None where there is no such
    column. Of a path the first element at which items differ; of a text the part before the first comma."""
    column = next((name for name in CATEGORIES if name in items.column_names), None)
    if column is None:
        return None
    paths = [
        value if isinstance(value, list) else [part.strip() for part in str(value or "").split(",") if part.strip()]
        for value in items[column].to_pylist()
    ]
    depth = 0
    if pa.types.is_list(items.schema.field(column).type):
        while depth < 8 and len({path[depth] if len(path) > depth else None for path in paths}) == 1:
            depth += 1
    names = [path[min(depth, len(path) - 1)] if path else None for path in paths]
    numbers = {name: number for number, name in enumerate(sorted({name for name in names if name is not None}))}
    return column, np.array([-1 if name is None else numbers[name] for name in names])


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = ["level   codes    used    dead  perplexity   of codes    gini"]
    for number, level in enumerate(report["levels"], 1):
        lines.append(
            f"{number:<5} {level['codes']:>7} {level['used']:>7} {level['dead']:>7} {level['perplexity']:>11.1f} "
            f"{level['perplexity_share']:>9.1%} {level['gini']:>7.3f}"
        )
    for name, title in (("before", "collisions as fitted"), ("after", f'collisions after "{report.get("policy")}"')):
        if name in report:
            collisions = report[name]
            lines.append(
                f"{title}: {collisions['excess']:.2%} of items in excess of different identifiers, "
                f"{collisions['sharing']:.2%} share theirs, largest group {collisions['largest']}"
            )
    if report.get("reconstruction") is not None:
        lines.append(f"reconstruction: {report['reconstruction']:.1%} of the variance of item vectors is lost")
    if "neighbours" in report:
        near, ranking = report["neighbours"], report["ranking"]
        lines.append(
            f"codes shared with the nearest item ({near['of']}): {near['shared']:.4f} by dot product, "
            f"{near['shared_by_cosine']:.4f} by cosine, {near['chance']:.4f} by chance"
        )
        letter = f", {ranking['latents']:.4f} with ẑ itself" if "latents" in ranking else ""
        lines.append(
            f"NDCG@10 of {ranking['of']}: {ranking['own']:.4f}, {ranking['quantised']:.4f} with vectors made of codes{letter}"
        )
        if "validation" in ranking:
            lines.append(
                f"on the validation items, to choose settings by: {ranking['validation']:.4f} with vectors made of codes"
            )
    if "purity" in report:
        depths = "; ".join(
            f"depth {entry['depth']} {entry['purity']:.3f} (chance {entry['chance']:.3f}, {entry['items']} items)"
            if entry["items"]
            else f"depth {entry['depth']} – (no two items share a prefix)"
            for entry in report["purity"]["depths"]
        )
        lines.append(f"purity of prefixes by {report['purity']['column']}: {depths}")
    squeeze = report["squeeze"]
    if not any(squeeze[third]["events"] for third in ("head", "torso", "tail")):
        return "\n".join(lines)  # without a log nothing is rare
    lines.append(
        f"first codes of the rarest third: perplexity {squeeze['tail']['perplexity']:.1f} "
        f"against {squeeze['head']['perplexity']:.1f} of the most taken ({squeeze['ratio']:.2f} times)"
    )
    return "\n".join(lines)
