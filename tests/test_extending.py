"""The recipes of docs/extending.md, carried out as they stand there, in a package beside this one."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.session.pages import Page, Parameter, is_item, ordered
from engine.errors import SeqscopeError
from engine.evaluation import metrics
from tests.golden import ARCHIVE, unpack

pytestmark = pytest.mark.timeout(600)

SCRIPT = """
import json
from pathlib import Path
from streamlit.testing.v1 import AppTest
from app.jobs import kinds
from app.reports import document, files, html, pdf
from app.screens import PAGES
from engine.cli import build_parser, main
from engine.runtime import Zoo
from toys.test_gru import test_padding_changes_nothing

def help_of(command):
    parser = build_parser([command])._subparsers._group_actions[0].choices[command]
    return " ".join(parser.format_help().split())

def opened(name, **parameters):
    app = AppTest.from_file(ROOT + "/app/main.py", default_timeout=120)
    app.query_params.update({"v": "1", "ds": "golden", "h": "i1", **parameters})
    app.run()
    app.switch_page(str(PAGES[name].script))
    app.query_params.update(parameters)
    app.run()
    assert not app.exception and not app.error, (app.exception, app.error)
    return app

def page(name, **parameters):
    app = opened(name, **parameters)
    kinds = ("subheader", "markdown", "caption", "table", "pills", "selectbox", "multiselect")
    shown = [str(getattr(element, "options", element.value)) for kind in kinds for element in getattr(app, kind)]
    return "\\n".join(shown + [table.value.to_csv() for table in app.dataframe])

def verified(report):
    return main(["report", "--verify", str(report), "--exports", "exports"])

assert verified(*Path("report").glob("*.json")) == 0  # made without what is installed now

test_padding_changes_nothing()
data = json.loads(Path("runs/sasrec/run.json").read_text())["dataset_path"]
quick = [word for setting in ("training.epochs=2", "model.dim=4", "training.precision=float32") for word in ("--set", setting)]
assert main(["train", "gru", "--dataset", data, "--out", "runs/gru", "--device", "cpu", *quick]) == 0
assert main(["evaluate", "runs/gru"]) == 0
assert main(["tokenize", "hashing", "--dataset", data, "--out", "runs/hashing"]) == 0
for runs in (["runs/gru", "runs/gru"], ["runs/hashing"]):
    assert main(["export", *runs, "--to", "exports/golden"]) == 0
zoo = Zoo.open("exports/golden")
gru, hashing = zoo.bundles["gru"], zoo.tokenizations["hashing"].about

words = ("--history", "i1", "i1", "--models", "gru", "markov", "--parts", "history", "length", "lists", "metrics")
assert main(["report", "exports/golden", *words, "--to", "made", "--forms", "json"]) == 0
(file,) = Path("made").glob("*.json")
assert verified(file) == 0
report = document.load(file)
pdf.render(report)
raw = json.loads(file.read_text())
raw["length"]["items"] = 3
file.write_text(json.dumps(raw))

request = kinds.JobRequest("id", Path("shop"), Path("jobs"), name="shop", title="A shop", log=("user", "item"))
choice = kinds.TrainingChoice(model="gru", settings=kinds.batches("gru", 20))

plain, chosen, wrong = opened("lengths"), opened("lengths", least="9"), opened("lengths", least="13")
(link,) = [str(element.proto) for element in chosen.get("bidi_component") if "Copy link" in str(element.proto)]
lengths = [len(app.table[0].value) for app in (plain, chosen, wrong)]
chosen.selectbox(key="lengths_least").set_value(10).run()

print(json.dumps({
    "metric": {
        "bundle": list(gru.manifest.metrics["full"]),
        "report": sorted({one.metric for one in report.metrics.estimates}),
        "largest": [one.value("largest") for one in report.metrics.beyond],
        "table": files.tables(report)["metrics-beyond"].columns,
    },
    "model": {
        "help": help_of("train"),
        "order": gru.manifest.order,
        "reason": gru.cannot("attention"),
        "items": len(gru.scores([0, 1])),
        "offered": [kinds.models()["gru"].title, kinds.models()["gru"].declaration.learns],
        "steps": [step.words for step in kinds.train(request, [choice]).steps],
        "lists": [one.model for one in report.lists],
    },
    "tokenizer": {
        "help": help_of("tokenize"),
        "about": [hashing.title, hashing.order, hashing.paper],
        "steps": [step.words for step in kinds.prepare(request, items=500).steps],
    },
    "part": {
        "asked": report.asked.parts,
        "files": list(files.files(report, ["csv"])),
        "forged": verified(file),
    },
    "page": {
        "navigation": list(PAGES),
        "title": plain.title[0].value,
        "lengths": lengths,
        "link": link,
        "warnings": [element.value for element in wrong.warning],
        "address": [chosen.query_params["least"], chosen.query_params["h"]],
    },
    "html": html.render(report).decode(),
    "pages": {
        "compare": page("compare", m="gru"),
        "metrics": page("metrics", m="gru", metric="RR", at="5", section="beyond"),
        "terms": page("about", section="terms"),
        "sequential": page("about", m="gru", section="sequential"),
        "semantic_ids": page("semantic_ids"),
        "report": page("report"),
    },
}))
"""


BROKEN = {"train": "toys.length:Table", "gone": "toys.gone:GONE"}
"""Entry points that lead to what nobody can use, and to nothing."""


@dataclasses.dataclass
class Carried:
    """What SCRIPT printed: as JSON last, and all of it; and what it warned of."""

    seen: dict[str, Any]
    printed: str
    warned: str


@pytest.fixture(scope="module")
def carried(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Carried:
    """All recipes, installed beside each other, beside a package that is broken, and beside the golden dataset."""
    folder = tmp_path_factory.mktemp("extended")
    install(root, folder / "site")
    unpack(ARCHIVE, folder / "golden")
    site = [str(folder / "site"), str(root), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, site)), "OMP_NUM_THREADS": "1",
        "SEQSCOPE_EXPORTS": str(folder / "golden" / "exports"), "SEQSCOPE_HOME": str(folder / "home"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", f"ROOT = {str(root)!r}\n{SCRIPT}"],
        cwd=folder / "golden", env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    return Carried(json.loads(done.stdout.splitlines()[-1]), done.stdout, done.stderr)


def install(root: Path, folder: Path) -> None:
    """Writes the files of the recipes into `folder`, as an installation would lay them out."""
    text = (root / "docs" / "extending.md").read_text("utf-8")
    points: dict[str, dict[str, str]] = {}
    for path, code in re.findall(r"```(?:python|toml)\n# (\S+)(?: of that package)?\n(.*?)```", text, re.DOTALL):
        if path == "pyproject.toml":
            for group, named in tomllib.loads(code)["project"]["entry-points"].items():
                points.setdefault(group, {}).update(named)
            continue
        assert not (folder / path).exists(), path
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(code, "utf-8")
    for package, groups in {"toys": points, "broken": dict.fromkeys([*points, "seqscope.commands"], BROKEN)}.items():
        about = folder / f"{package}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        lines = [
            line
            for group, named in groups.items()
            for line in (f"[{group}]", *(f"{name} = {value}" for name, value in named.items()))
        ]
        (about / "entry_points.txt").write_text("\n".join(lines))


def test_a_metric_is_one_declaration(carried: Carried) -> None:
    seen, pages = carried.seen["metric"], carried.seen["pages"]
    assert re.search(r"^ +RR +0\.\d+", carried.printed, re.MULTILINE)  # by evaluate
    assert {"NDCG@10", "RR", "largest@10"} <= set(seen["bundle"])
    assert "RR" in seen["report"] and all(0 < value <= 1 for value in seen["largest"])
    assert "largest" in seen["table"]
    assert "Largest@10" in carried.seen["html"] and ">RR</th>" in carried.seen["html"]
    assert " RR (" in pages["metrics"] and "Largest@5" in pages["metrics"]
    assert "however far down it is" in pages["terms"] and "Made up for this recipe" in pages["terms"]


def test_a_model_is_one_file_and_a_recipe(carried: Carried) -> None:
    seen, pages = carried.seen["model"], carried.seen["pages"]
    assert "popularity, gru" in seen["help"]
    assert seen["order"] == 15 and seen["reason"] == "It keeps one state and looks back at nothing."
    assert seen["offered"] == ["GRU", True]
    train, evaluate, export = seen["steps"][2:]
    assert train[:2] == ["train", "gru"] and "training.batch_size=16" in train  # few users, smaller batches
    assert evaluate[0] == "evaluate" and export[0] == "export"
    assert "gru" in seen["lists"]
    for name in ("compare", "metrics", "sequential"):
        assert "GRU" in pages[name], name


def test_a_tokenizer_is_one_file_and_a_recipe(carried: Carried) -> None:
    seen = carried.seen["tokenizer"]
    assert "random, hashing" in seen["help"]
    assert seen["about"] == ["Hashed titles", 85, "Made up for this recipe"]
    assert ["tokenize", "hashing"] in [words[:2] for words in seen["steps"]]
    assert "Hashed titles" in carried.seen["pages"]["semantic_ids"]


def test_a_part_of_a_report_is_one_file(carried: Carried) -> None:
    seen, html = carried.seen["part"], carried.seen["html"]
    assert seen["asked"] == ["history", "length", "lists", "metrics"]
    assert any(name.endswith("-length.csv") for name in seen["files"])
    assert "How long is the history?" in html and "2 items, 1 of them different." in html
    assert seen["forged"] == 1 and "length: items was" in carried.printed
    assert "Length" in carried.seen["pages"]["report"]


def test_a_page_is_one_folder(carried: Carried) -> None:
    seen = carried.seen["page"]
    places = [seen["navigation"].index(name) for name in ("map", "lengths", "metrics")]
    assert places == sorted(places)
    every, some, again = seen["lengths"]
    assert seen["title"] == "Lengths" and 0 < some < every == again
    assert "least=9" in seen["link"]
    assert any("length of a history “13”; possible is 1 to 12" in words for words in seen["warnings"])
    assert seen["address"] == ["10", "i1"]


def test_a_broken_package_is_left_out_by_name(carried: Carried) -> None:
    lines = [line for line in carried.warned.splitlines() if "which broken adds" in line]
    groups = ("metrics", "models", "tokenizers", "pages", "report_parts", "recipes")
    for group, name in ((group, name) for group in groups for name in BROKEN):
        assert any(f"{name} = {BROKEN[name]} of seqscope.{group}," in line for line in lines), (group, name)
    assert any("train = toys.length:Table of seqscope.commands," in line for line in lines)
    assert "No module named 'toys.gone'" in carried.warned


def test_a_metric_that_lacks_something_says_what() -> None:
    with pytest.raises(TypeError, match="'of_lists'"):
        metrics.Beyond(name="x", title="x", meaning="x", source="x")  # type: ignore[call-arg]
    with pytest.raises(SeqscopeError, match="no source"):
        metrics.Accuracy(name="x", title="x", meaning="x", source="", gain=metrics.hit)
    named = {"name": "x", "title": "x", "meaning": "x", "source": "x"}
    for answer in (lambda ranks, k: ranks * np.nan, lambda ranks, k: ranks.mean()):
        with pytest.raises(SeqscopeError, match="x: gain"):
            metrics.Accuracy(**named, gain=answer)
    with pytest.raises(SeqscopeError, match="x: of_lists"):
        metrics.Beyond(**named, of_lists=lambda exposure, popularity: exposure / 2)  # type: ignore[arg-type, return-value]
    with pytest.raises(SeqscopeError, match="another name"):
        metrics.Accuracy(**{**named, "name": "outside"}, gain=metrics.hit)
    for taken in metrics.METRICS.values():
        with pytest.raises(SeqscopeError, match=f"called {taken.name}"):
            metrics.register([taken])
    with pytest.raises(SeqscopeError, match="no metric"):
        metrics.register([metrics.hit])


def test_a_page_that_lacks_something_says_what(tmp_path: Path) -> None:
    (tmp_path / "page.py").touch()
    entries = {
        "name": "users", "title": "Users", "icon": ":material/group:", "section": "Try", "order": 9, "help": "Users.",
        "script": tmp_path / "page.py",
    }  # fmt: skip
    page = Page(**entries)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'help'"):
        Page(**{name: value for name, value in entries.items() if name != "help"})  # type: ignore[arg-type]
    item = Parameter("aim", "that is shown", is_item)
    for changes, words in (
        ({"help": ""}, "declares no help"),
        ({"section": 3}, "declares no section"),
        ({"hidden": True}, "hidden what is no function"),
        ({"script": tmp_path / "gone.py"}, "no file gone.py"),
        ({"name": "Users!"}, "small letters"),
        ({"parameters": (item, item)}, "a parameter twice"),
    ):
        with pytest.raises(SeqscopeError, match=words):
            dataclasses.replace(page, **changes)  # type: ignore[arg-type]
    with pytest.raises(SeqscopeError, match="all pages share"):
        Parameter("k", "length", is_item)
    with pytest.raises(SeqscopeError, match="Two pages are called “users”"):
        ordered([page, page])
