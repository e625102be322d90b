"""Make the embedded datasets (real ratings of films; simulated viewers of films) or procedural data of any size for load tests.

  seqscope sample films --from DIR --overwrite              real ratings, from their raw table
  seqscope sample build --overwrite                         simulated viewers; the same seed gives the same dataset
  seqscope sample procedural --items 1000000 --events 20000000 --out data/procedural

What `build` plants in the log is told in docs/sample.md, what the ratings are in docs/films.md.
"""

import argparse
import time
from pathlib import Path

from engine.commands import options
from engine.console import Progress, duration
from engine.data.write import refuse_existing
from engine.errors import UsageError
from engine.sample.build import FILMS, build_procedural, build_sample
from engine.sample.procedural import ProceduralStory
from engine.sample.ratings import build_films
from engine.sample.story import Story


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))
    build = actions.add_parser("build", help="simulate viewers of the films in films.jsonl")
    build.add_argument("--out", type=Path, default=Path("data/sample"), help="dataset folder (default: %(default)s)")
    build.add_argument("--films", type=Path, help="the catalogue (default: films.jsonl in --out)")
    build.add_argument("--viewers", type=int, default=Story.viewers, help="simulated viewers (default: %(default)s)")
    build.add_argument("--seed", type=int, default=0, help="same seed, same dataset (default: %(default)s)")
    films = actions.add_parser("films", help="import the real ratings of MovieTweetings as the dataset films")
    films.add_argument("--from", dest="raw", type=Path, required=True, metavar="DIR", help="folder of the raw table")
    films.add_argument(
        "--catalogue",
        type=Path,
        default=Path("data/sample") / FILMS,
        help="more about some films (default: %(default)s)",
    )
    films.add_argument("--out", type=Path, default=Path("data/films"), help="dataset folder (default: %(default)s)")
    films.add_argument("--seed", type=int, default=0, help="of the numbers that users get (default: %(default)s)")
    procedural = actions.add_parser("procedural", help="generate a catalogue and a log of any size")
    procedural.add_argument("--out", type=Path, required=True, help="dataset folder")
    procedural.add_argument("--items", type=int, required=True, help="items in the catalogue (at least 100)")
    procedural.add_argument("--events", type=int, required=True, help="events in the log")
    procedural.add_argument("--seed", type=int, default=0, help="same seed, same dataset (default: %(default)s)")
    for action in (build, films, procedural):
        options.overwrite(action)


def run(args: argparse.Namespace) -> int:
    if args.seed < 0:
        raise UsageError(f"--seed must not be negative, not {args.seed}")
    if args.action == "build" and args.viewers < 1:
        raise UsageError(f"--viewers must be at least 1, not {args.viewers}")
    refuse_existing(args.out, args.overwrite)
    started = time.monotonic()
    if args.action == "films":
        info = build_films(args.raw, args.catalogue, args.out, args.seed)
    elif args.action == "build":
        info = build_sample(args.films or args.out / FILMS, args.out, Story(viewers=args.viewers), args.seed)
    else:
        story, bar = ProceduralStory(items=args.items, events=args.events), Progress(args.events, "simulated events")
        info = build_procedural(args.out, story, args.seed, overwrite=args.overwrite, progress=bar.update)
    counts = info.counts
    people, events = ("simulated viewers", "simulated events") if info.simulated else ("people", "events")
    print(
        f"{args.out}: {counts['items']:,} items, {counts['users']:,} {people}, {counts['events']:,} {events} "
        f"in {duration(time.monotonic() - started)}\nfingerprint {info.fingerprint}"
    )
    return 0
