"""The tables of benchmarks/README.md, from the results that are kept."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from benchmarks import (
    gpu,
    identifiers,
    leave_one_out,
    peers,
    quality,
    quality_tables,
    study_tables,
    systems,
    verdicts,
    zoo_speed,
)
from engine import registry
from engine.bundle.curve import NOT_SETTLED, STILL_IMPROVING
from engine.cards import declarations
from engine.data.split import SplitOptions
from engine.evaluation.verdict import sentences
from engine.runtime import Zoo
from engine.training import recipe as recipes
from engine.training import refit
from engine.training.run import train
from tests.runtime.bundles import TOYS, count_repeats, make_zoo
from tests.training.tiny import clusters, mixed, recipe, write_log

ALPHA = TOYS[0]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in place of the results that are kept."""
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setattr(quality_tables, "RESULTS", folder)
    quality_tables.results.cache_clear()
    yield folder
    quality_tables.results.cache_clear()


def test_what_needs_no_training_stands_first_under_every_protocol_of_every_log() -> None:
    for dataset, models in quality_tables.results().items():
        lines, _ = quality_tables.of_one_log(dataset, models)
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]
        protocols = dict.fromkeys(protocol for protocol, *_ in rows)
        families = {name: run["recipe"]["family"] for name, run in models.items()}
        order = quality_tables.FLOORS
        floors = sorted(
            (name for name in models if families[name] in order), key=lambda name: order.index(families[name])
        )
        refits = [name.removesuffix("-refit") for name in floors if name.endswith("-refit")]
        floors = [name for name in floors if not name.endswith("-refit")]
        sets = {"given split", "held-out users"} & set(protocols)  # which have no order for a chain to read
        assert sets or floors[:2] == ["popularity", "markov"]
        assert not refits or refits[:2] == ["popularity", "markov"]
        assert not any("+" in protocol for protocol in protocols)
        for protocol in protocols:
            first = refits if ", refit" in protocol else floors
            assert [model for its, model, *_ in rows if its == protocol][: len(first)] == first


def test_sets_of_held_out_items_have_a_table_of_their_own(tmp_path: Path, results: Path) -> None:
    dataset = write_log(tmp_path / "tiny", clusters(60), 60, split=SplitOptions("users"))
    train(recipe("popularity"), dataset, tmp_path / "popularity", device="cpu")
    quality.record(tmp_path / "popularity", as_it_is=False)
    printed, _ = quality_tables.table()
    assert "Recall@20 | NDCG@20 | of popularity's" in printed and "| held-out users | popularity |" in printed
    assert "HR@10" not in printed


def test_refits_have_files_and_tables_of_their_own(tmp_path: Path, results: Path) -> None:
    dataset = write_log(tmp_path / "tiny", mixed(), 150)
    runs = [tmp_path / name for name in ("popularity", "popularity-refit", "markov", "markov-refit")]
    for name in ("popularity", "markov"):
        train(recipe(name), dataset, tmp_path / name, device="cpu")
        selection = refit.select(recipe(name), dataset, tmp_path / name)
        train(recipe(name), dataset, tmp_path / f"{name}-refit", device="cpu", selection=selection)
    for run in runs:
        quality.record(run, as_it_is=False)
    unjudged, _ = quality_tables.table()
    verdicts.record(tmp_path, results, quality.options)
    printed, _ = quality_tables.table()
    with pytest.raises(SystemExit, match="nothing to compare"):
        ranks = [quality.stored(run, dataset) for run in runs[:2]]
        quality._keep(dataset, "popularity", "popularity-refit", *ranks)
    plain, _, refits = printed.partition("**tiny**")[2].partition("**tiny**")
    assert "| full | popularity |" in plain and "refit" not in plain
    found = verdicts.kept(results, "tiny", dataset.info.fingerprint)
    assert {name: verdict.untrained and verdict.untrained.among for name, verdict in found.items()} == {
        "full": 2,
        "full, refit": 2,
    }
    assert "No verdict was recorded" in unjudged and verdicts.kept(results, "tiny", "another") == {}
    assert f"full: {sentences(found['full'])}" in plain and f"full, refit: {sentences(found['full, refit'])}" in refits
    assert "fitted on training and validation" in refits
    assert (
        "| full, refit | popularity |" in refits and "| full, refit | markov |" in refits and "| full |" not in refits
    )


def test_the_table_of_the_readme_is_that_of_the_results(root: Path) -> None:
    of_row = {
        "popularity": ["popularity"], "first-order": ["markov"], "counting transitions": ["counting"],
        "counting, with": ["counting-text"], "the best neural": ["sasrec", "sasrec-ce", "sasrec-time"],
    }  # fmt: skip
    datasets, there = ("films", "ml-1m", "beauty", "beauty-shuffled"), quality_tables.results()
    rows = [line for line in (root / "README.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    for begins, names in of_row.items():
        (row,) = [row for row in rows if row.startswith(f"| {begins}")]
        for dataset, cell in zip(datasets, row.strip("| ").split("|")[1:], strict=True):
            best = max(there[dataset][name]["metrics"]["full"]["NDCG@10"] for name in names if name in there[dataset])
            assert float(cell.strip(" *")) == pytest.approx(best, abs=5e-5), (row, dataset)


def test_what_the_readme_reports_is_that_of_the_systems_beside_the_best_that_needs_no_training(root: Path) -> None:
    def text(*figures: float) -> str:
        return "/".join(f"{figure:.4f}".removeprefix("0") for figure in figures)

    known, above, rows = {system.title: system for system in systems.SYSTEMS}, "", 0
    for line in (root / "README.md").read_text("utf-8").splitlines():
        if not re.search(r"\.\d{4}/\.\d{4} \|", line):
            continue
        _, title, here, reported, floor = (cell.strip() for cell in line.strip("|").split("|"))
        system, rows = known[title], rows + 1
        assert system.published
        dataset, protocol, *theirs, _ = system.published
        assert reported == text(*theirs)
        assert here == text(*map(float, systems.figure(system).split()[0].split("/"))), title
        first, second = quality_tables.shown(protocol)
        untrained = {
            name.removesuffix("-refit"): run["metrics"][protocol]
            for name, run in quality_tables.results()[dataset].items()
            if protocol in run["metrics"] and not registry.learns(run["recipe"]["family"])
        }
        best = max(untrained, key=lambda name: untrained[name][second])
        above = floor or above
        assert above == f"{best} {text(untrained[best][first], untrained[best][second])}", title
    assert rows >= 11


def test_no_model_of_a_table_is_better_than_the_ones_that_its_verdict_compares() -> None:
    """Not all rankings are kept, and those that are must be of the best."""
    compared = 0
    for dataset, models in quality_tables.results().items():
        fingerprint = next(iter(models.values()))["fingerprint"]
        for protocol, verdict in verdicts.kept(quality_tables.RESULTS, dataset, fingerprint).items():
            for side, learns in ((verdict.neural, True), (verdict.untrained, False)):
                means = [
                    result["metrics"][row][verdict.metric]
                    for result in models.values()
                    for row in (protocol, f"{protocol}+user")  # with the vectors of users, where there are any
                    if row in result["metrics"] and registry.learns(result["recipe"]["family"]) == learns
                ]
                assert (side is None) == (not means)
                if side is not None:
                    assert side.mean == pytest.approx(max(means), abs=5e-5 if side.seeds == 1 else 1e-3)
                    compared += 1
    assert compared >= 10


@pytest.mark.parametrize(
    ("epochs", "best", "words"),
    [
        (20, 20, STILL_IMPROVING),
        (20, 15, NOT_SETTLED),
        (18, 15, STILL_IMPROVING),  # ended by hand
        (15, 5, ""),
    ],
)
def test_tables_say_where_training_ended_before_validation_had_settled(epochs: int, best: int, words: str) -> None:
    result = quality_tables.results()["beauty"]["gru4rec"]
    training = {**result["recipe"]["training"], "epochs": 20, "validate_every": 5, "patience": 2}
    changed = result | {"epochs": epochs, "best_epoch": best, "recipe": {**result["recipe"], "training": training}}
    lines, _ = quality_tables.of_one_log("beauty", {"gru4rec": changed})
    cells = [line.split(" | ")[6] for line in lines if line.startswith("| full | gru4rec ")]
    assert cells == [f"{epochs} ({best}){words and ', '}{words}"]


def test_every_result_says_how_its_log_was_imported() -> None:
    for path in quality_tables.RESULTS.glob("*.json"):
        result = json.loads(path.read_text("utf-8"))
        if result.get("dataset", "sample") != "sample":  # which is generated
            assert {"ties", "k_core", "duplicates", "repeats"} <= result["options"].keys(), path


# of studies: bootstraps over all people of Gowalla
@pytest.mark.parametrize("of", [quality_tables, identifiers, pytest.param(study_tables, marks=pytest.mark.long)])
def test_the_tables_are_those_that_the_commands_print(root: Path, of: ModuleType) -> None:
    printed = of.table()
    text = printed if isinstance(printed, str) else printed[0]
    assert text and text in (root / "benchmarks" / "README.md").read_text("utf-8")


def test_where_repeats_count_margins_are_over_the_history_too(tmp_path: Path) -> None:
    bundle = Zoo.open(count_repeats(make_zoo(tmp_path, (ALPHA,)))).bundles[ALPHA.name]
    history, item = [4, 7, 9], 11
    others = np.arange(ALPHA.items) != item

    def lead(events: list[int]) -> float:
        scores = ALPHA.scores(events)
        return float(scores[item] - scores[others].max())

    bars = leave_one_out.margins(bundle, history, bundle.leave_one_out(history, item))
    expected = [lead(history) - lead(history[:place] + history[place + 1 :]) for place in range(len(history))]
    np.testing.assert_allclose(bars, expected, atol=1e-5)


def test_slices_for_a_gpu_go_on_where_they_were_and_stop_in_time(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(gpu, "learning", lambda: {"sasrec": "sasrec", "bert4rec": "bert4rec"})
    words = ["gpu", "parity", "--small", "--device", "cpu", "--results", str(tmp_path)]

    def entries(minutes: str) -> dict[str, dict[str, object]]:
        monkeypatch.setattr("sys.argv", [*words, "--minutes", minutes])
        gpu.main()
        found: dict[str, dict[str, object]] = json.loads((tmp_path / "gpu-parity.json").read_text())["entries"]
        return found

    with pytest.raises(SystemExit, match="the same command goes on"):
        entries("0")
    once = entries("8")
    assert all(entry["passed"] and entry["scores"] == entry["gradient"] == 0 for entry in once.values())
    monkeypatch.setattr(gpu, "compare", None)
    assert entries("8") == once and set(once) == {"sasrec", "bert4rec"}


def test_a_system_without_a_figure_says_why_and_no_other_does() -> None:
    for system in systems.SYSTEMS:
        assert bool(system.unmeasured) != bool(systems.figure(system)), system.title


def test_every_model_stands_in_the_table_of_systems_and_the_table_is_of_today() -> None:
    text = systems.PAGE.read_text("utf-8")
    assert systems.table() in text, "run `python -m benchmarks.systems --write`"
    named = {name for system in systems.SYSTEMS for name in system.recipes}
    models = declarations().models
    absent = {
        name: model for name, model in models.items() if not named & {name, *(v.name for v in model.card.variants)}
    }
    # a floor of ours and a path to pretrained networks; the others are systems of somebody's
    assert set(absent) == {"recent-popularity", "counting-text", "language-model"}


def test_every_peer_is_of_a_recipe_and_runs_where_all_of_its_flags_are_given() -> None:
    for name, peer in peers.PEERS.items():
        assert recipes.load(name, "ml-1m", None, []).name == name
        assert peer.flags and set(peer.flags) <= set(zoo_speed.FLAGS), name


def test_the_clock_of_peers_counts_targets_of_steps_after_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["-c", json.dumps({"warm": 2, "seconds": 0.3})])
    names: dict[str, Any] = {}
    exec(peers._CLOCK, names)  # noqa: S102 (our text, as a peer's process runs it)
    with pytest.raises(SystemExit):
        for targets in names["Clock"]([1000, 1000, 1000, 1000, *[5] * 100], int, together=2):
            time.sleep(0.1 if targets == 5 else 0)
    rate = float(capsys.readouterr().out.removeprefix("targets a second:"))
    assert 0 < rate <= 50  # five targets in a tenth of a second or more
