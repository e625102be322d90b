"""A study's plan is checked before anything runs: whatever is wrong in it is said once, and names the place."""

from pathlib import Path

import pytest

from engine.cli import main
from engine.data.dataset import Dataset
from engine.errors import UsageError
from engine.studies.plan import PLANS, find, load
from engine.studies.run import carry_out, resolved
from tests.studies.plans import PLAN, PUBLISHED, SWEEP

WRONG = {
    "no toml": ("title = ", "Invalid value"),
    "unknown entry": (PLAN + "hacked = 1\n", "hacked"),  # of the last variant
    "baseline": (PLAN.replace('"idle"\n[[', '"nobody"\n[['), "none of the variants: idle, again, learns"),
    "one variant": (PLAN[: PLAN.index('[[variants]]\nname = "again"')], "at least two variants"),
    "a name twice": (PLAN.replace('"again"', '"learns"'), "a name of its own"),
    "settings of no run": (PLAN.replace("set.teacher", "set.sasrec", 1), "which is none of its runs: teacher"),
    "settings for all of no run": (PLAN.replace("[[variants]]", '[set]\nx = ["a.b=1"]\n[[variants]]', 1), "[set] sets"),
    "a run twice": (PLAN.replace('["teacher.toml"]', '["teacher.toml", "teacher"]'), "run twice"),
    "seeds": (PLAN.replace("[1, 2]", "[1, 1]"), "different numbers"),
    "both": (SWEEP + '[[variants]]\nname = "a"\ntitle = "A"\n', "one of the two"),
    "a sweep's baseline": ('baseline = "4"\n' + SWEEP, "leave it out"),
    "a sweep of no run": (SWEEP.replace('run = "codes"', 'run = "other"'), "none of the runs"),
    "a value twice": (SWEEP.replace("16", "8"), "stands twice"),
    "a paper that says nothing of what differs": (
        PLAN.replace("[[variants]]", PUBLISHED.replace('differs = "Another log."\n', "") + "[[variants]]", 1),
        "differs",
    ),
    "a text as a value": (SWEEP.replace("16", '"16"'), "values"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_plan_is_refused_by_name(tmp_path: Path, name: str) -> None:
    text, says = WRONG[name]
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"mine\.toml") as error:
        load(path)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no study 'nowhere'; there are .*sample/letter-terms"):
        find(["nowhere"], "sample")
    with pytest.raises(UsageError, match="no studies come along for mine"):
        find([], "mine")


def test_names_are_files_or_those_that_come_along(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(PLAN, "utf-8")
    found = find(["alpha", "sample/beta", str(tmp_path / "mine.toml")], "sample")
    assert [path.stem for path in found.values()] == ["alpha", "beta", "mine"]
    assert list(found)[:2] == ["alpha", "sample/beta"]
    assert len(find([], "sample")) == len(list((PLANS / "sample").glob("*.toml"))) >= 8


@pytest.mark.parametrize("path", sorted(PLANS.glob("*/*.toml")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_those_that_come_along_are_plans_of_their_dataset(path: Path, tmp_path: Path) -> None:
    """Every setting exists, and every figure of a paper belongs to a variant."""
    folder = Path(__file__).parents[2] / "data" / path.parent.name
    if path.parent.name in ("beauty", "gowalla"):  # which are not embedded: small ones, split as they are
        folder = tmp_path / path.parent.name
        for part, items in (("train", "1 2 3"), ("test", "4")):
            (tmp_path / f"{part}.txt").write_text("".join(f"{user} {items}\n" for user in range(8)), "utf-8")
        (tmp_path / "log.csv").write_text("user,item\n" + "0,1\n0,2\n0,3\n1,1\n1,2\n1,3\n", "utf-8")
        sets = [tmp_path / "train.txt", "--test", tmp_path / "test.txt", "--valid-share", 0]
        words = [*(sets if path.parent.name == "gowalla" else [tmp_path / "log.csv"]), "--out", folder]
        assert main(["data", "import", *map(str, words)]) == 0
    dataset = Dataset(folder)
    planned = load(path)
    plan = resolved(planned, dataset, Path("runs"))
    assert len({chain[-1].folder for chain in plan.chains.values()}) == len(plan.variants) * len(planned.seeds)
    assert len(plan.published) == len(planned.published)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PLAN + PUBLISHED.replace("learns =", "nobody ="), "no variant 'nobody'"),
        (PLAN + PUBLISHED.replace("idle =", "again ="), "no figure of the baseline 'idle'"),
        (PLAN + PUBLISHED.replace('"NDCG@10"', '"Recall@20"'), "`beside` names"),
        (SWEEP + PUBLISHED.replace("idle =", "8 =").replace("learns =", "5 ="), "no variant '5'"),
        (PLAN.replace("optimiser.lr=1e-12", "optimiser.rate=1"), "no setting rate"),
        (PLAN.replace("optimiser.lr=1e-12", "training.seed=7"), "seeds train the same run"),
        (SWEEP.replace("[4, 8, 16]", "[4, 16]"), "which is not among the values"),
        (SWEEP.replace("tokenizer.codes", "collisions.policy"), "is no number"),
        (SWEEP.replace("tokenizer.codes", "tokenizer.layers"), "no setting layers; there are .*codes"),
        (SWEEP.replace("[4, 8, 16]", "[1, 8, 16]"), "out of range"),
    ],
)
def test_wrong_settings_show_before_anything_is_made(here: Path, circle: Dataset, text: str, says: str) -> None:
    (here / "mine.toml").write_text(text, "utf-8")
    with pytest.raises(UsageError, match=says):
        carry_out(load(here / "mine.toml"), circle, here / "runs")
    assert not (here / "runs").exists()
