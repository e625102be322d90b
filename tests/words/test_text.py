import pyarrow as pa
import pytest

from engine.errors import UsageError
from engine.text.attributes import (
    MOST_FIELDS,
    WORDS,
    Field,
    attributes,
    choose_fields,
    fields_elsewhere,
    plain,
    shorten,
    texts,
)

ITEMS = pa.table(
    {
        "item": pa.array([0, 1], pa.int32()),
        "item_id": ["a", "b"],
        "description": ["A long story.", None],
        "fame": pa.array([1, 2], pa.int8()),
        "year": [1999, 2001],
        "categories": [["Beauty", "Hair Care"], []],
        "brand": ["", "Neutrogena"],
        "title": ["Shampoo", "  Soap\tbar\n"],
    }
)


class TestFields:
    def test_fields_in_their_order_or_as_named_with_a_limit(self) -> None:
        columns = [field.column for field in choose_fields(ITEMS.schema)]
        assert columns == ["title", "brand", "categories", "year", "description"]
        assert choose_fields(ITEMS.schema, ["fame", "title:3"]) == (Field("fame"), Field("title", 3))

    @pytest.mark.parametrize("name", ["id", "asin", "parent_asin", "isbn", "URL"])
    def test_what_names_an_item_is_read_where_it_is_asked_for_alone(self, name: str) -> None:
        schema = pa.schema([("title", pa.string()), (name, pa.string())])
        assert choose_fields(schema) == (Field("title"),)
        assert choose_fields(schema, [name]) == (Field(name),)

    @pytest.mark.parametrize(
        ("fields", "says"),
        [
            (["name"], "no column 'name'"),
            (["title:0"], "how many words"),
            (["title:²"], "how many words"),
            (["title", "title"], "each field once"),
        ],
    )
    def test_what_is_no_field_is_refused(self, fields: list[str], says: str) -> None:
        with pytest.raises(UsageError, match=says):
            choose_fields(ITEMS.schema, fields)


class TestTexts:
    def test_one_text_per_item(self) -> None:
        assert texts(ITEMS) == [
            "Shampoo; categories: Beauty, Hair Care; year: 1999; description: A long story.",
            "Soap bar; brand: Neutrogena; year: 2001",
        ]

    def test_keys_and_values(self) -> None:
        assert attributes(ITEMS, ["title", "brand", "categories"]) == [
            [("title", "Shampoo"), ("categories", "Beauty, Hair Care")],
            [("title", "Soap bar"), ("brand", "Neutrogena")],
        ]

    def test_the_key_of_a_column_is_words(self) -> None:
        assert attributes(pa.table({"release_year": ["1999"]})) == [[("release year", "1999")]]

    def test_without_words_a_text_is_empty(self) -> None:
        assert texts(pa.table({"title": ["", None]})) == texts(pa.table({"item": [0, 1]})) == ["", ""]

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, ""),
            (float("nan"), ""),
            (3.0, "3"),
            (True, "yes"),
            (["a", None, ["b"]], "a, b"),
            ({"name": "a", "role": "b"}, "a, b"),
            (b"\x00", ""),
            ("e\u0301\x00x\u200b", "é x\u200b"),
        ],
    )
    def test_values_become_one_line(self, value: object, text: str) -> None:
        assert plain(value) == text

    def test_long_attributes_are_cut_between_words(self) -> None:
        assert shorten("one two three four", 2) == "one two"
        assert shorten("a" * 40 + " " + "b" * 40, 6) == "a" * 40
        assert shorten("保" * 1000, 32) == "保" * 256


@pytest.mark.parametrize(
    ("column", "words"), [("title", WORDS), ("title", 16), ("genre:token_seq", WORDS), ("a:16", 4), (":", 1)]
)
def test_a_column_may_have_colons_in_its_name(column: str, words: int) -> None:
    field = Field(column, words)
    assert Field.read(str(field)) == field == Field.read(str(field), [column])
    assert Field.read(column, [column]) == Field(column)


def test_no_more_columns_are_read_than_a_bundle_lists() -> None:
    schema = pa.schema([(f"fact {number}", pa.string()) for number in range(130)] + [("title", pa.string())])
    chosen = choose_fields(schema)
    assert len(chosen) == MOST_FIELDS == len(fields_elsewhere(schema, (), 130)) and chosen[0].column == "title"
    with pytest.raises(UsageError, match="131 fields are named; at most 100 are read"):
        choose_fields(schema, schema.names)


def test_columns_with_colons_in_their_names_and_titles_that_are_ids() -> None:
    items = pa.table({"genre:token_seq": ["Drama"], "genre": ["War film"], "ratio 1:2": ["wide"]})
    assert texts(items) == ["Drama; genre: War film; ratio 1:2: wide"]
    named = [str(field) for field in choose_fields(items.schema)]
    assert choose_fields(items.schema, named) == choose_fields(items.schema) == fields_elsewhere(items.schema, named, 1)
    assert texts(items, ["genre:1", "genre:token_seq"]) == ["War; genre:token seq: Drama"]
    items = pa.table({"item_id": ["7", "b"], "title": ["7", "Bread"], "brand": ["7", None]})
    assert attributes(items) == [[("brand", "7")], [("title", "Bread")]]
