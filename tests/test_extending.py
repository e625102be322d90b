"""The recipes of docs/extending.md, carried out as they stand there, in a package beside this one."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from app.session.pages import Page, Parameter, is_item, ordered
from engine.errors import SeqscopeError
from engine.evaluation import metrics
from tests.golden import ARCHIVE, unpack


def install(recipe: str, root: Path, folder: Path) -> None:
    """Writes the files of the recipe below that heading into `folder`, as an installation would lay them out."""
    text = (root / "docs" / "extending.md").read_text("utf-8")
    part = text.partition(f"\n## {recipe}\n")[2].partition("\n## ")[0]
    for path, code in re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", part, re.DOTALL):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(code, "utf-8")
    project = tomllib.loads("".join(re.findall(r"```toml\n# pyproject.*?\n(.*?)```", part, re.DOTALL)))["project"]
    about = folder / "toys-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))


def carry_out(recipe: str, script: str, root: Path, tmp_path: Path) -> tuple[dict[str, Any], str]:
    """What `script` prints as JSON last, and all that it prints, beside the golden dataset and with the recipe installed."""
    install(recipe, root, tmp_path / "site")
    unpack(ARCHIVE, tmp_path / "golden")
    site = [str(tmp_path / "site"), str(root), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, site)), "OMP_NUM_THREADS": "1",
        "SEQSCOPE_EXPORTS": str(tmp_path / "golden" / "exports"), "SEQSCOPE_HOME": str(tmp_path / "home"),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", f"ROOT = {str(root)!r}\n{script}"],
        cwd=tmp_path / "golden", env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stdout


METRIC = """
import json
from pathlib import Path
from streamlit.testing.v1 import AppTest
from app.reports import build, document, files, html, pdf
from engine.cli import main
from engine.runtime import Zoo

assert main(["report", "--verify", str(*Path("report").glob("*.json")), "--exports", "exports"]) == 0  # made without them
assert main(["evaluate", "runs/popularity"]) == 0
assert main(["export", "runs/popularity", "--to", "exports/golden"]) == 0
zoo = Zoo.open("exports/golden")
measured = zoo.bundles["popularity"].manifest.metrics["full"]
report = build.build(zoo, document.Asked(history=["i1"], models=["popularity", "markov"], parts=["metrics"]))
again = document.read(document.write(report))
seen = {
    "bundle": list(measured),
    "report": sorted({one.metric for one in again.metrics.estimates}),
    "largest": [one.value("largest") for one in again.metrics.beyond],
    "tables": [files.tables(report)["metrics-beyond"].columns],
    "html": html.render(report).decode(),
    "pdf": len(pdf.render(report)),
}
app = AppTest.from_file(ROOT + "/app/main.py", default_timeout=120)
app.query_params.update({"v": "1", "ds": "golden", "h": "i1", "metric": "RR", "at": "5"})
app.run()
for page, section in (("metrics", "beyond"), ("about", "terms")):
    app.switch_page(f"screens/{page}/page.py")
    app.query_params["section"] = section
    app.run()
    assert not app.exception, app.exception
    seen[page] = "\\n".join(str(one.value) for kind in ("markdown", "caption") for one in getattr(app, kind))
    seen[page] += " ".join(column for table in app.dataframe for column in table.value.columns)
print(json.dumps(seen))
"""


@pytest.mark.timeout(600)
def test_a_metric_is_one_declaration(root: Path, tmp_path: Path) -> None:
    seen, printed = carry_out("A metric", METRIC, root, tmp_path)
    assert re.search(r"^ +RR +0\.\d+", printed, re.MULTILINE)  # by evaluate
    assert {"NDCG@10", "RR", "largest@10"} <= set(seen["bundle"])
    assert "RR" in seen["report"] and all(0 < value <= 1 for value in seen["largest"])
    assert "largest" in seen["tables"][0] and "Largest@10" in seen["html"] and ">RR</th>" in seen["html"]
    assert " RR (" in seen["metrics"] and "Largest@5" in seen["metrics"]
    assert "however far down it is" in seen["about"] and "Made up for this recipe" in seen["about"]


def test_a_metric_that_lacks_something_says_what() -> None:
    with pytest.raises(TypeError, match="'brief'"):
        metrics.Beyond(name="x", title="x", meaning="x", source="x", of_lists=lambda exposure, popularity: 0.0)  # type: ignore[call-arg]
    with pytest.raises(SeqscopeError, match="no source"):
        metrics.Accuracy(name="x", title="x", meaning="x", source="", gain=metrics.hit)
    for taken in metrics.METRICS.values():
        with pytest.raises(SeqscopeError, match=f"called {taken.name}"):
            metrics.register([taken])
    with pytest.raises(SeqscopeError, match="no metric"):
        metrics.register([metrics.hit])


PAGES = """
import json
from pathlib import Path
from streamlit.testing.v1 import AppTest
from engine.cli import build_parser, main

def help_of(command):
    parser = build_parser([command])._subparsers._group_actions[0].choices[command]
    return " ".join(parser.format_help().split())

def page(name, **parameters):
    app = AppTest.from_file(ROOT + "/app/main.py", default_timeout=120)
    app.query_params.update({"v": "1", "ds": "golden", "h": "i1", **parameters})
    app.run()
    app.switch_page(f"screens/{name}/page.py")
    app.query_params.update(parameters)
    app.run()
    assert not app.exception, app.exception
    kinds = ("subheader", "markdown", "caption", "table", "pills", "selectbox", "multiselect")
    return "\\n".join(
        str(getattr(element, "options", element.value)) for kind in kinds for element in getattr(app, kind)
    )
"""

MODEL = (
    PAGES
    + """
from app.jobs import kinds
from app.jobs.kinds import TrainingChoice
from app.reports import build, document
from engine.runtime import Zoo
from toys.test_gru import test_padding_changes_nothing

test_padding_changes_nothing()
data = json.loads(Path("runs/sasrec/run.json").read_text())["dataset_path"]
quick = [word for setting in ("training.epochs=2", "model.dim=4", "training.precision=float32") for word in ("--set", setting)]
assert main(["train", "gru", "--dataset", data, "--out", "runs/gru", "--device", "cpu", *quick]) == 0
assert main(["evaluate", "runs/gru"]) == 0
assert main(["export", "runs/gru", "--to", "exports/golden"]) == 0
zoo = Zoo.open("exports/golden")
report = build.build(zoo, document.Asked(history=["i1"], models=["gru"], parts=["lists", "metrics"]))
job = kinds.train(
    kinds.JobRequest("id", Path("shop"), Path("jobs"), name="shop", title="A shop", log=("user", "item")),
    [TrainingChoice(model="gru", settings=kinds.batches("gru", 20))],
)
seen = {
    "help": help_of("train"),
    "order": zoo.bundles["gru"].manifest.order,
    "reason": zoo.bundles["gru"].cannot("attention"),
    "items": len(zoo.bundles["gru"].scores([0, 1])),
    "offered": [kinds.models()["gru"].title, kinds.models()["gru"].declaration.learns],
    "steps": [step.words for step in job.steps],
    "report": document.write(report).decode(),
    "pages": {
        "compare": page("compare", m="gru"), "metrics": page("metrics", m="gru"),
        "about": page("about", m="gru", section="sequential"),
    },
}
print(json.dumps(seen))
"""
)


@pytest.mark.timeout(600)
def test_a_model_is_one_file_and_a_recipe(root: Path, tmp_path: Path) -> None:
    seen, _ = carry_out("A model", MODEL, root, tmp_path)
    assert "popularity, gru)" in seen["help"]
    assert seen["order"] == 15 and seen["reason"] == "It keeps one state and looks back at nothing."
    assert seen["offered"] == ["GRU", True]
    train, evaluate, export = seen["steps"][2:]
    assert train[:2] == ["train", "gru"] and "training.batch_size=16" in train  # few users, smaller batches
    assert evaluate[0] == "evaluate" and export[0] == "export"
    assert '"gru"' in seen["report"]
    for name, text in seen["pages"].items():
        assert "GRU" in text, name


TOKENIZER = (
    PAGES
    + """
from app.jobs import kinds
from engine.runtime import Zoo

data = json.loads(Path("runs/sasrec/run.json").read_text())["dataset_path"]
assert main(["tokenize", "hashing", "--dataset", data, "--out", "runs/hashing"]) == 0
assert main(["export", "runs/hashing", "--to", "exports/golden"]) == 0
about = Zoo.open("exports/golden").tokenizations["hashing"].about
job = kinds.prepare(kinds.JobRequest("id", Path("shop"), Path("jobs"), name="shop", title="A shop"), items=500)
seen = {
    "help": help_of("tokenize"),
    "about": [about.title, about.order, about.paper],
    "steps": [step.words for step in job.steps],
    "page": page("semantic_ids"),
}
print(json.dumps(seen))
"""
)


@pytest.mark.timeout(600)
def test_a_tokenizer_is_one_file_and_a_recipe(root: Path, tmp_path: Path) -> None:
    seen, _ = carry_out("A tokenizer", TOKENIZER, root, tmp_path)
    assert "random, hashing)" in seen["help"]
    assert seen["about"] == ["Hashed titles", 85, "Made up for this recipe"]
    assert ["tokenize", "hashing"] in [words[:2] for words in seen["steps"]]
    assert "Hashed titles" in seen["page"]


PART = (
    PAGES
    + """
from app.reports import document, html
from app.reports.files import files

(before,) = Path("report").glob("*.json")
assert main(["report", "--verify", str(before), "--exports", "exports"]) == 0  # made without it
words = ("--history", "i1", "i1", "--models", "popularity", "--parts", "history", "length", "lists", "--to", "made")
assert main(["report", "exports/golden", *words, "--forms", "json"]) == 0
(file,) = Path("made").glob("*.json")
assert main(["report", "--verify", str(file), "--exports", "exports"]) == 0
report = document.load(file)
raw = json.loads(file.read_text())
raw["length"]["items"] = 3
file.write_text(json.dumps(raw))
seen = {
    "asked": report.asked.parts,
    "files": list(files(report, ["csv"])),
    "html": html.render(report).decode(),
    "forged": main(["report", "--verify", str(file), "--exports", "exports"]),
    "page": page("report"),
}
print(json.dumps(seen))
"""
)


@pytest.mark.timeout(600)
def test_a_part_of_a_report_is_one_file(root: Path, tmp_path: Path) -> None:
    seen, printed = carry_out("A part of a report", PART, root, tmp_path)
    assert seen["asked"] == ["history", "length", "lists"] and any(
        name.endswith("-length.csv") for name in seen["files"]
    )
    assert "How long is the history?" in seen["html"] and "2 items, 1 of them different." in seen["html"]
    assert seen["forged"] == 1 and "length: items was" in printed
    assert "Length" in seen["page"]


PAGE = """
import json
from streamlit.testing.v1 import AppTest
from app.screens import PAGES

def lengths_page(**parameters):
    app = AppTest.from_file(ROOT + "/app/main.py", default_timeout=120)
    app.query_params.update({"v": "1", "ds": "golden", "h": "i1"})
    app.run()
    app.switch_page(str(PAGES["lengths"].script))
    app.query_params.update(parameters)
    app.run()
    assert not app.exception and not app.error, (app.exception, app.error)
    return app

plain, chosen, wrong = lengths_page(), lengths_page(least="9"), lengths_page(least="13")
(link,) = [str(element.proto) for element in chosen.get("bidi_component") if "Copy link" in str(element.proto)]
lengths = [len(app.table[0].value) for app in (plain, chosen, wrong)]
chosen.selectbox(key="lengths_least").set_value(10).run()
seen = {
    "navigation": list(PAGES),
    "title": plain.title[0].value,
    "lengths": lengths,
    "link": link,
    "warnings": [element.value for element in wrong.warning],
    "address": [chosen.query_params["least"], chosen.query_params["h"]],
}
print(json.dumps(seen))
"""


@pytest.mark.timeout(600)
def test_a_page_is_one_folder(root: Path, tmp_path: Path) -> None:
    seen, _ = carry_out("A page", PAGE, root, tmp_path)
    assert seen["navigation"][5:8] == ["map", "lengths", "metrics"]
    every, some, again = seen["lengths"]
    assert seen["title"] == "Lengths" and 0 < some < every == again
    assert "least=9" in seen["link"]
    assert any("length of a history “13”; possible is 1 to 12" in words for words in seen["warnings"])
    assert seen["address"] == ["10", "i1"]


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
