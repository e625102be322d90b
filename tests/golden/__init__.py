"""Files that an older version wrote, to be opened by every later one.

golden.tar.xz, answers.npz (what its models answered) and addresses.json (what addresses of it meant) were made by commit 74670b5,
through the commands that people use; they are not made again, since only files that an older version wrote can tell whether they
still open. What a later version adds (a new kind of bundle, say) gets an archive of its own beside this one. addresses.json was
changed once: an item in an address was a choice of each page before it became one that all pages share.

The archive holds one folder, from which all its commands ran, so that nothing in it names a machine:

    items.csv, log.csv, data/golden/   130 items, 80 people
    encoder/, base/                    a text encoder and a language model of next to no size
    recipes/NAME.toml                  one per model and tokenizer
    runs/NAME, runs/NAME-cut           finished; interrupted within its second epoch
    exports/golden/                    bundles, tokenizers, a space and a study
    report/                            a report of the zoo
    home/                              a store of two owners: an upload, saved things, jobs that wait, are done and failed
"""

import tarfile
from pathlib import Path

HERE = Path(__file__).parent
ARCHIVE = HERE / "golden.tar.xz"
OF_FORMAT_6 = {"archive": HERE / "weights-6.tar.xz", "answers": HERE / "answers-6.npz"}
"""Two bundles of models that add up weights between items, as they were before these were packed, of the dataset of ARCHIVE."""
KEPT_ANSWERS, KEPT_STATES, KEPT_METRICS = HERE / "answers.npz", HERE / "addresses.json", HERE / "metrics.json"
OWNER, VISITOR = "a" + "1" * 32, "b" + "2" * 32
"""An account, and a browser with a key."""


def unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)  # before Python 3.11.4 there is none
        files.extractall(folder)
