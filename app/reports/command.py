"""Make a report of a dataset's models, check one, or answer for many histories at once.

    seqscope report exports/sample --history alien-1979 aliens-1986 --to report/       HTML, PDF, JSON, CSV and a zip of all
    seqscope report --address 'http://localhost:8501/?v=1&ds=sample&h=…' --to report/   what a page of the app shows
    seqscope report --verify report.json                                               whether its lists still hold
    seqscope report batch exports/sample histories.csv --to lists.parquet              every model's list for each of them
    seqscope report batch exports/sample people --to lists.csv --models sasrec -k 20   for the dataset's own people

docs/report.md says what a report holds, and which files of histories are read.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.limits import DEFAULT_K
from engine.errors import SeqscopeError, UsageError

if TYPE_CHECKING:
    from app.reports.document import Asked

LEAST_MEMORY = 1_000
"""MB: with half of it DuckDB and ONNX Runtime end the whole process instead of saying that there is too little."""

HELP = "make a report of what models recommend, check one, or answer for many histories"


def configure(parser: argparse.ArgumentParser) -> None:
    from app.reports.document import PARTS
    from app.reports.files import FORMS
    from app.reports.html import KINDS

    parser.add_argument(
        "what", nargs="*", metavar="ZOO", help="a dataset folder below exports/, or: batch ZOO HISTORIES"
    )
    parser.add_argument("--exports", type=Path, metavar="FOLDER", help="where datasets lie (default: exports)")
    parser.add_argument(
        "--to", type=Path, metavar="PATH", help="folder of the report's files; of a batch, its .parquet or .csv"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there already")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="default: those of the address, else all")
    parser.add_argument("-k", type=int, default=None, metavar="N", help=f"length of the lists (default: {DEFAULT_K})")
    parser.add_argument(
        "--verify", type=Path, metavar="FILE", help="a report.json to check; exit code 0 where all of it holds"
    )

    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of report.json")

    made = parser.add_argument_group("a report")
    made.add_argument("--address", metavar="URL", help="of a page of the app: what it shows is reported")
    made.add_argument("--history", nargs="+", metavar="ID", help="item_ids, oldest first (default: an example)")
    made.add_argument("--user", metavar="ID", help="the history of a user of the dataset")
    made.add_argument("--edited", nargs="*", metavar="ID", help="the edited history of a what-if")
    made.add_argument(
        "--parts", nargs="+", choices=PARTS, metavar="PART", help=f"what goes in: {', '.join(PARTS)} (default: all)"
    )
    made.add_argument(
        "--item", metavar="ID", help="whose score is explained (default: the first one of the first list)"
    )
    made.add_argument("--attention", nargs="+", metavar="NAME", help="models to look into (default: all that attend)")
    made.add_argument(
        "--view", choices=("mean", "rollout"), help="of attention (default: mean over the heads of the last layer)"
    )
    made.add_argument("--map", metavar="NAME", help="the model whose map is drawn")
    made.add_argument("--codes", nargs="+", metavar="NAME", help="tokenizers (default: all)")
    made.add_argument("--protocol", metavar="NAME", help="of the metrics (default: full ranking)")
    made.add_argument("--title", metavar="TEXT")
    made.add_argument("--slow", action="store_true", help="also effects of models that take long for them")
    made.add_argument(
        "--rows", action="store_true", help="rows of the data may go in: titles on the map, the user's name"
    )
    made.add_argument("--figures", choices=KINDS, help="in HTML (default: static)")
    made.add_argument("--forms", nargs="+", choices=FORMS, metavar="FORM", help=f"{', '.join(FORMS)} (default: all)")
    made.add_argument(
        "--link", metavar="URL", help="the app's address, up to a / or a page, for the link back to the page"
    )

    many = parser.add_argument_group("a batch")
    many.add_argument("--titles", action="store_true", help="a column with titles")
    many.add_argument("--memory", type=int, metavar="MB", help="end rather than take more memory than this")
    many.add_argument(
        "--bounded",
        action="store_true",
        help="refuse what the app would refuse of an upload: SEQSCOPE_QUOTA_ROWS, SEQSCOPE_UPLOAD_SECONDS (docs/uploads.md)",
    )
    many.add_argument("--restart", action="store_true", help="begin anew instead of going on where a run was ended")
    for role in ("user", "item", "items", "time"):
        many.add_argument(f"--{role}-column", metavar="NAME", help=argparse.SUPPRESS if role != "user" else "and --item-column, "
                          "--items-column, --time-column: where columns have other names; \"\" reads none")  # fmt: skip
    groups = {"report": made, "batch": many}
    parser.set_defaults(of={name: [action.dest for action in group._group_actions] for name, group in groups.items()})


def _refuse_others(args: argparse.Namespace, kind: str) -> None:
    """Raises UsageError where an option is given that says nothing here. kind: whose options these are, "report" or "batch"."""
    for name in args.of[kind]:
        if getattr(args, name) not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} is of a {kind} alone; leave it out")


def run(args: argparse.Namespace) -> int:
    words = list(args.what)
    if args.schema:
        from app.reports.document import schema

        print(schema(), end="")
        return 0
    if args.verify is not None:
        if words[1:]:
            raise UsageError("--verify takes one report, and at most the folder of its dataset.")
        return _verify(args, Path(words[0]) if words else args.exports)
    if words[:1] == ["batch"]:
        if len(words) != 3 or args.to is None:
            raise UsageError("seqscope report batch ZOO HISTORIES --to FILE")
        _refuse_others(args, "report")
        return _batch(args, Path(words[1]), words[2])
    if len(words) > 1 or (not words and args.address is None):
        raise UsageError(
            "seqscope report ZOO --to FOLDER, or: --address URL --to FOLDER, or: --verify FILE, or: batch …"
        )
    if args.to is None:
        raise UsageError("--to: which folder is to take the report?")
    _refuse_others(args, "batch")
    return _make(args, Path(words[0]) if words else None)


def _make(args: argparse.Namespace, path: Path | None) -> int:
    from app.reports import address
    from app.reports.build import build
    from app.reports.files import FORMS, files
    from app.reports.html import Kind
    from engine.files import expect_no_file, made, replacing
    from engine.runtime import Zoo

    expect_no_file(args.to)
    parameters = address.parameters(args.address) if args.address is not None else {}
    models = Zoo.open(path or _dataset(args, parameters), warm=True)
    request = _validated(address.read(parameters, models), _changes(args, models))
    choices = address.parameters_of(request)
    figures: Kind = args.figures or ("interactive" if parameters.get("figures") == "interactive" else "static")
    base = args.link or (args.address if "://" in (args.address or "") else None)
    link = _page(base, address.query(request, models.path.name, choices, models))
    report = build(models, request, address=link, tell=_tell)
    contents = files(report, args.forms or FORMS, figures)
    if not args.overwrite and (there := [name for name in contents if (args.to / name).exists()]):
        raise SeqscopeError(
            f"{args.to / there[0]} exists already. Choose another --to or --title, or replace it with --overwrite."
        )
    with made(args.to):
        for name, content in contents.items():
            with replacing(args.to / name) as staged:
                staged.write_bytes(content)
            print(args.to / name)
    return 0


def _page(base: str | None, query: str) -> str:
    """The page Report of the app at `base`; the parameters alone where nobody said where the app is."""
    if base is None:
        return f"?{query}"
    from urllib.parse import urljoin

    from app.reports.provenance import linked

    try:
        page = urljoin(base, "report")
    except ValueError:
        page = ""
    if not linked(page):
        raise UsageError(f"--link {base[:80]}: write the app's address as http://localhost:8501/")
    return f"{page}?{query}"


def _dataset(args: argparse.Namespace, parameters: dict[str, str]) -> Path:
    """The folder of the dataset that an address names. Its name is looked up, never made part of a path."""
    from engine.runtime import EMBEDDED, Zoo

    root = args.exports or Path("exports")
    folders = Zoo.list(root)
    name = parameters.get("ds")
    for folder in folders:
        if folder.name == name:
            return folder
    if name is None and folders and folders[0].name in EMBEDDED:
        return folders[0]  # as the app opens
    missing = (
        "The address names no dataset, and no embedded one is" if name is None else f"There is no dataset “{name[:80]}”"
    )
    raise SeqscopeError(f"{missing} in {root}. Name its folder with --exports.")


def _changes(args: argparse.Namespace, models: Any) -> dict[str, Any]:
    """What the options say, in place of what an address or the defaults do."""
    from app import examples
    from app.reports import address
    from app.reports.document import PARTS

    changes: dict[str, Any] = {}
    for name in ("models", "k", "item", "attention", "view", "map", "codes", "protocol", "title", "edited"):
        if getattr(args, name) is not None:
            changes[name] = getattr(args, name)
    if args.parts is not None:
        changes["parts"] = [part for part in PARTS if part in args.parts]
    if args.history is not None and args.user is not None:
        raise UsageError("--history or --user, not both")
    if args.history is not None:
        changes |= {"history": args.history, "user": None, "edited": args.edited}
    if args.user is not None:
        user = examples.find_user(models, args.user) or args.user  # by name, or by the number it ends with
        changes |= {"history": list(address.of_person(models, user)), "user": user, "edited": args.edited}
    return changes | {name: True for name in ("slow", "rows") if getattr(args, name)}


def _validated(request: Asked, changes: dict[str, Any]) -> Asked:
    """The request with the changes. Raises UsageError where no report may be asked so: it could not be read again."""
    from pydantic import ValidationError

    from engine.bundle.errors import complaints

    try:
        return type(request).model_validate(request.model_dump() | changes)
    except ValidationError as error:
        raise UsageError(f"A report cannot be asked so: {complaints(error)}") from None


def _verify(args: argparse.Namespace, where: Path | None) -> int:
    """where: None where nobody said; then also what visitors of this server brought."""
    from app import home
    from app.reports import verify
    from app.reports.document import load
    from app.reports.part import TOLERANCE
    from app.reports.provenance import when
    from engine.runtime import Zoo

    report = load(args.verify)
    brought = home.root().glob("owners/*/datasets/*/exports") if where is None else ()
    models = Zoo.open(verify.find(where or Path("exports"), report, brought), warm=True)
    print(f"{args.verify}: {report.title}, made {when(report.created)}")
    print(f"{models.path}: fingerprint {report.dataset.fingerprint[:16]}…, the same")
    answers: Counter[bool | None] = Counter()
    for claim in verify.verify(report, models):
        answers[claim.holds] += 1
        sign = {True: "holds", False: "DOES NOT HOLD", None: "not asked"}[claim.holds]
        print(f"{sign:<14} {claim.subject}: {claim.words}")
    held, wrong, unasked = answers[True], answers[False], answers[None]
    print(f"{held} of {held + wrong} hold (numbers within {TOLERANCE:g}).")
    broken = verify.broken(report)
    if broken is not None:
        print(f"seqscope: {args.verify}: {broken}", file=sys.stderr)
    elif unasked:
        print(f"seqscope: {args.verify}: not all of it can be asked again.", file=sys.stderr)
    return 0 if not wrong and not unasked and broken is None else 1


def _batch(args: argparse.Namespace, path: Path, source: str) -> int:
    from app.reports import batch
    from app.reports.histories import PEOPLE, Bounds
    from engine.runtime import Zoo

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if args.memory is not None:
        if args.memory < LEAST_MEMORY:
            raise UsageError(f"--memory {args.memory}: give at least {LEAST_MEMORY:,} (MB)")
        with suppress(ValueError):  # it may have less already
            resource.setrlimit(resource.RLIMIT_DATA, (args.memory << 20, args.memory << 20))
    roles = ("user", "item", "items", "time")
    columns = {role: value for role in roles if (value := getattr(args, f"{role}_column")) is not None}
    try:
        summary = batch.run(
            Zoo.open(path),
            PEOPLE if source == PEOPLE else Path(source),
            args.to,
            names=args.models,
            k=DEFAULT_K if args.k is None else args.k,
            titles=args.titles,
            columns=columns,
            restart=args.restart,
            overwrite=args.overwrite,
            bounds=Bounds.of_environment() if args.bounded else None,
            told=lambda words: print(words, file=sys.stderr),
        )
    except MemoryError:
        raise SeqscopeError("The batch takes more memory than it may, or than there is.") from None
    except KeyboardInterrupt:
        print("Ended. The same command goes on where this one was; --restart begins anew.", file=sys.stderr)
        raise
    print(f"{args.to}: {summary}")
    return 0


def _tell(words: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{words[:70]:<72}", end="\r", file=sys.stderr, flush=True)
