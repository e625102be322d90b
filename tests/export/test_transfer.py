"""A model carried to a catalogue that it never saw: the answers are those of PyTorch, and only tables of words are new."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from onnx import numpy_helper

from engine import cli
from engine.data.dataset import Dataset
from engine.data.prepare import fill_catalogue
from engine.errors import SeqscopeError, UsageError
from engine.evaluation import metrics
from engine.evaluation.ranks import full_ranks
from engine.export import transfer
from engine.export.transfer import carry
from engine.runtime import Bundle, Zoo
from engine.training.materials import TextVectors
from engine.training.run import open_run
from tests.runtime.bundles import entries, seal
from tests.training.tiny import mixed, text_encoder, write_log
from tests.words.tiny import KOREAN

RunOf = Callable[[str], Path]
TITLES = [f"{'gold' if n % 3 else '은'} {n % 30}" for n in range(40)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("transfer")


@pytest.fixture(scope="module")
def source(exported: RunOf) -> Path:
    """The bundle of a small Recformer, beside that of TextNeighbours at least, of a dataset of 150 items."""
    exported("text-neighbours")
    return exported("recformer") / "recformer"


def alone(folder: Path, titles: list[str | None]) -> Path:
    """A catalogue without a log."""
    return fill(folder, {"title": [title or "" for title in titles], "brand": ["Ruby"] * len(titles)})


def fill(folder: Path, columns: dict[str, list[str]]) -> Path:
    folder.mkdir(parents=True)
    items = pa.table({"item_id": [f"x{n}" for n in range(len(columns["title"]))], **columns})
    fill_catalogue(folder, name="shop", title="Shop", source="Made up.", licence="None.", items=items)
    return folder


@pytest.fixture(scope="module")
def carried(base: Path, source: Path) -> Bundle:
    """To 40 items that somebody has taken."""
    data = write_log(base / "other", mixed(30, 40, seed=9), 40, name="other", titles=TITLES)
    found = carry(source, data.path, base / "other-exports")
    assert (found.items, found.cut, found.mapped, found.found) == (40, 0, 40, False)
    zoo = Zoo.open(base / "other-exports", warm=True)
    assert not zoo.refused
    return zoo.bundles["recformer"]


def test_scores_are_those_of_pytorch_on_that_catalogue(base: Path, carried: Bundle, run_of: RunOf) -> None:
    model, *_ = open_run(run_of("recformer"), base / "other", elsewhere=True)
    rng = np.random.default_rng(0)
    for length in (1, 2, model.max_length, model.max_length + 3):
        for history in rng.integers(0, 40, (5, length)).tolist():
            with torch.no_grad():
                expected = model.scores(torch.tensor([history[-model.max_length :]]))[0].numpy()
            np.testing.assert_allclose(carried.scores(history), expected, atol=1e-3, rtol=1e-4)
            with torch.no_grad():
                _, weights = model.query_with_attention(torch.tensor([history[-model.max_length :]]))
            found = carried.attention(history).weights
            np.testing.assert_allclose(
                found, weights[0].numpy()[..., -found.shape[-1] :, -found.shape[-1] :], atol=1e-4
            )


def test_people_with_held_out_items_are_ranked(base: Path, carried: Bundle, run_of: RunOf) -> None:
    model, _, _, data = open_run(run_of("recformer"), base / "other", elsewhere=True)
    ranks = full_ranks(model, data.cases("test")).ranks
    table = carried.ranks_table()
    assert table is not None
    # equal texts tie, which rounding may break in PyTorch's product
    assert np.abs(table["rank"].to_numpy() - ranks).max() <= 2
    assert carried.manifest.metrics["full"]["NDCG@10"] == pytest.approx(
        metrics.accuracy(table["rank"].to_numpy().astype(np.float64))["NDCG@10"]
    )
    assert carried.exposure_table() is not None and carried.curve_table() is None


def test_other_users_are_offered_beside_a_bundle_that_is_there(base: Path, source: Path, carried: Bundle) -> None:
    data, out = base / "other", base / "other-exports"

    def offered() -> int:
        return pq.read_metadata(out / "users.parquet").num_rows

    everybody, stamp = offered(), Zoo.stamp(out)
    assert carry(source, data, out).found and Zoo.stamp(out) == stamp
    assert carry(source, data, out, users=3).found and offered() == 3 < everybody
    assert carry(source, data, out).found and offered() == everybody


def test_what_it_says_of_itself(source: Path, carried: Bundle) -> None:
    manifest, before = carried.manifest, entries(source)
    assert manifest.schema_version == 5 and manifest.title == "Recformer (zero-shot)"
    about = manifest.zero_shot
    assert about is not None
    assert (about.bundle, about.dataset, about.fingerprint) == ("recformer", "tiny", before["fingerprint"])
    assert manifest.training.model_dump(mode="json") == before["training"]
    assert (manifest.dataset, manifest.num_items) == ("other", 40)
    assert carried.cannot("unseen_items") is None and len(carried.score_new([0, 1], [{"title": "A gold thing"}])) == 1
    shown = carried.word_attention([0, 1]).words
    assert [word.word for word in shown if word.item == 1 and not word.key] == ["gold", "1"]


@pytest.fixture(scope="module")
def shop(base: Path, source: Path) -> Path:
    """A catalogue without a log, in data/, carried to zoo/: `TITLES`, an item without words and one of too many."""
    found = carry(source, alone(base / "shop" / "data", [*TITLES, None, "word " * 300]), base / "shop" / "zoo")
    assert (found.items, found.cut, found.found) == (42, 1, False)
    return base / "shop"


def test_a_catalogue_without_a_log(shop: Path) -> None:
    zoo = Zoo.open(shop / "zoo", warm=True)
    bundle = zoo.bundles["recformer"]
    assert not zoo.refused and not zoo.users.num_rows and not (shop / "zoo" / "recformer" / "ranks.parquet").exists()
    assert bundle.manifest.metrics == {} and not zoo.popularity.any()
    scores = bundle.scores([5, 6])
    assert scores[1] == scores[31] and len(np.unique(scores)) == 32


def test_more_words_than_the_graphs_take_are_cut(source: Path, shop: Path) -> None:
    longest = entries(source)["text"]["longest"]
    bundle = Zoo.open(shop / "zoo").bundles["recformer"]
    assert bundle.manifest.zero_shot is not None and bundle.manifest.zero_shot.cut == 1
    assert sum(1 for _ in bundle.word_attention([41]).words) <= longest
    assert np.isfinite(bundle.scores([41, 3])).all()


def test_what_is_there_already_is_left_alone(
    source: Path, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, stamp = shop / "data", Zoo.stamp(shop / "zoo")
    again = carry(source, data, shop / "zoo")
    assert again.found and again.mapped == 42 and Zoo.stamp(shop / "zoo") == stamp
    # elsewhere, the rows are found by their content
    monkeypatch.setattr("engine.runtime.text.Reader.rows", lambda *args: pytest.fail("read again"))
    carry(source, data, tmp_path / "another")
    kept = next((data / "words").glob("rows-recformer-*.npy"))
    kept.write_bytes(kept.read_bytes()[:-4])  # a damaged file is none
    with pytest.raises(pytest.fail.Exception, match="read again"):
        carry(source, data, tmp_path / "third")


def test_interrupted_work_goes_on(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.text.embeddings.CHUNK", 8)
    data = alone(tmp_path / "shop", list(TITLES))
    honest, asked = transfer.Bundle.reader.fget, []  # type: ignore[attr-defined]

    class Dying:
        def __init__(self, bundle: Bundle) -> None:
            self.reader = honest(bundle)
            self.tokenizer = self.reader.tokenizer

        def rows(self, words: object) -> np.ndarray:
            asked.append(len(words))  # type: ignore[arg-type]
            if len(asked) == 3:
                raise KeyboardInterrupt
            found: np.ndarray = self.reader.rows(words)
            return found

    monkeypatch.setattr(transfer.Bundle, "reader", property(Dying))
    with pytest.raises(KeyboardInterrupt):
        carry(source, data, tmp_path / "zoo")
    assert len(list((data / "words").glob("rows-*.part/*.npy"))) == 2
    carry(source, data, tmp_path / "zoo")
    assert sum(asked[3:]) == len(set(TITLES)) - 16  # each different text once, and none again
    assert not list((data / "words").glob("*.part"))


def test_a_dataset_that_was_deleted_meanwhile_is_not_brought_back(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, honest = alone(tmp_path / "shop", list(TITLES)), transfer.read_words

    def read_late(bundle: Bundle, dataset: Dataset) -> object:
        words = honest(bundle, dataset)
        shutil.rmtree(data)
        return words

    monkeypatch.setattr(transfer, "read_words", read_late)
    with pytest.raises(FileNotFoundError):
        carry(source, data, tmp_path / "zoo")
    assert not data.exists()


def test_what_is_refused(dataset: Dataset, source: Path, shop: Path, tmp_path: Path) -> None:
    data, few, nowhere = shop / "data", alone(tmp_path / "few", list(TITLES[:20])), tmp_path / "nowhere"
    with pytest.raises(SeqscopeError, match=r"Popularity cannot be carried over\. It knows items by their numbers"):
        carry(source.parent / "popularity", data, nowhere)
    with pytest.raises(SeqscopeError, match="needs no training"):
        carry(source.parent / "text-neighbours", data, nowhere)
    with pytest.raises(SeqscopeError, match="was trained on"):
        carry(source, dataset.path, nowhere)
    with pytest.raises(SeqscopeError, match="is no bundle"):
        carry(tmp_path / "nothing", data, nowhere)
    with pytest.raises(SeqscopeError, match="was carried over itself"):
        carry(shop / "zoo" / "recformer", few, nowhere)
    with pytest.raises(SeqscopeError, match="of other data"):
        carry(source, few, shop / "zoo")
    with pytest.raises(UsageError, match="that folder is for studies"):
        carry(source, data, nowhere, name="studies")
    with pytest.raises(SeqscopeError, match="no item has any words"):
        carry(source, fill(tmp_path / "empty", {"title": ["", ""]}), nowhere)
    assert not nowhere.exists()


def test_a_graph_whose_tables_are_not_recognised(copied: Callable[..., Path], tmp_path: Path) -> None:
    path = copied("recformer") / "recformer" / "encoder.onnx"
    model = onnx.load(path)
    table = next(t for t in model.graph.initializer if tuple(t.dims) == (151,))
    values = numpy_helper.to_array(table)[:-1]
    table.CopyFrom(numpy_helper.from_array(values, table.name))
    path.write_bytes(model.SerializeToString())
    seal(path.parent)
    with pytest.raises(SeqscopeError, match="not known here; export it again"):
        carry(path.parent, alone(tmp_path / "shop", list(TITLES)), tmp_path / "zoo")
    assert not (tmp_path / "zoo" / "recformer").exists()


def test_words_that_it_does_not_know_are_said_and_kept(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    korean = fill(
        tmp_path / "korean", {"title": [f"{text} {said}" for text in KOREAN for said in ("크림", "토너", "샴푸")]}
    )
    known = fill(tmp_path / "known", {"title": ["Item 1", "Item 2", "Item 13"]})
    found = {}
    for data in (korean, known):
        assert (
            cli.main(["zero-shot", str(source), "--dataset", str(data), "--to", str(tmp_path / data.name / "zoo")]) == 0
        )
        found[data.name] = capsys.readouterr().out
    assert "of the words of this catalogue are unknown to recformer" in found["known"]
    assert "Warning: 100% of the words" in found["korean"] and "Warning" not in found["known"]
    bundles = {data.name: Zoo.open(data / "zoo").bundles["recformer"] for data in (korean, known)}
    assert {name: bundle.manifest.unknown for name, bundle in bundles.items()} == {"korean": 1, "known": 0}
    assert np.isfinite(bundles["korean"].scores([0])).all()  # it answers nevertheless
    # one that is older than the figure is made anew, and any other share than one is refused
    path = tmp_path / "korean" / "zoo" / "recformer" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    del manifest["text"]["unknown"]
    path.write_text(json.dumps(manifest), "utf-8")
    assert Zoo.open(path.parents[1]).bundles["recformer"].manifest.unknown is None
    assert not carry(source, korean, path.parents[1]).found and carry(source, korean, path.parents[1]).found
    for wrong in (1.01, "5 %"):
        manifest["text"]["unknown"] = wrong
        path.write_text(json.dumps(manifest), "utf-8")
        assert "unknown" in str(Zoo.open(path.parents[1]).refused[0])


def test_training_and_evaluation_say_it_as_well(
    run_of: RunOf, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    korean = fill(tmp_path / "korean", {"title": [f"{text} 토너" for text in KOREAN]})
    open_run(run_of("recformer"), korean, elsewhere=True)
    said = capsys.readouterr().err
    assert "Warning: 100% of the words" in said and "unknown to recformer" in said
    run = tmp_path / "near"
    settings = ["--set", f"model.encoder={text_encoder()}", "--out", str(run)]
    assert cli.main(["train", "text-neighbours", "--dataset", str(korean), *settings]) == 0
    said = capsys.readouterr().err
    assert "Warning: " in said and "set model.encoder=scratch" in said
    unknown = TextVectors.read(run).unknown
    assert unknown is not None and unknown > 0.5
    # a tokenizer learnt from these titles has a token for "item", and for some of the numbers
    bundles = Zoo.open(source.parent).bundles
    trained = bundles["recformer"].manifest.unknown
    assert trained is not None and 0 < trained < 0.5
    assert bundles["text-neighbours"].manifest.unknown == TextVectors.read(run_of("text-neighbours")).unknown


def test_torch_is_not_needed(source: Path, tmp_path: Path, root: Path) -> None:
    data = alone(tmp_path / "shop", TITLES[:10])  # too few for a map
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from engine.cli import main\n"
        f"sys.exit(main(['zero-shot', {str(source)!r}, '--dataset', {str(data)!r}, '--to', {str(tmp_path / 'zoo')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "10 items" in done.stdout and "too few items for a map" in done.stdout
    bundle = Zoo.open(tmp_path / "zoo").bundles["recformer"]
    assert bundle.cannot("map") == "10 items are too few to draw a map of."
    assert Dataset(data).num_users == 0
