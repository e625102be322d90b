"""The steps of an upload as a visitor takes them: file, columns, check, use."""

import gzip
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from streamlit.runtime.scriptrunner import StopException
from streamlit.testing.v1 import AppTest

from app import home, work
from app.store.server import open_store
from app.uploads import files, samples
from app.uploads.limits import UploadLimits
from engine.tabular.reading import KINDS, FileKind
from tests import shop
from tests.app.own import ANNA, BEN, Nobody, page, said
from tests.uploads.conftest import ITEMS, LOG, RECBOLE_ITEMS, RECBOLE_LOG, TRANSACTIONS, packed
from tests.waiting import wait

KOREAN = "item_id,title\n1,기생충\n2,올드보이\n3,살인의 추억\n4,봄 여름 가을 겨울\n"


pytestmark = pytest.mark.usefixtures("launcher")


def key(test: AppTest, kind: str, *words: str) -> str:
    """The key of the one widget whose key begins with these words."""
    begin = "_".join(("upload", *words))
    (found,) = [one.key for one in getattr(test, kind) if (one.key or "").startswith(begin)]
    return str(found)


def drop(test: AppTest, what: FileKind, content: bytes, name: str = "my.csv") -> None:
    test.file_uploader(key=key(test, "file_uploader", "file", what)).set_value((name, content, "text/csv")).run()
    assert not test.exception, test.exception


def press(test: AppTest, *words: str) -> None:
    test.button(key=key(test, "button", *words)).click().run()
    assert not test.exception, test.exception


def errors(test: AppTest) -> str:
    return "\n".join(one.value for one in test.error)


def test_from_files_to_a_dataset(root: Path, launcher: Nobody) -> None:
    test = page(root, ANNA)
    drop(test, "catalogue", ITEMS.encode() + b"i9,,Drama\n,nobody,\n", "films <b>.csv")
    assert test.selectbox(key="upload_role_catalogue_item_id_0").value == "item_id" and "7 lines" in said(test)
    drop(test, "log", gzip.compress((LOG + "u1,zzz,1700000300\nu1,i1,never\n").encode()), "log.gz")
    assert test.selectbox(key="upload_role_log_time_0").value == "time" and "packed with gzip" in said(test)
    press(test, "check")
    assert "5 of 6 rows can be used" in said(test) and "13 of 14 rows can be used" in said(test)
    (lines,) = (one.value for one in test.dataframe if "Problem" in one.value.columns)
    assert lines["Line"].tolist() == [7, 15, 6, 14] and lines["Value"].tolist()[1] == "never"
    assert "2 rows are left out: 1 × item without an id (catalogue) and 1 × time" in said(test)
    test.text_input(key="upload_title_0").set_value("My <films>").run()
    assert [b.label for b in test.button if b.key == "upload_use_0"] == ["Use it without the 2 bad rows"]
    press(test, "use")
    (dataset,) = open_store().datasets.of(ANNA)
    assert (dataset.title, dataset.rows_items, dataset.rows_events, dataset.state) == ("My <films>", 6, 13, "checked")
    assert dataset.reading["log"]["gzip"] and dataset.fingerprint
    folder = home.here().dataset(ANNA, dataset.id)
    assert pq.read_table(folder.clean / "items.parquet")["title"].to_pylist()[-1] == "i9"
    assert (folder.path / "findings.parquet").is_file()
    jobs = {job.row.id: job.row.kind for job in work.of(ANNA, dataset.id)}
    assert sorted(jobs.values()) == ["baselines", "prepare"]
    wait(lambda: launcher.started and launcher.started[0] in jobs)
    assert not open_store().datasets.of(BEN)
    # another one begins anew
    assert test.file_uploader(key="upload_file_catalogue_0_1") is not None and "My" in test.subheader[0].value


def test_an_encoding_is_shown_and_changed(root: Path) -> None:
    test = page(root, ANNA)
    drop(test, "catalogue", KOREAN.encode("cp949"))
    box = test.selectbox(key="upload_choice_catalogue_encoding_0")
    assert box.value == "cp949" and "CP949 (Korean)" in box.options
    assert "기생충" in test.selectbox(key="upload_role_catalogue_title_0").options[2]
    box.select("cp1252").run()
    assert "기생충" not in test.selectbox(key="upload_role_catalogue_title_0").options[2]
    assert "You chose it" in said(test)
    test.selectbox(key="upload_choice_catalogue_encoding_0").select("utf-8").run()
    press(test, "check")
    assert "4 rows cannot be used" in said(test) and "no row that can be used is left" in errors(test)
    assert not [one for one in test.button if (one.key or "").startswith("upload_use")]


def test_columns_are_mapped_and_the_same_one_is_never_two(root: Path) -> None:
    test = page(root, ANNA)
    drop(test, "catalogue", b"a,b,c\nx1,Some title,Another\nx2,Two words,Third\n")
    first = test.selectbox(key="upload_role_catalogue_item_id_0")
    second = test.selectbox(key="upload_role_catalogue_title_0")
    assert (first.value, second.value) == ("a", "b") and "Some title, Two words" in second.options[2]
    second.select("a").run()  # they change places
    roles = (test.selectbox(key=f"upload_role_catalogue_{role}_0").value for role in ("item_id", "title"))
    assert tuple(roles) == ("b", "a")
    test.selectbox(key="upload_role_catalogue_item_id_0").select("").run()
    assert "Choose the column that holds the item id" in test.warning[0].value
    assert test.button(key="upload_check_0").disabled
    test.selectbox(key="upload_role_catalogue_item_id_0").select("a").run()
    test.selectbox(key="upload_role_catalogue_title_0").select("b").run()
    test.multiselect(key="upload_attributes_catalogue_0").set_value([]).run()
    press(test, "check")
    press(test, "use")
    (dataset,) = open_store().datasets.of(ANNA)
    table = pq.read_table(home.here().dataset(ANNA, dataset.id).clean / "items.parquet")
    assert table.column_names == ["item_id", "title"] and table["title"].to_pylist() == ["Some title", "Two words"]


def test_columns_of_like_names_and_values_are_told_apart(root: Path) -> None:
    """Streamlit takes the last of those that a list calls the same."""
    test = page(root, ANNA)
    begin = "Which of these do you have or have ever had at home"
    drop(
        test,
        "catalogue",
        f"item_id,title,{begin}: a car,{begin}: a bicycle\nx1,Some title,yes,yes\nx2,Two words,no,no\n".encode(),
    )
    attributes = test.multiselect(key="upload_attributes_catalogue_0")
    for options in (attributes.options, test.selectbox(key="upload_role_catalogue_title_0").options):
        assert len(options) == len(set(options))


def test_columns_that_only_their_values_tell_are_named(root: Path) -> None:
    test = page(root, ANNA)
    rows = "".join(f"c{row % 3},SKU-{row % 5},2025-0{1 + row % 9}-02 10:00:00\n" for row in range(40))
    drop(test, "log", f"customer,article,when\n{rows}".encode())
    assert not test.exception and "Guessed from values: “when” is the time. Please check." in said(test)
    test.selectbox(key="upload_role_log_time_0").select("").run()
    assert "Guessed from values" not in said(test)  # it is the visitor's own choice now
    test = page(root, BEN)
    drop(test, "catalogue", b"3,Small wooden boat\n1,Tin robot\n2,Large plush bear\n")
    assert "“column 1” is the item id and “column 2” is the title. Please check." in said(test)


def test_the_time_column_is_looked_at_when_it_is_chosen(root: Path) -> None:
    test = page(root, ANNA)
    drop(test, "log", LOG.replace("time", "when", 1).encode())
    assert test.selectbox(key="upload_role_log_time_0").value == "when"  # told by its values
    test.selectbox(key="upload_role_log_time_0").select("").run()
    test.selectbox(key="upload_role_log_time_0").select("when").run()
    assert test.selectbox(key="upload_choice_log_time_0").value == "s"
    test.selectbox(key="upload_choice_log_time_0").select("pattern").run()
    test.text_input(key="upload_pattern_log_0").set_value("'; drop").run()
    assert "no pattern of times" in errors(test)
    press(test, "check")
    assert "Nothing is wrong" in test.success[0].value


def test_the_time_of_day_has_a_column_of_its_own_or_none(root: Path) -> None:
    test = page(root, ANNA)
    rows = "".join(f"u{n % 5},i{n % 7},{13 + n % 9}.02.2026,{n % 24:02d}:05\n" for n in range(40))
    drop(test, "log", f"user,item,date,time\n{rows}".encode())
    assert test.selectbox(key="upload_role_log_clock_0").value == "time" and "“time” is the time of day" in said(test)
    assert test.selectbox(key="upload_choice_log_time_0").value == "%d.%m.%Y %H:%M"
    test.selectbox(key="upload_role_log_clock_0").select("").run()
    assert test.selectbox(key="upload_choice_log_time_0").value == "%d.%m.%Y"
    test.selectbox(key="upload_role_log_clock_0").select("time").run()
    assert test.selectbox(key="upload_choice_log_time_0").value == "%d.%m.%Y %H:%M"
    test.selectbox(key="upload_role_log_time_0").select("").run()
    assert test.selectbox(key="upload_role_log_clock_0").value == "" and not test.warning


def test_another_file_is_taken_for_one_that_cannot_be_read_and_a_catalogue_goes_on_without_a_log_that_stops(
    root: Path,
) -> None:
    test = page(root, ANNA)
    drop(test, "catalogue", b"%PDF-1.7")
    assert "a PDF" in errors(test)
    drop(test, "log", b"user,item,time\nu,i1,1700000000\nu,i2,1700000001\nu,i3,1700000002\n")
    assert test.button(key="upload_check_0").disabled  # the file that failed is not passed over
    press(test, "other", "catalogue")
    assert not test.error
    drop(test, "catalogue", ITEMS.encode())
    assert not test.error
    press(test, "check")
    assert "the whole log belongs to one user" in errors(test)
    press(test, "alone")
    press(test, "use")
    (dataset,) = open_store().datasets.of(ANNA)
    assert (dataset.rows_items, dataset.rows_events) == (4, 0)


def test_one_file_of_transactions_with_titles_is_enough(root: Path) -> None:
    test = page(root, ANNA)
    drop(test, "catalogue", TRANSACTIONS.encode(), "sales.csv")  # at the wrong place
    assert "read as one" in said(test) and "made of the log" in said(test)
    assert test.selectbox(key="upload_role_log_title_0").value == "what it is"
    press(test, "check")
    press(test, "use")
    (dataset,) = open_store().datasets.of(ANNA)
    assert (dataset.title, dataset.rows_items, dataset.rows_events) == ("sales", 5, 20)  # named after its file
    table = pq.read_table(home.here().dataset(ANNA, dataset.id).clean / "items.parquet")
    assert table["title"].to_pylist()[0] == "Thing number 0" and "kind" in table.column_names
    assert work.has_words(ANNA, dataset.id)


def test_of_a_log_of_ids_nothing_is_prepared_that_reads_texts(root: Path) -> None:
    test = page(root, ANNA)
    drop(test, "log", LOG.encode())
    press(test, "check")
    press(test, "use")
    (dataset,) = open_store().datasets.of(ANNA)
    assert [job.row.kind for job in work.of(ANNA, dataset.id)] == ["baselines"]
    assert not work.has_words(ANNA, dataset.id)


def test_that_no_rating_is_too_low_is_said_and_not_asked(root: Path) -> None:
    test = page(root, ANNA)
    rows = [f"u{u},i{n},{1 + (u + n) % 5}.5,{1_700_000_000 + n}\n" for u in range(4) for n in range(5)]
    drop(test, "log", ("user,item,rating,time\n" + "".join(rows)).encode())
    press(test, "check")
    lowest = test.selectbox(key=key(test, "selectbox", "offer", "min_rating"))
    assert lowest.value is None and lowest.placeholder == "none"


def test_a_file_that_was_moved_stays_where_it_is_put_again(root: Path) -> None:
    test = page(root, ANNA)
    rows = b"id,name,day\n" + b"".join(b"%d,Ann %d,2024-03-0%d\n" % (n, n, n) for n in range(1, 9))
    drop(test, "log", rows)
    assert "Is it a log?" in said(test) and test.selectbox(key="upload_role_catalogue_item_id_0").value == "id"
    press(test, "other", "catalogue")
    drop(test, "log", rows)
    assert test.selectbox(key="upload_role_log_time_0").value == "day"
    assert "Its columns are those of a catalogue. A log has one event per row" in said(test)


def test_a_zip_brings_both(root: Path) -> None:
    test = page(root, ANNA)
    content = packed({"data/ml.item": RECBOLE_ITEMS, "data/ml.inter": RECBOLE_LOG, "README.md": "Read me"})
    drop(test, "catalogue", content, "ml.zip")
    assert test.selectbox(key="upload_role_log_time_0").value == "timestamp:float"
    assert test.selectbox(key="upload_role_catalogue_title_0").value == "movie_title:token_seq"
    assert "From ml.zip; not used: " in said(test).replace("\\", "")
    press(test, "check")
    assert "20 of 20 rows can be used" in said(test) and "5 of 5 rows can be used" in said(test)


def test_pasted_text_is_checked_again_after_a_change_and_starting_over_leaves_nothing_of_it(root: Path) -> None:
    test = page(root, ANNA)
    test.text_area(key=key(test, "text_area", "paste", "catalogue")).set_value(ITEMS).run()
    press(test, "pasted", "catalogue")
    assert "Pasted text" in said(test) and test.selectbox(key="upload_role_catalogue_title_0").value == "title"
    press(test, "check")
    assert test.button(key="upload_use_0")
    test.multiselect(key="upload_attributes_catalogue_0").set_value([]).run()
    assert "upload_use_0" not in [one.key for one in test.button] and test.button(key="upload_check_0")
    folder = test.session_state["upload_draft"].folder
    press(test, "discard")
    assert not folder.exists() and test.file_uploader(key="upload_file_catalogue_0_1")


def test_what_was_checked_anew_after_a_refusal_is_what_is_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = page(root, ANNA)
    drop(test, "catalogue", ITEMS.encode())
    press(test, "check")
    with monkeypatch.context() as patch:
        patch.setenv("SEQSCOPE_QUOTA_DATASETS", "0")
        press(test, "use")
        assert "at most 0 can be kept" in errors(test)
    test.multiselect(key="upload_attributes_catalogue_0").set_value([]).run()
    press(test, "check")
    press(test, "use")
    (dataset,) = open_store().datasets.of(ANNA)
    clean = home.here().dataset(ANNA, dataset.id).clean / "items.parquet"
    assert pq.read_schema(clean).names == ["item_id", "title"]


def test_a_check_that_a_lost_connection_ends_begins_anew_and_a_cancelled_one_does_not(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = page(root, ANNA)
    drop(test, "catalogue", ITEMS.encode())

    def lost(*_: object, **__: object) -> None:
        raise StopException

    with monkeypatch.context() as offline:
        offline.setattr(files, "check", lost)
        press(test, "check")
        press(test, "cancel")
        press(test, "check")
    test.run()
    assert "4 of 4 rows can be used" in said(test)


def test_an_owner_without_room_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_DATASETS", "0")
    test = page(root, ANNA)
    assert "at most 0 can be kept" in test.warning[0].value and not test.file_uploader


def test_hostile_names_and_values_show_as_text(root: Path) -> None:
    evil = "<script>alert(1)</script>"
    test = page(root, ANNA)
    drop(test, "catalogue", f"item_id,{evil} **x** :tada:\n{evil},$x$\n=1+1,b\n,c\n".encode(), f"{evil}.csv")
    test.selectbox(key="upload_role_catalogue_title_0").select(f"{evil} **x** :tada:").run()
    press(test, "check")
    shown = said(test)
    assert "<script>" not in shown.replace("\\<script\\>", "") and "**x**" not in shown.replace("\\*\\*x\\*\\*", "")


def test_templates_are_read_without_a_doubt_and_the_samples_can_be_used(root: Path, tmp_path: Path) -> None:
    limits = UploadLimits()
    for what in KINDS:
        files.keep(tmp_path, what, samples.template(what), limits)
        assert not [choice for choice in files.guess(tmp_path, what, limits).choices if choice.sure == "unsure"]
    test = page(root, ANNA)
    for what in KINDS:
        drop(test, what, samples.sample(what))
    press(test, "check")
    text = said(test)
    for words in ("conflicting values", "too many fields", "cannot be read", "without a user", "column of numbers"):
        assert words in text
    press(test, "use")
    (dataset,) = open_store().datasets.of(ANNA)
    assert dataset.rows_items == 122 and dataset.rows_events > 1_000
    assert ":violet-badge[:material/new_releases: New]" in said(test)  # its card is marked
    assert "New]" not in said(page(root, ANNA))  # but not in a session that comes later


def test_what_a_shop_s_held_out_items_are_is_counted_anew_with_every_choice(root: Path) -> None:
    test = page(root, ANNA)
    drop(test, "log", shop.log(60).encode())
    press(test, "check")
    assert "8 (13%) have a negative quantity" in said(test).replace("\\", "")
    offer = key(test, "checkbox", "offer", "drop_negative")
    test.checkbox(key=offer).check().run()
    assert "0 (0%) have a negative quantity" in said(test).replace("\\", "") and test.checkbox(key=offer).value
    assert "8 × event of a negative quantity" in said(test).split("**Not used**")[1]
    assert "**Used, with warnings**" not in said(test)


def test_what_is_not_finished_counts_towards_what_its_owner_may_have(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQSCOPE_QUOTA_BYTES", str(len(ITEMS) + 2_000))
    test = page(root, ANNA)
    drop(test, "catalogue", ITEMS.encode())
    assert not errors(test) and open_store().quota.usage(ANNA).bytes >= len(ITEMS)
    drop(test, "log", LOG.encode() * 40)
    assert "of your" in errors(test) and "are taken" in errors(test)
