"""Make vectors of a catalogue's words, and text encoders that the app can run.

The vectors are kept with the dataset and found again as long as neither its texts nor the encoder change. --to puts them beside
the exported models, with a map. --export writes the encoder itself as an ONNX graph, for new items; without --dataset it does
nothing else.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from engine.commands import options
from engine.writing import count


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="the dataset whose items are embedded")
    parser.add_argument(
        "--encoder", default="auto", metavar="E",
        help="minilm (English, installed with seqscope[text]), scratch (trained on the catalogue, for any script), auto (minilm "
        "where it knows the catalogue's words, else scratch: the default), or an encoder of sentence-transformers or Hugging "
        "Face by name or folder",
    )  # fmt: skip
    parser.add_argument(
        "--fields", metavar="A,B:16", help="columns that make up an item's text, first to last, and how many words of each are "
        "kept (32 if not said); default: every column of words",
    )  # fmt: skip
    parser.add_argument(
        "--export", type=Path, metavar="DIR", help="write the encoder as DIR/<name>, such as build/words"
    )
    parser.add_argument(
        "--to", type=Path, metavar="DIR", help="write the vectors as DIR/spaces/<name> for the page Map, such as exports/ml-1m"
    )  # fmt: skip
    parser.add_argument("--name", help="name of that space (default: the encoder's)")
    parser.add_argument("--title", help="its name for people (default: Words and the encoder's)")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where vectors are kept (default: <dataset>/words)")
    options.device(parser, "default: a GPU where there is one")
    options.json(parser, "findings")


def run(args: argparse.Namespace) -> int:
    from engine.errors import UsageError

    if args.dataset is None and args.export is None:
        raise UsageError("name a --dataset to embed, an --export folder for the encoder, or both")
    if args.dataset is None and (args.fields or args.cache or args.to):
        raise UsageError("--fields, --cache and --to belong to a --dataset")
    if args.to is None and (args.name or args.title):
        raise UsageError("--name and --title belong to --to")
    facts: dict[str, Any] = {}
    lines: list[str] = []
    if args.dataset is not None:
        encoder = _embed(args, facts, lines)
    else:
        from engine.text.embeddings import find

        encoder = find(args.encoder)
    if args.export is not None:
        _export(encoder, args.export, facts, lines)
    print(json.dumps(facts, indent=2, ensure_ascii=False) if args.json else "\n".join(lines))
    return 0


def _embed(args: argparse.Namespace, facts: dict[str, Any], lines: list[str]) -> Any:
    from engine.data.dataset import Dataset
    from engine.export.staging import check_name_and_title, exported_fingerprint
    from engine.text.embeddings import embed, understood
    from engine.training.compute import choose

    if args.to is not None:  # before anything is computed
        check_name_and_title(args.name or "encoder", args.title)
        exported_fingerprint(Dataset(args.dataset), args.to)

    fields = args.fields.split(",") if args.fields is not None else None
    embedded = embed(args.dataset, args.encoder, fields, args.cache, str(choose(args.device)))
    encoder = embedded.encoder
    words = understood(embedded, args.dataset)
    empty = sum(not text for text in embedded.texts)
    rate = (
        "found in the cache"
        if embedded.cached
        else f"{embedded.seconds:.1f} s, {len(embedded.texts) / embedded.seconds:,.0f} a second"
    )
    facts.update(
        dataset=str(args.dataset), encoder=encoder.name, source=encoder.source, licence=encoder.licence,
        digest=encoder.digest, fields=list(embedded.fields), items=len(embedded.texts), without_text=empty, dim=encoder.dim,
        words=words.words, unknown_share=round(words.share, 4), missing_share=round(words.missing / max(words.words, 1), 4),
        spelt_share=round(words.spelt / max(words.words, 1), 4), cached=embedded.cached, seconds=round(embedded.seconds, 2),
        path=str(embedded.path),
    )  # fmt: skip
    lines += [
        f"{count(len(embedded.texts), 'item')} by {encoder.title}: {encoder.dim} dimensions, {rate}",
        f"text: {', '.join(embedded.fields)}" + (f"; no text: {count(empty, 'item')}" if empty else ""),
        words.sentence(encoder.name),
        f"kept in {embedded.path}",
    ]
    if args.to is not None:
        _space(embedded, args, facts, lines)
    return encoder


def _space(embedded: Any, args: argparse.Namespace, facts: dict[str, Any], lines: list[str]) -> None:
    from engine.export.vectors import export_words_space

    folder = export_words_space(embedded, args.dataset, args.to, name=args.name, title=args.title)
    about = json.loads((folder / "about.json").read_text("utf-8"))
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    trust = about["projection"]["trustworthiness"]
    facts["space"] = {"path": str(folder), "megabytes": round(size, 1), "trustworthiness": round(trust, 4)}
    lines.append(f"{folder}: {size:.1f} MB, read back; trustworthiness of the map {trust:.2f}")


def _export(encoder: Any, out: Path, facts: dict[str, Any], lines: list[str]) -> None:
    from engine.export.text import export_words
    from engine.runtime.text import TextEncoder

    start = time.monotonic()
    folder = export_words(encoder, out)
    about = TextEncoder.open(folder).about
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    facts["export"] = {
        "path": str(folder), "megabytes": round(size, 1), "max_abs_difference": about.max_abs_difference,
        "seconds": round(time.monotonic() - start, 2),
    }  # fmt: skip
    lines.append(f"{folder}: {size:.1f} MB, within {about.max_abs_difference:.0e} of PyTorch")
