"""The jobs that there are: every step is a command that the engine takes, and what was made of other data gives way."""

import json
import math
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.jobs import fresh, keep, kinds
from app.jobs import turn as module
from app.jobs.estimate import JobEstimate
from app.jobs.kinds import JobRequest, TrainingChoice
from app.jobs.spec import Job, JobStep
from app.jobs.turn import exchange, turn
from engine.cards import declarations
from engine.cli import build_parser
from engine.errors import SeqscopeError
from engine.export import umap_map
from engine.tabular.reading import Reading
from engine.tokenizers.recipe import load as load_tokenizer
from engine.training.recipe import load

ESTIMATE = JobEstimate(
    device="CPU", epochs=10, steps=5, start=9.0, train=5.0, validation=2.0, evaluate=1.0,
    export=20.0, at_most=True, seconds=37.0,
)  # fmt: skip


LOG = ("user", "item", "time")


def place_of(tmp_path: Path) -> Path:
    """The folder of the dataset."""
    return tmp_path / "owners" / "a" / "datasets" / "x"


def request(tmp_path: Path, log: tuple[str, ...] = (), title: str = "A shop") -> JobRequest:
    return JobRequest("id", place_of(tmp_path), tmp_path / "jobs", name="x", title=title, log=log)


def prepare(tmp_path: Path, items: int = 500, log: tuple[str, ...] = (), title: str = "A shop") -> Job:
    return kinds.prepare(request(tmp_path, log, title), items, [tmp_path / "exports" / "recformer"])


def train(tmp_path: Path, *choices: TrainingChoice, log: tuple[str, ...] = LOG) -> Job:
    return kinds.train(request(tmp_path, log), choices)


def baselines(tmp_path: Path, log: tuple[str, ...] = LOG) -> Job:
    return kinds.baselines(request(tmp_path, log))


def commands(job: Job) -> list[list[str]]:
    return [list(step.words) for step in job.steps if step.program == "engine"]


@pytest.mark.parametrize("log", [(), ("user", "item", "time", "weight")])
def test_the_engine_takes_every_step(tmp_path: Path, log: tuple[str, ...]) -> None:
    jobs = [prepare(tmp_path, log=log, title="-- $(rm) a shop")]
    if log:
        jobs.append(baselines(tmp_path, log))
        settings = {"training.epochs": 3, "objective.loss": "bce"}
        jobs.append(train(tmp_path, *(TrainingChoice(model=model) for model in kinds.models()), log=log))
        jobs.append(train(tmp_path, TrainingChoice(model="sasrec", settings=settings), log=log))
    for job in jobs:
        for words in commands(job):
            args = build_parser(words).parse_args(words)
            assert callable(args.carry_out)
            if args.command in ("data", "catalogue"):
                assert args.title == "-- $(rm) a shop" or args.title == "A shop"
                assert args.name == "x" and args.out == Path("data")
            if args.command in ("train", "tokenize", "baselines"):
                assert args.restart_other  # a visitor has no other folder where a server has new recipes
            if args.command == "train":
                load(args.model, "x", args.recipe, args.set)
            if args.command == "tokenize":
                load_tokenizer(args.recipe_name, "x", args.recipe, args.set)


def test_a_catalogue_that_is_too_small_has_no_map_of_words(tmp_path: Path) -> None:
    def mapped(items: int) -> bool:
        return any(words[0] == "embed" and "--to" in words for words in commands(prepare(tmp_path, items)))

    assert kinds.NEIGHBOURS == umap_map.NEIGHBOURS
    assert not mapped(umap_map.NEIGHBOURS) and mapped(umap_map.NEIGHBOURS + 1)


def test_what_a_catalogue_gets_at_once_and_a_large_one_besides(tmp_path: Path) -> None:
    steps = prepare(tmp_path).steps
    assert "evaluate" in [step.words[0] for step in prepare(tmp_path, log=("user", "item")).steps]
    assert not steps[0].may_fail and all(step.may_fail for step in steps[2:])
    assert all(step.needs == ("words",) for step in steps if step.words[0] == "tokenize")
    assert [step.goal for step in steps].count(True) == 4
    programs = [[step.program for step in prepare(tmp_path, items=items).steps] for items in (500, 500_000)]
    assert ["app.store.prepared" in of_job for of_job in programs] == [False, True]
    job = prepare(tmp_path)
    assert job.folder == "../../owners/a/datasets/x"
    assert job.place(tmp_path / "jobs" / "id") == place_of(tmp_path)
    outside = [word for step in job.steps for word in step.words if str(tmp_path) in word]
    assert outside == [str(tmp_path / "exports" / "recformer")]  # what is carried over comes from elsewhere


def test_semantic_ids_that_were_brought_are_read_and_once_more_with_the_next_log(tmp_path: Path) -> None:
    folder = place_of(tmp_path)
    folder.mkdir(parents=True)
    job = kinds.index(request(tmp_path))
    words = next(words for words in commands(job) if words[0] == "export")
    (brought,) = build_parser(words).parse_args(words).runs
    assert (folder / brought).resolve() == tmp_path / "jobs" / job.id / "files" / kinds.INDEX
    (at,) = [at for at, step in enumerate(job.steps) if list(step.words) == words]
    assert (
        job.steps[at + 1].program == "app.jobs.keep" and not job.steps[at].may_fail
    )  # what cannot be read replaces nothing
    kept = [kinds.INDEX if word == str(brought) else word for word in words]
    assert kept not in commands(prepare(tmp_path))
    (folder / kinds.INDEX).write_text("{}")
    assert kept in commands(prepare(tmp_path, log=("user", "item")))


def test_a_file_that_was_read_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    brought, kept = tmp_path / "brought", tmp_path / "kept"
    with pytest.raises(FileNotFoundError):
        keep.keep(brought, kept)
    for content in ("first", "second"):
        brought.write_text(content)
        keep.keep(brought, kept)
        keep.keep(brought, kept)  # once more, after an interruption
        assert kept.read_text() == content and not brought.exists()


def test_models_that_need_no_training_are_made_as_soon_as_there_is_a_log(tmp_path: Path) -> None:
    declared = declarations().models
    job = baselines(tmp_path)
    assert job.short and [step.words[0] for step in job.steps] == ["data", "data", "baselines"]  # in one process
    names = job.steps[-1].words[1 : job.steps[-1].words.index("--dataset")]
    assert {"popularity", "markov"} <= set(names)
    assert all(not declared[name].learns and declared[name].needs_log for name in names)


def test_models_one_after_the_other_and_estimates_are_their_shares_of_the_work(tmp_path: Path) -> None:
    job = train(
        tmp_path, TrainingChoice(model="sasrec", settings={"training.epochs": 3}), TrainingChoice(model="markov")
    )
    assert [step.words[0] for step in job.steps] == ["data", "data", *["train", "evaluate", "export"] * 2]
    first, second = job.steps[2].run, job.steps[5].run
    assert first.startswith("runs/sasrec-") and second == "runs/markov" and not job.timed
    other = train(tmp_path, TrainingChoice(model="sasrec", settings={"training.epochs": 4})).steps[2]
    assert other.run != first and not other.may_fail  # other settings, another training; alone, it is the job
    export = job.steps[4]
    assert export.words[export.words.index("--name") + 1] == "sasrec"
    job = train(tmp_path, TrainingChoice(model="sasrec", estimate=ESTIMATE))
    assert job.timed and job.short  # over within a minute
    longer = ESTIMATE.model_copy(update={"train": 60.0})
    assert not train(tmp_path, TrainingChoice(model="sasrec", estimate=longer)).short
    assert [step.weight for step in job.steps[2:]] == [10.0, 4.0, 23.0]
    assert not train(tmp_path, TrainingChoice(model="sasrec", estimate=ESTIMATE), TrainingChoice(model="markov")).timed
    assert Job.model_validate_json(job.model_dump_json()) == job


def test_the_title_of_many_trainings_is_short_and_whole(tmp_path: Path) -> None:
    names = [name for name, model in kinds.models().items() if not (model.page.identifiers or model.page.first)]
    title = train(tmp_path, *(TrainingChoice(model=name) for name in names)).title
    assert kinds.models()[names[0]].title in title and title.endswith(f"and {len(names) - kinds.NAMED} more")
    assert train(tmp_path, *(TrainingChoice(model=name) for name in names[:2])).title.endswith(
        kinds.models()[names[1]].title
    )


def carried(place: Path, **changes: object) -> None:
    """As if a Recformer had been carried over to the dataset."""
    sizes = {"dim": 32, "layers": 1, "heads": 4, "window": 16}
    model = {**sizes, "start": "somewhere", "fields": ["plot"], "vocabulary": 9}
    manifest = {"zero_shot": {"bundle": "recformer"}, "training": {"recipe": {"model": model}}} | changes
    (place / "exports" / "recformer").mkdir(parents=True, exist_ok=True)
    (place / "exports" / "recformer" / "manifest.json").write_text(json.dumps(manifest))


def words_of(steps: Iterable[JobStep]) -> list[str]:
    return [" ".join(step.words[:2]) for step in steps]


def test_recformer_is_tuned_from_what_was_carried_over(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    with pytest.raises(SeqscopeError, match="there is none here"):
        kinds.choose(place, "recformer-tuned", {})
    carried(place, zero_shot=None)
    with pytest.raises(SeqscopeError, match="there is none here"):  # trained on this log: nothing to start from
        kinds.choose(place, "recformer-tuned", {})
    carried(place)
    choice = kinds.choose(place, "recformer-tuned", {"training.epochs": 3})
    assert choice.before is not None and choice.before.settings["model.start"] == "exports/recformer"
    for one in (choice, choice.before):
        assert one.settings["model.dim"] == 32 and one.settings["training.epochs"] == 3
        assert not {"model.fields", "model.vocabulary"} & one.settings.keys()
    assert choice.settings["model.start"] == choice.before.run.removeprefix("runs/")
    assert choice.tried["model.start"] == "exports/recformer"  # the stage before is not there when it is estimated
    steps = train(tmp_path, choice, TrainingChoice(model="markov")).steps
    assert words_of(steps) == [
        "data import", "data exports", "train recformer-tuned-stage1", "train recformer-tuned", f"evaluate {choice.run}",
        f"export {choice.run}", "train markov", "evaluate runs/markov", "export runs/markov",
    ]  # fmt: skip
    assert steps[3].needs == (steps[2].key,) and steps[2].run == choice.before.run and steps[2].may_fail
    assert steps[5].words[-1] == "recformer-tuned" and steps[5].goal and not steps[2].goal
    timed = choice.model_copy(update={"estimate": ESTIMATE})
    assert not train(tmp_path, timed).timed and not train(tmp_path, timed).steps[2].may_fail
    before = choice.before.model_copy(update={"estimate": ESTIMATE})
    assert train(tmp_path, timed.model_copy(update={"before": before})).timed


def test_what_is_pretrained_first_needs_nothing_carried_over(tmp_path: Path) -> None:
    choice = kinds.choose(place_of(tmp_path), "s3rec", {"training.epochs": 3})
    assert choice.before is not None and choice.before.model == "s3rec-pretrained"
    assert choice.before.settings["training.epochs"] == 3 and "model.start" not in choice.before.settings
    assert choice.settings["model.start"] == choice.before.run.removeprefix("runs/")
    assert choice.tried["model.start"] == ""


def test_tiger_writes_the_identifiers_of_a_tokenizer(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    with pytest.raises(SeqscopeError, match="semantic IDs of RQ-VAE"):
        kinds.choose(place, "tiger", {})
    for path, content in (("runs/rqvae/identifiers.json", {}), ("data/dataset.json", {"counts": {"items": 500}})):
        (place / path).parent.mkdir(parents=True)
        (place / path).write_text(json.dumps(content))
    choice = kinds.choose(place, "tiger", {"training.epochs": 3})
    job = train(tmp_path, choice)
    steps = job.steps
    assert steps[3].needs == ("rqvae",) and not any(step.may_fail for step in steps)
    prepared = next(step for step in prepare(tmp_path).steps if step.words[:2] == ("tokenize", "rqvae"))
    assert steps[2].words == prepared.words  # the same as the preparation's: nothing is done again


@pytest.mark.parametrize("model", ["hstu-time", "recent-popularity"])
def test_what_reads_times_is_refused_in_words_of_the_page_where_there_are_none(tmp_path: Path, model: str) -> None:
    (tmp_path / "data").mkdir()
    about = tmp_path / "data" / "dataset.json"
    about.write_text(json.dumps({"time": {"unit": "order", "first": None, "last": None}}))
    with pytest.raises(SeqscopeError, match="no times") as error:
        kinds.choose(tmp_path, model, {})
    assert "--" not in str(error.value)
    assert kinds.choose(tmp_path, "hstu", {}).model == "hstu"
    about.write_text(json.dumps({"time": {"unit": "day", "first": 0, "last": 86_400}}))
    assert kinds.choose(tmp_path, model, {}).model == model


def test_bundles_of_a_dataset_without_its_log_stay_until_the_new_are_there(tmp_path: Path) -> None:
    place = place_of(tmp_path)

    def state(name: str, fingerprint: str, events: int) -> None:
        (place / name).mkdir(parents=True, exist_ok=True)
        about = {"fingerprint": fingerprint, "counts": {"items": 9, "events": events}}
        (place / name / "dataset.json").write_text(json.dumps(about))

    def into(job: Job) -> set[str]:
        return {step.words[step.words.index("--to") + 1] for step in job.steps if "--to" in step.words}

    assert into(prepare(tmp_path, log=LOG)) == {"exports"}  # nothing is shown yet
    state("exports", "a", 0)
    state("data", "a", 0)
    assert into(prepare(tmp_path)) == {"exports"}  # once more the same
    for job in (prepare(tmp_path, log=LOG), train(tmp_path, TrainingChoice(model="markov"))):
        assert into(job) == {"next"}
        assert job.steps[1].words == ("data", "next", "runs")
        assert job.steps[-1].program == "app.jobs.turn" and not job.steps[-1].may_fail
    state("data", "b", 60)  # the log was read, and then the job was cancelled
    assert into(prepare(tmp_path, log=LOG)) == into(train(tmp_path, TrainingChoice(model="markov"))) == {"next"}
    state("exports", "b", 60)
    assert into(prepare(tmp_path, log=LOG, title="Another title")) == {"exports"}


def test_only_models_that_are_offered(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lc-rec-lora"):
        train(tmp_path, TrainingChoice(model="lc-rec-lora"))
    with pytest.raises(ValueError, match="each model once"):
        train(tmp_path)
    with pytest.raises(ValueError, match="each model once"):
        train(tmp_path, TrainingChoice(model="sasrec"), TrainingChoice(model="sasrec", settings={"training.epochs": 2}))
    with pytest.raises(ValueError, match="before another one"):
        train(tmp_path, TrainingChoice(model="sasrec", before=TrainingChoice(model="letter-tiger")))
    with pytest.raises(ValidationError):
        TrainingChoice(model="../sasrec")


@pytest.mark.parametrize("items", [1, 256, 257, 2_559, 2_561, 50_000])
def test_a_small_catalogue_is_gone_through_often_enough(items: int) -> None:
    settings = kinds.sized("rqvae", items)
    recipe = load_tokenizer("rqvae", "x", None, [f"{key}={value}" for key, value in settings.items()])
    steps = math.ceil(items / recipe.training.batch_size)
    assert steps * recipe.training.epochs >= kinds.STEPS
    if items <= 2_560:  # and no more often than that, or than larger ones are
        assert recipe.training.epochs <= max(150, math.ceil(kinds.STEPS / steps))


def settle(place: Path, **counts: int) -> Path:
    """As if a dataset of this size had been prepared, with identifiers and a Recformer."""
    for path, content in (("runs/rqvae/identifiers.json", {}), ("data/dataset.json", {"counts": counts})):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(json.dumps(content))
    carried(place)
    return place


def chain(choice: TrainingChoice) -> list[TrainingChoice]:
    return [*([choice.before] if choice.before else []), choice]


@pytest.mark.parametrize("model", ["sasrec", "bert4rec", "lightgcn", "recformer-tuned"])
def test_a_small_log_has_small_batches(tmp_path: Path, model: str) -> None:
    """An epoch has at least so many steps, or the smallest batches; on a log of some size batches are the recipe's."""
    last: dict[str, int] = {}
    for people in (20, 319, 320, 1_279, 1_280, 50_000):
        for one in chain(kinds.choose(settle(tmp_path, items=120, users=people), model, {})):
            words = [f"{key}={json.dumps(value)}" for key, value in one.settings.items()]
            found, whole = load(one.recipe, "x", None, words), load(one.recipe, "x", None, [])
            batch = found.training.batch_size
            each = 10 if model == "lightgcn" else max(1, getattr(found.objective, "per_user", 1))  # pairs of a user
            examples = people * each
            assert batch == kinds.LEAST_BATCH or examples >= kinds.EPOCH_STEPS * batch
            assert batch == whole.training.batch_size or examples < kinds.EPOCH_STEPS * 2 * batch
            assert last.get(one.model, 0) <= batch
            assert ("training.batch_size" in one.settings) == (batch < whole.training.batch_size)
            last[one.model] = batch
    assert last and all(
        last[one.model] == load(one.recipe, "x", None, []).training.batch_size
        for one in chain(kinds.choose(tmp_path, model, {}))
    )


def test_batches_that_were_asked_for_stay(tmp_path: Path) -> None:
    place = settle(tmp_path, items=120, users=160)
    assert kinds.choose(place, "bert4rec", {}).settings == {"training.batch_size": 16}
    for model in ("bert4rec", "recformer-tuned", "tiger"):
        for one in chain(kinds.choose(place, model, {"training.batch_size": 7, "training.epochs": 3})):
            assert one.settings["training.batch_size"] == 7 and one.settings["training.epochs"] == 3
    for model in ("attrec", "markov", "popularity"):  # these need none, or none smaller
        assert kinds.choose(place, model, {}).settings == {}
    (place / "data" / "dataset.json").unlink()  # nobody knows how many they are
    assert kinds.choose(place, "bert4rec", {}).settings == {}


def test_steps_that_need_what_is_not_there() -> None:
    request = kinds.JobRequest("id", Path("x"), Path("jobs"), name="", title="")
    job = kinds.batch(request, ["a"]).model_dump()
    with pytest.raises(ValidationError, match="needs words"):
        Job.model_validate(job | {"steps": [JobStep(title="a", words=("a",), needs=("words",)).model_dump()]})
    with pytest.raises(ValidationError):
        JobStep(title="a", words=("a",), program="os; rm")
    with pytest.raises(ValidationError, match="NUL"):
        JobStep(title="a", words=("a\0b",))


# --- what was made of another state of the dataset


def dataset(folder: Path, fingerprint: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "dataset.json").write_text(json.dumps({"fingerprint": fingerprint}))
    return folder


def test_what_was_made_of_other_data_goes(tmp_path: Path) -> None:
    data, exports, runs = dataset(tmp_path / "data", "one"), tmp_path / "exports", tmp_path / "runs"
    assert fresh.fresh(data, exports, runs) == [] and runs.is_dir() and not exports.exists()
    dataset(exports, "one")
    (runs / "sasrec").mkdir()
    assert fresh.fresh(data, exports, runs) == [] and (runs / "sasrec").is_dir()
    dataset(data, "two")
    assert fresh.fresh(data, exports, runs) == ["exports", "runs"]
    assert not exports.exists() and not (runs / "sasrec").exists()
    dataset(exports, "two")
    assert fresh.fresh(data, exports, runs) == []
    exports.joinpath("dataset.json").write_text("{")  # nobody knows whose it is
    assert fresh.fresh(data, exports, runs) == ["exports"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "runs"]


def test_what_was_chosen_at_the_check_reaches_the_import(tmp_path: Path) -> None:
    reading = Reading(format="delimited", ties="shuffle", drop_negative=True, min_rating=3.0, repeats="first")
    log = ("user", "item", "time", "weight", "quantity")
    job = kinds.prepare(
        JobRequest("id", tmp_path, tmp_path / "jobs", name="x", title="A shop", log=log, reading=reading), 5
    )
    words = commands(job)[0]
    args = build_parser(words).parse_args(words)
    assert (args.ties, args.drop_negative, args.repeats, args.quantity_column) == ("shuffle", True, "first", "quantity")
    assert (args.rating_column, args.min_rating) == ("weight", 3.0)


@pytest.mark.parametrize(("form", "unit"), [("s", None), ("ms", None), ("iso", "s"), ("%d.%m.%Y", "s")])
def test_numbers_may_be_places_but_dates_are_dates(tmp_path: Path, form: str, unit: str | None) -> None:
    reading, log = Reading(format="delimited", time=form), ("user", "item", "time")
    words = commands(
        kinds.prepare(
            JobRequest("id", tmp_path, tmp_path / "jobs", name="x", title="A shop", log=log, reading=reading), 5
        )
    )[0]
    assert build_parser(words).parse_args(words).time_unit == unit


# --- what was made beside what is shown takes its place; nothing is lost where it was interrupted or nothing was made


def zoo(path: Path, fingerprint: str, *models: str) -> Path:
    path.mkdir()
    (path / "dataset.json").write_text(json.dumps({"fingerprint": fingerprint}))
    for model in models:
        (path / model).mkdir()
        (path / model / "manifest.json").write_text("{}")
    return path


def models(path: Path) -> list[str]:
    return sorted(found.parent.name for found in path.glob("*/manifest.json"))


def names(path: Path) -> list[str]:
    return sorted(found.name for found in path.iterdir())


def test_the_new_takes_the_place_of_the_old(tmp_path: Path) -> None:
    data = zoo(tmp_path / "data", "new")
    made, shown = zoo(tmp_path / "next", "new", "b", "c"), zoo(tmp_path / "exports", "old", "a")
    assert turn(data, made, shown)
    assert models(shown) == ["b", "c"] and names(tmp_path) == ["data", "exports"]
    assert turn(data, made, shown) and models(shown) == ["b", "c"]  # once more, as after an interruption


def test_what_is_of_the_same_state_joins_what_is_shown(tmp_path: Path) -> None:
    data = zoo(tmp_path / "data", "new")
    made, shown = zoo(tmp_path / "next", "new", "b", "c"), zoo(tmp_path / "exports", "new", "a", "b")
    (made / "b" / "again").touch()
    (made / "identifiers" / "rqvae").mkdir(parents=True)
    module.join(made, shown)  # and killed before the rest was removed: what it replaced does not come back
    assert turn(data, made, shown)
    assert models(shown) == ["a", "b", "c"] and (shown / "b" / "again").exists()
    assert names(shown / "identifiers") == ["rqvae"] and names(tmp_path) == ["data", "exports"]


def test_interrupted_between_its_two_moments(tmp_path: Path) -> None:
    data = zoo(tmp_path / "data", "new")
    made, shown = zoo(tmp_path / "next", "old", "a"), zoo(tmp_path / "exports", "new", "b")
    assert turn(data, made, shown)
    assert models(shown) == ["b"] and names(tmp_path) == ["data", "exports"]


@pytest.mark.parametrize("made", [(), ("a",)])
def test_where_nothing_was_made_the_old_stays(tmp_path: Path, made: tuple[str, ...]) -> None:
    zoo(tmp_path / "data", "new")
    zoo(tmp_path / "exports", "old", "a")
    zoo(tmp_path / "next", "old" if made else "new", *made)
    done = subprocess.run(
        [sys.executable, "-m", "app.jobs.turn", "data", "next", "exports"], cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(Path(module.__file__).parents[2])}, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.strip() == f"seqscope: {module.NOTHING}"
    assert models(tmp_path / "exports") == ["a"]


def test_nothing_was_shown_before(tmp_path: Path) -> None:
    data = zoo(tmp_path / "data", "new")
    assert turn(data, zoo(tmp_path / "next", "new", "b"), tmp_path / "exports")
    assert names(tmp_path) == ["data", "exports"]


@pytest.mark.parametrize("known", [True, False])
def test_two_folders_change_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    one, other = zoo(tmp_path / "one", "1"), zoo(tmp_path / "other", "2", "b")
    if not known:  # a system that cannot do it in one step
        monkeypatch.setattr(module.ctypes, "CDLL", lambda *a, **k: object())
    exchange(one, other)
    assert models(one) == ["b"] and models(other) == [] and names(tmp_path) == ["one", "other"]
