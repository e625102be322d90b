"""A catalogue without a log: what is imported, what it is known by, and what says why it cannot serve."""

from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import cli
from engine.data.dataset import Dataset
from engine.data.prepare import fingerprint_of_catalogue
from engine.errors import SeqscopeError
from engine.evaluation.evaluate import evaluate
from engine.export.staging import write_dataset_side
from engine.runtime import Zoo
from engine.training.run import train
from tests.models.contract import build
from tests.training.tiny import recipe, text_encoder

MESSY = """item_id,title,brand,categories
007,Red lipstick,Ruby,Make-up|Lips
b-2,"Soap, blue",,Bath
007,Twice,X,Y
,no id,,
c,,Ruby,
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody changes it. What was printed lies beside it."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.csv").write_text(MESSY, "utf-8")
    words = ["catalogue", "import", str(folder / "shop.csv"), "--out", str(folder / "data"), "--name", "shop"]
    with (folder / "said").open("w") as said, redirect_stdout(said), redirect_stderr(said):
        assert cli.main([*words, "--title", "Shop", "--report", str(folder / "bad.csv")]) == 0
    return folder / "data"


def test_what_is_made_of_a_messy_file(shop: Path) -> None:
    said = (shop.parent / "said").read_text("utf-8")
    assert "2 bad rows" in said and "duplicate item row" in said and "item without an id" in said
    assert "there is no log" in said and "history" not in said
    data = Dataset(shop)
    assert (data.info.name, data.info.title, data.num_items, data.num_users) == ("shop", "Shop", 3, 0)
    assert data.info.counts == {"users": 0, "items": 3, "events": 0, "train": 0, "valid": 0, "test": 0}
    assert data.popularity.tolist() == [0, 0, 0]
    assert len(data.cases("test")) == len(data.training) == 0
    items = pq.read_table(shop / "items.parquet").to_pydict()
    assert items["item_id"] == ["007", "b-2", "c"]
    assert items["title"] == ["Red lipstick", "Soap, blue", "c"]  # the id stands in
    assert items["categories"] == [["Make-up", "Lips"], ["Bath"], []]
    assert (shop.parent / "bad.csv").read_text("utf-8").count("\n") == 3
    assert str(shop.parent) not in (shop / "dataset.json").read_text("utf-8")


def test_it_is_known_by_ids_and_texts() -> None:
    table = pa.table({"item_id": ["a", "b"], "title": ["A", "B"], "brand": ["x", None]})
    known = fingerprint_of_catalogue(table)
    assert known == fingerprint_of_catalogue(pa.table(table.to_pydict()))
    for name, values in (("item_id", ["a", "c"]), ("title", ["A", "b"]), ("brand", [None, "x"])):
        place = table.column_names.index(name)
        assert fingerprint_of_catalogue(table.set_column(place, name, pa.array(values))) != known
    assert fingerprint_of_catalogue(table.rename_columns(["item_id", "title", "maker"])) != known
    assert fingerprint_of_catalogue(table.take(pa.array([1, 0]))) != known


@pytest.mark.parametrize(
    ("content", "words", "code", "says"),
    [
        ("item_id,title\n", [], 1, "There are no rows in"),
        ("item_id,title\na,A\na,B\n", ["--strict"], 1, "nothing was written"),
        ("name,title\na,A\n", [], 2, "which column is the item's id"),
        ("item_id,title\na,A\n", ["--name", "Not OK"], 2, "use lowercase letters"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: list[str], code: int, says: str
) -> None:
    (tmp_path / "c.csv").write_text(content)
    assert cli.main(["catalogue", "import", str(tmp_path / "c.csv"), "--out", str(tmp_path / "data"), *words]) == code
    assert says in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_an_export_folder_without_people(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "zoo"
    out.mkdir()
    (out / "users.parquet").write_bytes(b"of other data")
    write_dataset_side(Dataset(shop), out, 100)
    zoo = Zoo.open(out)
    assert zoo.users.num_rows == 0 and not (out / "users.parquet").exists()
    assert len(zoo) == 3 and zoo.popularity.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["sasrec", "popularity"])
def test_what_learns_from_people_says_what_is_missing(shop: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(SeqscopeError, match=f"a catalogue without a log, so there is nothing to learn {name}"):
        train(recipe(name), Dataset(shop), tmp_path / "run", device="cpu")


def test_nobody_can_be_asked(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match="nobody has a held-out item"):
        evaluate(build("popularity"), Dataset(shop), tmp_path)


def test_a_log_may_be_named_in_other_words_than_its_folder(tmp_path: Path) -> None:
    rows = [f"u{u},i{t},{t}\n" for u in range(3) for t in range(4)]
    (tmp_path / "log.csv").write_text("user,item,time\n" + "".join(rows))
    words = ["data", "import", str(tmp_path / "log.csv"), "--out", str(tmp_path / "data"), "--source", "table"]
    assert cli.main([*words, "--name", "my-log"]) == 0
    assert Dataset(tmp_path / "data").info.name == "my-log"
    assert cli.main([*words, "--name", "my log", "--overwrite"]) == 2


def test_what_reads_words_gives_identifiers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Residual k-means: tests/app/test_catalogue_alone.py."""
    rows = "".join(f"i{n},{('Red', 'Blue')[n % 2]} thing {n},{('Bath', 'Lips')[n % 2]}\n" for n in range(20))
    (tmp_path / "c.csv").write_text("item_id,title,categories\n" + rows)
    assert cli.main(["catalogue", "import", str(tmp_path / "c.csv"), "--out", str(tmp_path / "data")]) == 0
    words = ["tokenize", "p5-semid", "--dataset", str(tmp_path / "data"), "--out", str(tmp_path / "p5-semid")]
    assert cli.main([*words, "--device", "cpu", "--set", f"words.encoder={text_encoder()}"]) == 0
    said = capsys.readouterr().out
    assert "rarest third" not in said and "20 items" in said
    assert cli.main(["export", str(tmp_path / "p5-semid"), "--to", str(tmp_path / "zoo")]) == 0
    zoo = Zoo.open(tmp_path / "zoo", warm=True)
    assert not zoo.refused and len(zoo.tokenizations["p5-semid"].identifiers) == 20


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("letter", "LETTER learns from the vectors of a SASRec"),
        ("p5-cid", "Collaborative clusters groups items by what"),
    ],
)
def test_what_needs_a_log_says_why(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, says: str
) -> None:
    assert cli.main(["tokenize", name, "--dataset", str(shop), "--out", str(tmp_path / "run"), "--device", "cpu"]) == 1
    said = capsys.readouterr().err
    assert says in said and "a catalogue without a log" in said
