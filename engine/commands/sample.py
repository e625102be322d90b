"""Simulate viewers and their log: the embedded sample of real films, or procedural data of any size for load tests.

  seqscope sample build --out data/sample                   the sample; the same seed gives the same dataset
  seqscope sample procedural --items 1000000 --events 20000000 --out data/procedural

What `build` plants in the log is told in docs/sample.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from engine.console import Progress, duration
from engine.data.dataset import DatasetInfo
from engine.data.staging import refuse_existing
from engine.errors import UsageError
from engine.sample.build import FILMS, build_procedural, build_sample
from engine.sample.procedural import ProceduralStory
from engine.sample.story import Story


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))
    build = actions.add_parser("build", help="simulate viewers of the films in films.jsonl")
    build.add_argument("--out", type=Path, default=Path("data/sample"), help="dataset folder (default: %(default)s)")
    build.add_argument("--films", type=Path, help="the catalogue (default: films.jsonl in --out)")
    build.add_argument("--viewers", type=int, default=Story.viewers, help="simulated viewers (default: %(default)s)")
    build.add_argument("--seed", type=int, default=0, help="same seed, same dataset (default: %(default)s)")
    procedural = actions.add_parser("procedural", help="generate a catalogue and a log of any size")
    procedural.add_argument("--out", type=Path, required=True, help="dataset folder")
    procedural.add_argument("--items", type=int, required=True, help="items in the catalogue (at least 100)")
    procedural.add_argument("--events", type=int, required=True, help="events in the log")
    procedural.add_argument("--seed", type=int, default=0, help="same seed, same dataset (default: %(default)s)")
    procedural.add_argument("--overwrite", action="store_true", help="replace the dataset in --out")


def run(args: argparse.Namespace) -> int:
    if args.seed < 0:
        raise UsageError(f"--seed must not be negative, not {args.seed}")
    started = time.monotonic()
    info = _build(args) if args.action == "build" else _procedural(args)
    counts = info.counts
    print(
        f"{args.out}: {counts['items']:,} items, {counts['users']:,} simulated viewers, {counts['events']:,} simulated events "
        f"in {duration(time.monotonic() - started)}\nfingerprint {info.fingerprint}"
    )
    return 0


def _build(args: argparse.Namespace) -> DatasetInfo:
    if args.viewers < 1:
        raise UsageError(f"--viewers must be at least 1, not {args.viewers}")
    return build_sample(args.films or args.out / FILMS, args.out, Story(viewers=args.viewers), args.seed)


def _procedural(args: argparse.Namespace) -> DatasetInfo:
    story = ProceduralStory(items=args.items, events=args.events)
    refuse_existing(args.out, args.overwrite)
    bar = Progress(story.events, "simulated events")
    return build_procedural(args.out, story, args.seed, overwrite=args.overwrite, progress=bar.update)
