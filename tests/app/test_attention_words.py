"""Words that a model looked at: sums by item and attribute with known answers, an item's own words, and the page."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import zoo
from app.analysis import word_attention
from app.analysis.attention import Names
from app.figures import attention
from app.session import state
from engine.runtime import Word, WordAttention, Zoo
from tests.app.conftest import HOSTILE, Open, alone, run_without_fault, told
from tests.app.readers import READER, SAMPLE, make_readers
from tests.runtime.bundles import rewrite

TITLES = {7: "Old film", 9: "New film"}
ATTRIBUTES = ("title", "cast", "genres")  # no item has a cast
_WORDS = (
    Word(0, 7, "title", "title", True),
    Word(0, 7, "old", "title", False),
    Word(0, 7, "genres", "genres", True),
    Word(0, 7, "drama", "genres", False),
    Word(1, 9, "title", "title", True),
    Word(1, 9, "new", "title", False),
)
# [layers = 2, heads = 2, words]; the first item's last word lies beyond what is read
_WEIGHTS = np.array(
    [
        [[0.1, 0.2, 0.1, 0.0, 0.2, 0.3], [0.0, 0.0, 0.2, 0.0, 0.0, 0.6]],
        [[0.0, 0.4, 0.0, 0.0, 0.2, 0.2], [0.0, 0.2, 0.0, 0.0, 0.0, 0.6]],
    ],
    np.float32,
)
FOUND = WordAttention(_WORDS, _WEIGHTS)


@pytest.fixture(scope="module")
def models() -> Zoo:
    return Zoo.open(SAMPLE)


def shares(layer: int | None = 1, head: int | None = None) -> word_attention.Parts:
    return word_attention.parts(FOUND, word_attention.weigh(FOUND, layer, head), TITLES, ATTRIBUTES)


def many(items: int) -> tuple[WordAttention, np.ndarray, word_attention.Parts]:
    """Item i gets i + 1 parts of the whole, its title all of them."""
    weights = np.arange(1, items + 1, dtype=np.float32) / sum(range(1, items + 1))
    words = tuple(Word(at, at, f"w{at}", "title", False) for at in range(items))
    found = WordAttention(words, weights[None, None].astype(np.float32))
    titles = [f"Title {at}" for at in range(items)]
    return found, weights, word_attention.parts(found, weights, titles, ("title",))


def test_one_layer_one_head_or_the_mean_and_shares_by_item_and_attribute() -> None:
    assert word_attention.weigh(FOUND, 0, 1) == pytest.approx([0, 0, 0.2, 0, 0, 0.6])
    assert word_attention.weigh(FOUND, 1, None) == pytest.approx([0, 0.3, 0, 0, 0.1, 0.4])
    assert word_attention.weigh(FOUND, None, 0) == pytest.approx([0.05, 0.3, 0.05, 0, 0.2, 0.25])
    assert word_attention.weigh(FOUND, None, None) == pytest.approx(_WEIGHTS.mean((0, 1)))
    found = shares()
    assert found.attributes == ("title", "genres")
    assert found.weights == pytest.approx(np.array([[0.3, 0.0], [0.5, 0.0]]), abs=1e-6)
    assert shares(0).weights == pytest.approx(np.array([[0.15, 0.15], [0.55, 0.0]]), abs=1e-6)
    # 3 of the 5 words that are read are the first item's; together they got .8
    assert found.even == pytest.approx([0.48, 0.32])
    assert found.titles == ("Old film", "New film") and found.only([1]).totals == pytest.approx([0.5])


def test_what_is_beyond_the_tokens_is_not_a_word_that_got_nothing() -> None:
    assert word_attention.read(FOUND).tolist() == [True, True, True, False, True, True]
    table = word_attention.table(FOUND, word_attention.weigh(FOUND, 1, None), TITLES)
    assert table["read"].tolist() == ["yes", "yes", "yes", "no", "yes", "yes"]
    assert table["part"].tolist() == ["name", "value", "name", "value", "name", "value"]
    assert table["weight"].sum() == pytest.approx(0.8)
    # a weight of 0 in one layer and head is not enough, and neither is one amid words that are read
    quiet = WordAttention(_WORDS, np.where(np.arange(6) == 4, 0, _WEIGHTS).astype(np.float32))
    assert word_attention.read(quiet).tolist() == [True, True, True, False, True, True]
    assert "1 word of the oldest items lie beyond the 100 tokens" in word_attention.left_out(FOUND, shares(), 12, 100)


def test_what_is_drawn_of_many_items_keeps_the_order_of_time_and_the_whole() -> None:
    found, weights, parts = many(30)
    drawn = parts.strongest(5)
    assert drawn.numbers == ["", "26", "27", "28", "29", "30"] and drawn.titles[0] == "the other 25 items"
    assert drawn.totals.sum() == pytest.approx(1) and drawn.even.sum() == pytest.approx(1)
    assert None not in drawn.by_place()
    assert parts.strongest(30) is parts
    blocks = word_attention.blocks(found, weights, parts, 3)
    assert [block["number"] for block in blocks] == ["28", "29", "30"]
    assert "12 items with the most weight of 30 items" in word_attention.left_out(found, parts, 12, 100)


def test_words_of_cards_and_attributes_whose_end_is_cut() -> None:
    first, second = word_attention.blocks(FOUND, word_attention.weigh(FOUND, 1, None), shares(), 12)
    assert (first["title"], first["unread"], second["unread"]) == ("Old film", 1, 0)
    title, genres = first["lines"]
    assert [word["text"] for word in title["name"]] == ["title"]
    assert title["value"] == [
        {"text": "old", "share": pytest.approx(0.3), "strength": pytest.approx(0.75), "label": "old: 30.00%"}
    ]
    assert genres["value"] == [] and genres["share"] == 0  # its only word is not read
    assert second["lines"][0]["value"][0]["strength"] == pytest.approx(1)
    texts = {7: {"title": "old film", "genres": "drama"}, 9: {"title": "new"}}

    def pieces(text: str) -> list[int]:
        return list(range(len(text.split())))  # a token each

    assert word_attention.cut(FOUND, texts, pieces, 2) == {(7, "title")}  # two tokens: "title" and "old"
    assert word_attention.cut(FOUND, texts, pieces, 3) == frozenset()
    assert word_attention.cut(FOUND, {7: {"title": "quite another text"}, 9: {}}, pieces, 3) == frozenset()
    first, second = word_attention.blocks(FOUND, word_attention.weigh(FOUND, 1, None), shares(), 12, {(7, "title")}, 2)
    assert [line["cut"] for line in first["lines"]] == ["cut after 2 tokens", None]
    assert [line["cut"] for line in second["lines"]] == [None]
    assert "it reads 2 tokens, the name among them" in word_attention.left_out(FOUND, shares(), 12, 100, 2)
    assert "Cut" not in word_attention.left_out(FOUND, shares(), 12, 100)


def test_the_samples_reader_cuts_long_lists_of_genres(models: Zoo) -> None:
    (aliens,) = state.numbers(models, ("aliens-1986",))
    assert word_attention.cut_words(models, READER, (aliens,)) == {(aliens, "genres")}


def test_next_to_nothing_is_not_called_nothing() -> None:
    words = tuple(Word(place, place, "word", name, False) for place, name in enumerate(("title", "genres")))
    weights = np.array([0.993, 0.003])
    found = WordAttention(words, weights[None, None].astype(np.float32))
    parts = word_attention.parts(found, weights, ["a", "b"], ("title", "genres"))
    assert "(99% of its weight)" in (words_of_it := word_attention.sentence("M", found, weights, parts))
    assert "By attribute: title 99% and genres <1%." in words_of_it
    assert "<1% goes to itself" in word_attention.note(found, weights, None, None)


@pytest.mark.parametrize("title", HOSTILE[:2])
def test_hostile_words_and_titles_are_text(title: str) -> None:
    words = (Word(0, 7, title, title, False),)
    found = WordAttention(words, np.ones((1, 1, 1), np.float32))
    parts = word_attention.parts(found, np.ones(1), {7: title}, (title,))
    assert not re.search(r"(?<!\\)[<$]", word_attention.sentence(title, found, np.ones(1), parts))
    table = pd.DataFrame({"attribute": [title], "word": [title], "effect": [1.0], "rank_without": [2.0]})
    assert not re.search(
        r"(?<!\\)[<$]", word_attention.occlusion_sentence(word_attention.OwnWords(1.0, 1.0, table), title)
    )
    for figure in (attention.items(parts), attention.token_ablation(table)):
        assert "<script" not in figure.to_json() and "$\\\\frac" not in figure.to_json()


def test_the_place_stands_before_a_title_from_right_to_left() -> None:
    expected = ["1 · \u2068أفلام\u2069", "next item"]
    called = Names(("1", "next"), ("أفلام", "next item"))
    assert called.hovers() == expected
    assert attention.ticks(called.numbers, called.titles, 20) == expected
    assert attention.hovers(("1", ""), called.titles) == expected


# --- an item's own words


def test_a_rank_that_is_shared_is_not_told_as_another() -> None:
    table = pd.DataFrame({"attribute": ["title"], "word": [""], "effect": [1.0], "rank_without": [3.0]})
    words = word_attention.occlusion_sentence(word_attention.OwnWords(1.0, 2.5, table), "Heat")
    assert "at rank 3 instead of 2.5" in words
    assert attention.token_ablation(table.assign(rank_without=2.5)).data[0].customdata[0][2] == "2.5"
    for without in (2.0, 1_000.0):
        axis = attention.rank_axis(1.5, [without])
        assert ("1.5", np.log10(1.5)) in zip(axis["ticktext"], axis["tickvals"], strict=True)


def test_everything_that_the_catalogue_says_is_left_out_once() -> None:
    item = {"title": "The Thing", "genres": "Horror, Science Fiction", "franchise": "Thing"}
    found = [(one.attribute, one.word, one.text) for one in word_attention.without(item, 8)]
    assert [(attribute, word) for attribute, word, _ in found] == [
        ("title", ""), ("title", "The"), ("title", "Thing"),
        ("genres", ""), ("genres", "Horror"), ("genres", "Science"), ("genres", "Fiction"),
        ("franchise", ""),
    ]  # fmt: skip
    assert found[0][2] == {"genres": "Horror, Science Fiction", "franchise": "Thing"}
    texts = {word: text["genres"] for attribute, word, text in found if attribute == "genres" and word}
    assert texts == {"Horror": "Science Fiction", "Science": "Horror, Fiction", "Fiction": "Horror, Science"}
    assert [one.word for one in word_attention.without({"title": "a b c"}, 2)] == ["a", "b"]  # never the only attribute
    assert list(word_attention.without({"title": "a"}, 8)) == []
    row = {
        "title": " The \x00 Thing",
        "release_year": 1982,
        "genres": ["Horror", None, "Drama"],
        "cast": None,
        "fame": 3,
    }
    found = word_attention.text(row, ("title", "genres", "release year", "cast"))
    assert list(found.items()) == [("title", "The Thing"), ("genres", "Horror, Drama"), ("release year", "1982")]


def test_effects_are_what_the_model_answers(models: Zoo) -> None:
    bundle, history = models.bundles[READER], (5, 77, 300, 900, 12)
    item = int(bundle.recommend_one(history, 1).items[0])
    found = word_attention.measure(models, READER, history, item)
    assert found is not None
    scores = bundle.scores(history)
    assert found.score == pytest.approx(scores[item], abs=1e-3) and found.rank == 1
    row = models.items.slice(item, 1).to_pylist()[0]
    said = {name: row[name] for name in bundle.manifest.text.fields if row[name]}  # type: ignore[union-attr]
    bare = {name: value for name, value in said.items() if name != "genres"}
    (without,) = bundle.score_new(history, [bare])
    line = found.table[(found.table["attribute"] == "genres") & (found.table["word"] == "")].iloc[0]
    assert line["effect"] == pytest.approx(scores[item] - without, abs=1e-3)
    others = np.delete(scores, [*history, item])
    assert line["rank_without"] == 1 + (others > without).sum()
    assert found.table["effect"].abs().max() > 0.1  # words matter to a model that reads nothing else
    longest = max(models.users["history"].to_pylist(), key=len)
    assert not word_attention.read(bundle.word_attention(longest)).all()  # the oldest words lie beyond what it reads
    assert len(word_attention.strongest(found.table, 2)) == (found.table["word"] == "").sum() + 2


def test_where_repeats_count_both_ranks_are_among_the_history_too(models: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, history = models.bundles[READER], (5, 77, 300, 900, 12)
    monkeypatch.setattr(type(bundle), "candidates", lambda self, read: np.ones(len(models), bool))
    item = int(np.argsort(-bundle.scores(history))[40])
    ablated = word_attention.measure(models, READER, history, item)
    assert ablated is not None
    others = np.delete(bundle.scores(history), item)
    scores = ablated.score - ablated.table["effect"].to_numpy()
    ranks = [1 + (others > score).sum() for score in scores]
    assert ablated.table["rank_without"].tolist() == pytest.approx(ranks, abs=1)


def test_a_catalogue_that_says_something_else_is_not_asked(tmp_path: Path) -> None:
    path = make_readers(tmp_path)
    before = Zoo.open(path)
    assert word_attention.measure(before, READER, (5, 77), 9) is not None
    rewrite(path / "items.parquet", title=[f"Another {at}" for at in range(len(before))])
    assert word_attention.measure(Zoo.open(path), READER, (5, 77), 9) is None


# --- the page


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader of hostile words; opened once for all tests of this file."""
    return make_readers(tmp_path_factory.mktemp("exports"), HOSTILE).parent


HISTORY = ["safety-last-1923", "the-kid-1921", "nosferatu-1922"]


def headings(page: AppTest) -> list[str]:
    return [heading.value for heading in page.header]


@pytest.fixture
def opened(exports: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    monkeypatch.setenv("SEQSCOPE_EXPORTS", str(exports))
    usual = {"ds": "sample", "model": READER, "h": "~".join(HISTORY)}
    return lambda **address: run_without_fault(alone("attention", **usual | address))


def test_layer_and_head_are_in_the_address(opened: Open) -> None:
    page = opened(word_layer="1", word_head="2")
    assert headings(page)[:2] == ["What the prediction looked at", "Word by word"]
    assert "layer 1 of 2, head 2 of 2" in told(page) and not page.warning
    page.get_by_key("attention_word_layer_2").set_value("mean").run()
    run_without_fault(page.get_by_key("attention_word_head_2").set_value("mean"))
    assert (page.query_params["word_layer"], page.query_params["word_head"]) == ("mean", "mean")
    assert "the mean over 2 layers, mean over 2 heads" in told(page)
    page.get_by_key("attention_model_sample").set_value("sasrec").run()
    assert "word_layer" not in page.query_params and "word_head" not in page.query_params
    assert "What the prediction looked at" in headings(page) and "Word by word" not in headings(page)


def test_effects_on_the_item_of_the_address_stand_beside_the_weights_that_are_chosen(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.screens.attention import leave_one_out

    drawn: list[Any] = []
    real = leave_one_out.figures.effects
    monkeypatch.setattr(leave_one_out.figures, "effects", lambda *args: (drawn.append(args), real(*args))[1])
    page = opened(item="metropolis-1927", word_layer="1", word_head="1", section="effects")
    assert "raises **Metropolis (1927)** the most" in told(page)
    table, _, split, *_ = drawn[-1]
    models = zoo.open_zoo("sample")
    found = models.bundles[READER].word_attention(state.numbers(models, HISTORY))
    rows = [
        sum(w for word, w in zip(found.words, found.weights[0, 0].tolist(), strict=True) if word.position == at)
        for at in range(3)
    ]
    assert table["weight"].to_numpy() == pytest.approx(rows, abs=1e-6)
    assert np.sum([trace.x for trace in split], axis=0) == pytest.approx(rows, abs=1e-6)
    assert table["log_probability"].notna().all()
    page.query_params["h"] = HISTORY[0]
    assert "Token ablation of the item" in headings(run_without_fault(page)), "one item is enough"
