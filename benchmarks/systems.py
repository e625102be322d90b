"""Every system that the results tables of our sources name: where it is, what it reaches here, and what others report.

    python -m benchmarks.systems            prints the table of docs/models.md
    python -m benchmarks.systems --write    renews it there

Figures of ours are read from benchmarks/results and, where nothing was recorded, from the bundles in exports/; those of others
are declared below, each with its protocol and source. Where both have one dataset and protocol they can be compared.
"""

import argparse
import json
import tomllib
from pathlib import Path
from typing import NamedTuple

from benchmarks.quality_tables import REFIT, results, shown
from engine.files import write_text
from engine.registry import MODELS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- systems -->", "<!-- /systems -->"


class Published(NamedTuple):
    dataset: str
    protocol: str
    first: float
    """HR@10, or Recall@20 of a given split."""
    second: float
    """NDCG@10 or NDCG@20."""
    source: str


class System(NamedTuple):
    title: str
    recipes: tuple[str, ...]
    """Whose runs and bundles are it, the nearest to the paper first; empty where there is none yet."""
    published: Published | None = None
    differs: str = ""
    """Why the two figures do, or what there is instead of one."""
    unmeasured: str = ""
    """Why there is no figure of ours, where there is none."""


SASREC = "SASRec paper, table III"
GOWALLA = "LightGCN paper"
NEGATIVES = "other negatives were drawn"
BEYOND = f"{NEGATIVES}; what else differs is not known"
SEEN = "S3-Rec's code ranks items of the history with a score of 0; here they are left out"
P5 = "a small network from scratch, theirs starts from t5-small"
SYSTEMS = (
    # who has what
    System("PopRec", ("popularity",), Published("ml-1m", "u100", 0.4329, 0.2377, SASREC), NEGATIVES),
    System("BPR-MF", ("bpr-mf",), Published("ml-1m", "u100", 0.5781, 0.3287, SASREC), BEYOND),
    System("NCF (NeuMF)", ("neumf",), Published("gowalla", "given split", 0.1399, 0.1212, "NGCF paper")),
    System("CML", ("cml",), None, "its paper's logs and splits are others"),
    System(
        "NGCF", ("ngcf",), Published("gowalla", "given split", 0.1569, 0.1327, "NGCF paper"),
        "360 epochs of a CPU in batches of 32,768, theirs 400 in batches of 1,024 at a thirtieth of the rate",
    ),
    System(
        "LightGCN", ("lightgcn",), Published("gowalla", "given split", 0.1830, 0.1554, GOWALLA),
        "600 epochs of a CPU in batches of 16,384, theirs 1,000 in batches of 2,048",
    ),
    System(
        "Mult-VAE", ("mult-vae",), Published("gowalla", "given split", 0.1641, 0.1335, GOWALLA),
        "averaged parameters; β from one trial, where that paper chose β and dropout by a search",
    ),
    System("Mult-DAE", ("mult-dae",), None, "its paper's figures are of ML-20M, held-out users"),
    System("Item-kNN", ("item-knn",), None, "no source of ours has it on these logs"),
    System("EASE", ("ease",), None, "no source of ours has it on these logs"),
    # in what order
    System("Markov chain", ("markov",), None, "counted, not learned; FMC is its factorised form"),
    System(
        "Counting transitions (PCTM)", ("counting",), Published("beauty", "full, refit", 0.0998, 0.0635, "PCTM paper"),
        "they do not: the same settings",
    ),
    System(
        "Sequential rules", ("sequential-rules",), Published("beauty", "full, refit", 0.0956, 0.0605, "PCTM paper"),
        "ties share their mean rank here",
    ),
    System("FMC", ("fmc",), Published("ml-1m", "u100", 0.6986, 0.4676, SASREC), BEYOND),
    System("FPMC", ("fpmc",), Published("ml-1m", "u100", 0.7599, 0.5176, SASREC), BEYOND),
    System("TransRec", ("transrec",), Published("ml-1m", "u100", 0.6413, 0.3969, SASREC), BEYOND),
    System("PRME", ("prme",), None, "its paper's logs are check-ins that are not here"),
    System("GRU4Rec", ("gru4rec",), Published("beauty", "full", 0.0283, 0.0137, "S3-Rec's table"), SEEN),
    System("GRU4Rec+", ("gru4rec-plus",), Published("ml-1m", "u100", 0.7501, 0.5513, SASREC), BEYOND),
    System("NARM", ("narm",), None, "its paper's logs are sessions that are not here"),
    System("Caser", ("caser",), Published("ml-1m", "u100", 0.7886, 0.5538, SASREC), BEYOND),
    System(
        "HGN", ("hgn",), Published("beauty", "full", 0.0512, 0.0266, "S3-Rec's table, as in TIGER's"),
        f"{SEEN}; the gate of items is learnt",
    ),
    System("SASRec", ("sasrec",), Published("ml-1m", "u100", 0.8245, 0.5905, SASREC), NEGATIVES),
    System(
        "SASRec, cross-entropy", ("sasrec-ce",), Published("ml-1m", "full", 0.3152, 0.1821, "Klenitskiy & Vasilev 2023"),
        "no more than between replications",
    ),
    System(
        "BERT4Rec", ("bert4rec",), Published("ml-1m", "p100, refit", 0.6970, 0.4818, "BERT4Rec paper, table 2"),
        "84 epochs in batches of 32, theirs 400,000 steps of 256 at a tenth of the rate; dropout of .1, theirs .2; popularity "
        "counts training events",
    ),
    System(
        "AttRec", ("attrec",), Published("ml-1m", "u100", 0.7873, 0.5363, "RecLearn's README"),
        "RecLearn draws negatives of its own; no figure of the paper's could be read",
    ),
    System(
        "eSASRec", ("esasrec",), Published("beauty", "full", 0.0928, 0.0523, "its authors' repository"),
        "the batch shares 2,048 negatives, theirs are 256 drawn for every target; dropout of .5",
    ),
    System(
        "HSTU", ("hstu",), Published("beauty", "full", 0.0788, 0.0439, "eSASRec's repository"),
        "without the time bias; the batch shares 2,048 negatives, theirs are drawn for every target; dropout of .5",
    ),
    # in what words
    System("Text neighbours", ("text-neighbours", "tfidf"), None, "a floor of our own"),
    System(
        "Recformer", ("recformer",), None, "its datasets are not here, and it was pre-trained on a million items of others"
    ),
    System(
        "UniSRec", ("unisrec", "unisrec-ids", "unisrec-tuned"), None,
        "its datasets are not here, and it was pre-trained on five categories of Amazon",
    ),
    System(
        "FDSA", ("fdsa",), Published("beauty", "full", 0.0407, 0.0208, "S3-Rec's table"),
        f"{SEEN}; cross-entropy over the catalogue, the paper's has one negative",
    ),
    System(
        "S3-Rec", ("s3rec",), Published("beauty", "full", 0.0647, 0.0327, "S3-Rec's table"),
        f"{SEEN}; 40 epochs of pre-training on one beginning of each sequence, theirs on all; theirs draws no validation or test "
        "item of the user as a negative",
    ),
    System("ZESRec", ("zesrec",), None, "its paper asks it on catalogues that are not here"),
    # in what codes
    System("P5-TID", ("p5-tid-t5",), None, P5),
    System("P5-SemID", ("p5-semid-t5",), None, P5),
    System("P5-CID", ("p5-cid-t5",), Published("beauty", "full", 0.0597, 0.0347, "LETTER paper"), P5),
    System(
        "TIGER", ("tiger", "tiger-small"), Published("beauty", "full", 0.0648, 0.0384, "TIGER paper"),
        "7,740 steps of 1,024 with AdamW, theirs 200,000 of 256; no user token, other text vectors",
    ),
    System(
        "LETTER-TIGER", ("letter-tiger", "letter-tiger-small"),
        Published("beauty", "full", 0.0672, 0.0364, "LETTER paper"), "other text vectors than LLaMA's, one seed",
    ),
    System(
        "LC-Rec", ("lc-rec",), Published("beauty", "full", 0.0642, 0.0374, "LETTER paper"), "a small decoder from scratch"
    ),
    System(
        "LETTER-LC-Rec", ("letter-lc-rec",), Published("beauty", "full", 0.0703, 0.0418, "LETTER paper"),
        "a small decoder from scratch",
    ),
    System(
        "BIGRec", ("bigrec",), None, "its datasets are not here; a language model of 135 million parameters, theirs of 7 billion"
    ),
)  # fmt: skip


def figure(system: System) -> str:
    """Ours: under the published protocol where it was measured so, else any; "" where nothing was measured."""
    recorded = results()
    theirs = system.published
    if theirs is not None:
        known = recorded.get(theirs.dataset, {})
        refit = REFIT if theirs.protocol.endswith(", refit") else ""
        for name in system.recipes:
            for protocol in (f"{theirs.protocol}+user", theirs.protocol):  # the papers ask with the users' own vectors
                metrics = known.get(name + refit, {}).get("metrics", {}).get(protocol)
                if metrics:
                    return _words(metrics, protocol, theirs.dataset)
    for dataset, runs in recorded.items():
        for name in system.recipes:
            if name in runs:
                protocol = next(protocol for protocol in ("full", "given split") if protocol in runs[name]["metrics"])
                return _words(runs[name]["metrics"][protocol], protocol, dataset)
    for name in system.recipes:
        for path in sorted((ROOT / "exports").glob(f"*/{name}/manifest.json")):
            metrics = json.loads(path.read_text("utf-8"))["metrics"]
            if "full" in metrics:
                return _words(metrics["full"], "full", f"{path.parent.parent.name}, bundle")
    return ""


def _words(metrics: dict[str, float], protocol: str, dataset: str) -> str:
    first, second = (metrics[name] for name in shown(protocol))
    return f"{first:.4f}/{second:.4f} ({dataset}, {protocol})"


def reasons(system: System) -> str:
    """Why the two figures differ; that ours is of another log, where it is."""
    theirs, ours = system.published, figure(system)
    elsewhere = theirs is not None and bool(ours) and f"({theirs.dataset}, {theirs.protocol}" not in ours
    return "; ".join(["another log"] * elsewhere + [system.differs] * bool(system.differs))


def file(recipe: str) -> str:
    """Of the recipe's model."""
    path = next((ROOT / "engine" / "recipes").glob(f"*/{recipe}.toml"))
    return MODELS[tomllib.loads(path.read_text("utf-8"))["family"]].__module__.rpartition(".")[2] + ".py"


def table() -> str:
    lines = ["| system | recipe | file | here | others | why they differ |", "|---|---|---|---|---|---|"]
    for system in SYSTEMS:
        theirs = system.published
        known = (
            f"{theirs.first:.4f}/{theirs.second:.4f} ({theirs.dataset}, {theirs.protocol}; {theirs.source})"
            if theirs
            else ""
        )
        cells = [
            system.title,
            f"`{system.recipes[0]}`" if system.recipes else "not here yet",
            f"`{file(system.recipes[0])}`" if system.recipes else "",
            figure(system) or f"not measured: {system.unmeasured}",
            known,
            reasons(system),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    here, measured = (
        sum(bool(part) for part in parts) for parts in zip(*((s.recipes, figure(s)) for s in SYSTEMS), strict=True)
    )
    words = f"Of {len(SYSTEMS)} systems {here} are here, and {measured} were measured on real or embedded data."
    return "\n".join([words, "", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="renew the table in docs/models.md")
    args = parser.parse_args()
    if not args.write:
        print(table())
        return
    page = PAGE.read_text("utf-8")
    before, rest = page.split(BEGIN)
    write_text(PAGE, f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
