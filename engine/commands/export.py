"""Write trained and evaluated runs as bundles that the app opens.

Each bundle is checked before it appears: its ONNX answers must equal PyTorch's to 1e-4 on real histories. Runs of `seqscope
tokenize` go to <DIR>/identifiers/, and so do semantic IDs of TIGER, LETTER or MiniOneRec from a file, by item id:

  seqscope export Beauty.index.json --dataset data/beauty --to exports/beauty --name letter-theirs
"""

import argparse
from pathlib import Path

from engine.commands import options


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="run folders, trained and evaluated, or of tokenizers; an index.json of semantic IDs",
    )
    options.exports(parser, "exports/ml-1m")
    parser.add_argument("--name", help="name of the bundle (default: the run folder's name; one run only)")
    parser.add_argument("--title", help="name for people (default: the model's; one run only)")
    parser.add_argument(
        "--dataset", type=Path, metavar="DIR", help="where the dataset is now, if it moved; that of an index.json"
    )
    options.users(parser)


def run(args: argparse.Namespace) -> int:
    from engine.errors import UsageError
    from engine.export.bundle import export_run
    from engine.export.tokenization import export_index, export_tokenization, is_tokenizer

    if len(args.runs) > 1 and (args.name or args.title):
        raise UsageError("--name and --title belong to a single run")
    for run in args.runs:
        index = run.suffix == ".json"
        if index and args.dataset is None:
            raise UsageError(f"{run} does not say of which dataset it is: give --dataset")
        tokens = index or is_tokenizer(run)
        export = export_index if index else export_tokenization if tokens else export_run
        folder = export(run, args.to, name=args.name, title=args.title, dataset=args.dataset, users=args.users)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        print(f"{folder}: {size:.1f} MB, {'read back' if tokens else 'checked against PyTorch'}")
    return 0
