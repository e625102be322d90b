"""Escaping: what comes from data shows as text. What the browser makes of it is tested in tests/browser/test_compare.py."""

import pytest

from app.text import apart, cell, clean, label, listed, md, ordinal, percent, share_of_all, short, whole_rank, wide
from engine.writing import count


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<script>", "\\<script\\>"),
        ("$5 and $6", "\\$5 and \\$6"),
        (":red[x]", "\\:red\\[x\\]"),
        ("**a** _b_ `c`", "\\*\\*a\\*\\* \\_b\\_ \\`c\\`"),
        ("- item", "\\- item"),
        ("1984. x", "1984\\. x"),
        ("Mission: Impossible", "Mission: Impossible"),
        ("&lt;", "\\&lt;"),
        ("a\\b", "a\\\\b"),
    ],
)
def test_markdown(text: str, escaped: str) -> None:
    assert md(text) == escaped


@pytest.mark.parametrize(
    "text", [":tada:", ":material/home:", "www.a.org", "http://a.org", "a@b.org", "a -> b", "a -- b", "a >= b"]
)
def test_what_streamlit_makes_of_text_after_markdown_is_broken_by_an_invisible_sign(text: str) -> None:
    assert "\u2060" in md(text)
    assert md(text).replace("\u2060", "").replace("\\", "") == text


def test_labels_of_plotly_and_cells_that_a_spreadsheet_would_run() -> None:
    assert label("<b>a & b</b>") == "&lt;b&gt;a &amp; b&lt;/b&gt;"
    assert "$" not in label("$\\href{javascript:x}{y}$")
    for text in ("=1+1", "+1", "-1", "@x", "\tx", "\rx", "  =1", "\ufeff=1", "＝1"):
        assert cell(text) == f"'{text}"
    assert [cell(value) for value in (-1.5, "a=b", None)] == [-1.5, "a=b", None]


def test_one_line_without_control_characters_in_which_right_to_left_is_kept_to_itself() -> None:
    assert clean("a\n b\t\x00\x07c") == "a b c"
    assert clean("\u202eabc\u202c") == "abc"
    assert clean("أفلام") == "\u2068أفلام\u2069"
    shortened = short(clean("أفلام " * 20), 10)
    assert shortened.startswith("\u2068") and shortened.endswith("\u2069") and "…" in shortened


@pytest.mark.parametrize(
    "text", ["Alien (1979)", " a ", "a  b", "a\tb", "", " ", "x" * 20, "x" * 21, "a" + " " * 19, "\x7f~"]
)
def test_plain_titles_take_a_shorter_way_to_the_same(text: str) -> None:
    longer = clean(f"é{text}é", 22)  # a letter of no plain title
    whole = " ".join(f"é{text}é".replace("\x7f", "").split())
    assert longer == (whole if len(whole) <= 22 else f"{whole[:21].rstrip()}…")
    short_way = " ".join(text.replace("\x7f", "").split())
    assert clean(text, 20) == (short_way if len(short_way) <= 20 else f"{short_way[:19].rstrip()}…")


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("e\u0301" * 6, 4, "e\u0301" * 3 + "…"),  # an accent stays on its letter
        ("👨\u200d👩\u200d👧" * 4, 3, "👨\u200d👩\u200d👧" * 2 + "…"),  # a family stays together
        ("🇰🇷" * 4, 3, "🇰🇷" * 2 + "…"),  # so do flags
        ("👍🏽" * 4, 3, "👍🏽" * 2 + "…"),
        ("각" * 4, 3, "각" * 2 + "…"),
        ("하나 둘", 3, "하나…"),
    ],
)
def test_cut_between_characters_as_people_see_them(text: str, limit: int, cut: str) -> None:
    assert short(text, limit) == cut


def test_all_is_what_is_all() -> None:
    shares = (1.0, 0.9997, 0.995, 0.9899, 0.5, 0.0)
    assert [share_of_all(share) for share in shares] == ["100%", "99.97%", "99.5%", "99%", "50%", "0%"]


def test_numbers_in_words() -> None:
    assert [count(1, "item"), count(2_000, "item"), count(2, "person", "people")] == [
        "1 item",
        "2,000 items",
        "2 people",
    ]
    assert [listed(words) for words in (["a", "b", "c"], ["a"], [])] == ["a, b and c", "a", ""]
    assert [percent(share) for share in (1.0, 0.996, 0.35, 0.0181, 0.0061, 0.0)] == [
        "100%", "99.6%", "35%", "1.8%", "0.61%", "<0.01%",
    ]  # fmt: skip
    ordinals = [ordinal(rank) for rank in (1, 2, 3, 4, 11, 12, 22, 111, 1_013, 1_041.0, 1.5)]
    assert ordinals == ["1st", "2nd", "3rd", "4th", "11th", "12th", "22nd", "111th", "1,013th", "1,041st", "tied 1.5"]
    assert [whole_rank(rank) for rank in (1.0, 1.5, 340, 1_712, 1_749.5, 36_001)] == [
        "1", "1.5", "340", "1,712", "1,749.5", "36,001",
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "pixels"), [("LETTER-TIGER", 71), ("Popularity", 52), ("기생충", 36), ("", 0)])
def test_width_is_rather_too_much_than_too_little(text: str, pixels: int) -> None:
    assert pixels <= wide(text) <= 1.2 * pixels  # as a browser measured them at 12 pixels
    assert wide(text, 24) == pytest.approx(2 * wide(text), abs=1)


def test_titles_that_begin_alike_stay_apart() -> None:
    wars = ["Star Wars: Episode IV – A New Hope", "Star Wars: Episode V – The Empire Strikes Back"]
    found = apart([*wars, "Alien", "The Lord of the Rings: The Two Towers"], 20)
    assert found == ["Star … IV – A New H…", "Star … V – The Empi…", "Alien", "The Lord of the Rin…"]
    assert apart(["Star Wars: The Force Awakens", "Star Trek: The Motion Picture"], 20) == [
        "Star Wars: The Forc…", "Star Trek: The Moti…",
    ]  # fmt: skip
    assert apart(["a" * 30 + "b", "a" * 30 + "c"], 12) == ["aaaa … b", "aaaa … c"]
    same = apart(["the same title of two items"] * 2, 12)
    assert same[0] == same[1] == short("the same title of two items", 12)
    longer = apart(["반지의 제왕: 반지 원정대", "반지의 제왕: 반지 원정대 확장판"], 10)
    assert len(set(longer)) == 2
    assert all(len(text) <= 10 for text in longer)
