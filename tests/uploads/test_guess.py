"""What a file is taken for: encoding, delimiter, quotes, header, columns, times; and how sure that is."""

import gzip
import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.screens.your_data.upload_words import called
from engine.errors import Refused
from engine.tabular.reading import FileKind, Guess
from tests import shop
from tests.uploads.conftest import ITEMS, LOG, RECBOLE_ITEMS, RECBOLE_LOG, TRANSACTIONS, Desk, counts

KOREAN = "item_id,title,category\n1,기생충,영화\n2,올드보이,영화\n3,살인의 추억,스릴러\n4,봄 여름 가을 겨울 그리고 봄,드라마\n"
JAPANESE = (
    "item_id,title,category\n1,千と千尋の神隠し,映画\n2,七人の侍,時代劇\n3,となりのトトロ,アニメ\n4,ドラえもん,アニメ\n"
)
FRENCH = "id;titre;prix\n1;Les Misérables;12,50\n2;Amélie Poulain;9,99\n3;L’Été meurtrier – édition spéciale;20\n4;Garçon;5\n"
CHINESE = "id,title\n1,卧虎藏龙\n2,霸王别姬\n3,无间道之终极无间\n4,大话西游之月光宝盒\n"
RUSSIAN = "id,title\n1,Сталкер\n2,Солярис\n3,Зеркало\n4,Иваново детство\n"


def value(guess: Guess, about: str) -> str:
    choice = guess.choice(about)
    assert choice is not None and choice.why
    return choice.value


def roles(guess: Guess) -> dict[str, str]:
    return {column.name: column.role for column in guess.reading.columns}


@pytest.mark.parametrize(
    ("text", "codec", "found", "sure"),
    [
        (KOREAN, "utf-8-sig", "utf-8", "certain"),
        (KOREAN, "utf-16", "utf-16", "certain"),
        (KOREAN, "utf-16-le", "utf-16-le", "likely"),
        (FRENCH, "utf-16-be", "utf-16-be", "likely"),
        (KOREAN, "cp949", "cp949", "likely"),
        (JAPANESE, "cp932", "cp932", "likely"),
        (JAPANESE, "euc-jp", "euc-jp", "likely"),
        (FRENCH, "cp1252", "cp1252", "likely"),
        (CHINESE, "gb18030", "gb18030", "likely"),
        (RUSSIAN, "cp1251", "cp1251", "likely"),
        (ITEMS, "ascii", "utf-8", "certain"),
    ],
)
def test_encodings(desk: Desk, text: str, codec: str, found: str, sure: str) -> None:
    guess = desk.guess(text.encode(codec))
    choice = guess.choice("encoding")
    assert choice is not None and (choice.value, choice.sure) == (found, sure)
    desk.check()
    title = "titre" if text is FRENCH else "title"
    column = text.split("\n", maxsplit=1)[0].replace(";", ",").split(",").index(title)
    wanted = [line.replace(";", ",").split(",")[column] for line in text.strip().split("\n")[1:]]
    assert [item["title"] for item in desk.items()] == wanted


def test_a_fixed_encoding_is_taken_and_what_each_would_read_is_shown(desk: Desk) -> None:
    guess = desk.guess(KOREAN.encode("cp949"))
    assert "기생충" in guess.foreign["cp949"][0] or "영화" in guess.foreign["cp949"][0]
    assert all(len(lines) == len(guess.foreign["cp949"]) for lines in guess.foreign.values()) and len(guess.foreign) > 3
    assert not desk.guess(KOREAN).foreign
    guess = desk.guess(FRENCH.encode("cp1252"), fixed={"encoding": "latin-1"})
    choice = guess.choice("encoding")
    assert guess.reading.encoding == "latin-1" and choice is not None and choice.why == "You chose it."
    assert desk.guess(FRENCH, fixed={"encoding": "rot13"}).reading.encoding == "utf-8"  # not one that may be chosen


# --- delimiter, quotes, header


@pytest.mark.parametrize("sign", [";", "|", "::", "^", "\x01"])
def test_delimiters(desk: Desk, sign: str) -> None:
    guess = desk.guess(
        "item_id,title,brand\n1,A film: part one,B & Co\n2,Another,C\n3,Third one,D\n".replace(",", sign)
    )
    assert value(guess, "delimiter") == sign.replace("\x01", "␁") and len(guess.reading.columns) == 3


def test_delimiters_that_titles_hold_too_and_one_column_is_said_with_what_it_may_be(desk: Desk) -> None:
    rows = "".join(f"{n}\tTitle, {'The, ' * (n % 4)}end\t{n}\n" for n in range(1, 30))
    assert value(desk.guess("id\ttitle\tprice\n" + rows), "delimiter") == "\t"
    guess = desk.guess("item_id;title\n1;a\n2;b\n", fixed={"delimiter": ","})
    assert "Couldn't find columns" in guess.stop and "semicolon" in guess.stop and guess.head[0] == "item_id;title"
    assert "Couldn't find columns" in desk.guess("abc\ndef\nghi\n").stop
    assert "Couldn't find columns" in desk.guess("item_id\n1\n2\n", "log").stop


def test_a_catalogue_may_have_no_titles(desk: Desk) -> None:
    guess = desk.guess("sku,type\n1,hat\n2,shirt\n3,hat\n")
    choice = guess.choice("columns")
    assert roles(guess) == {"sku": "item_id", "type": "text"} and not guess.reading.faults("catalogue")
    assert choice is not None and choice.sure == "unsure" and "title" in choice.why
    assert counts(desk.check()) == {"title_missing": 3}
    assert desk.items()[1] == {"item_id": "2", "title": "2", "type": "shirt"}
    assert roles(desk.guess("sku,note\n1,hat\n2,shirt\n"))["note"] == "title"  # by its values
    desk.check("item_id\n1\n2\n")
    assert desk.items() == [{"item_id": "1", "title": "1"}, {"item_id": "2", "title": "2"}]


def test_of_many_lines_all_but_a_few_are_not_all(desk: Desk) -> None:
    rows = [f"K{n % 20};A{n % 30};{n % 28 + 1:02d}.05.2023 10:00" for n in range(300)]
    rows[7], rows[9] = "K1;A2", "K1;A2;yesterday"
    guess = desk.guess("\n".join(["Kunde;Artikel;Datum", *rows]), "log")
    for about in ("delimiter", "time"):
        choice = guess.choice(about)
        assert choice is not None and "99% of the" in choice.why, choice


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('u8,"open,3', "all lines looked at have 3 fields, but for those whose quotes are not in order."),
        ('u8,"open\nline",3', "all lines looked at have 3 fields."),
        ("u8,a8,3", "all lines looked at have 3 fields."),
    ],
)
def test_lines_after_an_open_quote_are_not_among_all(desk: Desk, line: str, words: str) -> None:
    rows = [f"u{n},a{n % 30},{1_700_000_000 + n}" for n in range(300)]
    guess = desk.guess("\n".join(["user,item,time", *rows[:290], line, rows[0]]), "log")
    choice = guess.choice("delimiter")
    assert choice is not None and words in choice.why, choice


def test_tabs_between_fields_that_all_have_a_blank(desk: Desk) -> None:
    rows = [f"u{u}\ti{i}\t2019-11-{10 + i} 09:{10 + u}:58\n" for u in range(3) for i in range(1, 5)]
    guessed = desk.guess("".join(rows), "log")
    assert value(guessed, "delimiter") == "\t" and len(guessed.reading.columns) == 3


def test_quotes_and_row_names_as_r_writes_them(desk: Desk) -> None:
    assert value(desk.guess('id,title\n1,"a, b"\n2,"c"\n'), "quote") == '"'
    assert value(desk.guess("id,title\n1,'a, b'\n2,'c'\n3,'d'\n"), "quote") == "'"
    stray = "id\ttitle\n" + "".join(f'{n}\t"Weird Al" number {n}\n' for n in range(30))
    assert value(desk.guess(stray), "quote") == ""
    assert value(desk.guess(ITEMS), "quote") == '"'
    guess = desk.guess('"id","title"\n"1",17,"Heat"\n"2",18,"Alien"\n"3",19,"Brazil"\n')
    assert [column.name for column in guess.reading.columns] == ["column 1", "id", "title"]
    desk.check()
    assert [item["item_id"] for item in desk.items()] == ["17", "18", "19"]


def test_rows_that_end_with_a_delimiter_and_the_first_line_of_excel(desk: Desk) -> None:
    guess = desk.guess("user,item,time\nu,a,1700000000,\nu,b,1700000001,\n", "log")
    assert [column.name for column in guess.reading.columns] == ["user", "item", "time", "column 4"]
    guess = desk.guess("sep=;\r\nuser;item;time\r\nu;a;1700000000\r\nu;b\r\n", "log")
    assert [column.name for column in guess.reading.columns] == ["user", "item", "time"]
    assert [finding.line for finding in desk.check().first if finding.problem == "few_fields"] == [4]


def test_blanks_around_quotes(desk: Desk) -> None:
    desk.guess('id, title, note\n1, "a, b" ,"x\ny"\n2, "c ""d""", e\n3,"e",  f "g"\n')
    checked = desk.check()
    assert [item["title"] for item in desk.items()] == ["a, b", 'c "d"', "e"] and not checked.bad_rows
    assert [item["note"] for item in desk.items()] == ["x y", "e", 'f "g"']


@pytest.mark.parametrize(
    ("text", "header", "sure"),
    [
        (ITEMS, "yes", "certain"),
        ("1,Toy Story,1995\n2,Jumanji,1995\n", "no", "certain"),
        ("a1,Toy Story\nb2,Jumanji\nc3,Heat\n", "yes", "unsure"),
        ("kennung,was,jahr\n1,Toy Story,1995\n2,Jumanji,1995\n", "yes", "likely"),
        ("u1,,x\nu2,b,y\n", "no", "likely"),
        ("u1,a1,2024-01-05 10:00:00\nu2,b2,2024-01-05 10:01:00\n", "no", "certain"),
        ("item_id,title,title,,2019\n1,a,b,c,3\n2,d,e,f,4\n", "yes", "likely"),
    ],
)
def test_header(desk: Desk, text: str, header: str, sure: str) -> None:
    choice = desk.guess(text).choice("header")
    assert choice is not None and (choice.value, choice.sure) == (header, sure)


def test_a_header_can_be_turned_round_and_one_that_cannot_be_read_helped(desk: Desk) -> None:
    text = 'id,"title\n' + "".join(f"{n},film {n}\n" for n in range(600))
    assert "its quotes are not in order" in desk.guess(text, fixed={"quote": chr(34)}).stop
    assert "quote is never closed" in desk.guess('item_id,title,genre\n1,"Heat,Crime\n2,Alien,"Sci-Fi\n3\n').stop
    assert "no row below the header" in desk.guess("item_id,title,genre\n").stop
    guess = desk.guess(text, fixed={"quote": ""})
    assert not guess.stop and guess.reading.columns[1].name == '"title'
    guess = desk.guess("id,title\n1,a\n2,b\n", fixed={"header": "no"})
    assert not guess.reading.header and [c.name for c in guess.reading.columns] == ["column 1", "column 2"]


# --- columns


def test_columns_by_name_or_by_their_values(desk: Desk) -> None:
    guess = desk.guess(
        "price,Item ID,Product Title,Genres,brand\n" + "".join(f"{n}.5,{n},T {n},a|b,X\n" for n in range(9))
    )
    assert roles(guess) == {
        "price": "text", "Item ID": "item_id", "Product Title": "title", "Genres": "list", "brand": "text",
    }  # fmt: skip
    assert guess.seen[2].samples == ("T 0", "T 1", "T 2") and guess.seen[4].samples == ("X",)
    choice = guess.choice("columns")
    assert choice is not None and choice.sure == "likely"
    guess = desk.guess("".join(f"{n},The film number {n} of all,{1990 + n % 5},http://x.org/{n},\n" for n in range(40)))
    assert list(roles(guess).values()) == ["item_id", "title", "text", "skip", "skip"]
    choice = guess.choice("columns")
    assert choice is not None and choice.sure == "unsure" and "values" in choice.why


def test_columns_of_a_log_even_without_users(desk: Desk) -> None:
    assert roles(desk.guess(LOG, "log")) == {"user": "user", "item": "item", "time": "time"}
    named = desk.guess("reviewerID,asin,overall,unixReviewTime,x\n" + "a,b,5,1400000000,q\nc,d,4,1400000100,q\n", "log")
    assert list(roles(named).values()) == ["user", "item", "weight", "time", "skip"]
    visits = desk.guess("time,place,location,who\n2024-01-01,b,north,u\n2024-01-02,c,south,v\n", "log")
    assert roles(visits) == {"time": "time", "place": "item", "location": "skip", "who": "user"}
    bare = desk.guess("".join(f"{n % 7}\t{n % 11}\t{1 + n % 5}\t{1_500_000_000 + n}\n" for n in range(60)), "log")
    assert list(roles(bare).values()) == ["user", "item", "weight", "time"]
    guess = desk.guess("place,time\na,2024-01-01\nb,2024-01-02\n", "log")
    choice = guess.choice("columns")
    assert roles(guess) == {"place": "item", "time": "time"} and choice is not None and choice.sure == "unsure"


def test_flags_of_a_header_become_one_list(desk: Desk) -> None:
    rows = "".join(f"{n},Film {n},{n % 2},{n % 3 // 2},{n // 4}\n" for n in range(1, 8))
    guess = desk.guess("id,title,Drama,Comedy,War\n" + rows)
    assert list(roles(guess).values())[2:] == ["flag", "flag", "flag"]
    desk.check()
    assert desk.items()[4] == {"item_id": "5", "title": "Film 5", "tags": ["Drama", "Comedy", "War"]}


def test_a_role_that_the_visitor_chose_is_kept(desk: Desk) -> None:
    guess = desk.guess("a,b,c\n1,x y,q\n2,z w,r\n", fixed={"role:c": "title", "role:b": "skip", "role:a": "item_id"})
    assert roles(guess) == {"a": "item_id", "b": "skip", "c": "title"}
    reading = guess.reading.with_role("b", "title")
    assert [column.role for column in reading.columns] == ["item_id", "title", "text"]
    assert not reading.faults("catalogue")
    (fault,) = reading.with_role("a", "skip").faults("catalogue")
    (both,) = reading.faults("log")[:1]
    assert "item id" in fault and "the user and the item" in both


# --- times


@pytest.mark.parametrize(
    ("times", "found", "sure", "first"),
    [
        (["1700000000", "1700000100"], "s", "certain", 1_700_000_000),
        (["1700000000123", "1700000100000"], "ms", "certain", 1_700_000_000),
        (["1700000000123456789"], "ns", "certain", 1_700_000_000),
        (["2023-11-14", "2023-12-01"], "iso", "certain", 1_699_920_000),
        (["2023-11-14T22:13:20+01:00", "2023-12-01T00:00:00Z"], "iso", "certain", 1_699_996_400),
        (["14/11/2023 22:13", "01/12/2023 08:00"], "%d/%m/%Y %H:%M", "likely", 1_700_000_000 - 20),
        (["11/14/2023", "12/01/2023"], "%m/%d/%Y", "likely", 1_699_920_000),
        (["01/02/2023", "03/04/2023"], "%d/%m/%Y", "unsure", 1_675_209_600),
        (["14-Nov-2023", "01-Dec-2023"], "%d-%b-%Y", "likely", 1_699_920_000),
        (["14-NOV-23", "01-DEC-23"], "%d-%b-%y", "likely", 1_699_920_000),
        (["2023년 11월 14일", "2023년 12월 1일"], "%Y년 %m월 %d일", "likely", 1_699_920_000),
        (
            ["Tue, 14 Nov 2023 22:13:20 GMT", "Fri, 01 Dec 2023 08:00:00 GMT"],
            "%a, %d %b %Y %H:%M:%S GMT",
            "likely",
            1_700_000_000,
        ),
        (["20231114", "20231201"], "%Y%m%d", "likely", 1_699_920_000),
        (["1", "2", "3"], "s", "unsure", 1),
    ],
)
def test_times(desk: Desk, times: list[str], found: str, sure: str, first: int) -> None:
    rows = [f"u{n % 2}\t{i}\t{time}\n" for n, time in enumerate(times * 4) for i in "abc"]
    guess = desk.guess("user\titem\ttime\n" + "".join(rows), "log")
    choice = guess.choice("time")
    assert choice is not None and (choice.value, choice.sure) == (found, sure), choice
    checked = desk.check()
    assert "time_unreadable" not in {count.problem for count in checked.counts}
    assert int(desk.log()[0]["time"]) == first


def test_a_swapped_day_and_month_is_offered(desk: Desk) -> None:
    guess = desk.guess("user,item,date\nu,a,01/02/2023\nu,b,03/04/2023\n", "log")
    choice = guess.choice("time")
    assert choice is not None and choice.others[0] == "%m/%d/%Y"
    assert called("time", choice.others[0]) == "09/12/2024 = 12 September 2024"
    assert desk.guess("user,item,date\nu,a,01/02/2023\n", "log", {"time": "%m/%d/%Y"}).reading.time == "%m/%d/%Y"
    with pytest.raises(Refused, match="no format of times"):
        desk.guess("user,item,date\nu,a,01/02/2023\n", "log", {"time": "'); DROP TABLE rows; --"})


def test_a_log_of_a_shop_is_read_for_what_it_is(desk: Desk) -> None:
    guess = desk.guess(shop.log(), "log")
    assert {role: name for name, role in roles(guess).items() if role != "skip"} == {
        "item": "StockCode", "quantity": "Quantity", "time": "InvoiceDate", "user": "CustomerID", "title": "Description",
    }  # fmt: skip
    # the first 2,000 lines are of the first days of December, or of the first of each month
    assert guess.reading.time == "%m/%d/%Y %H:%M"


def test_an_item_that_comes_in_bursts_is_an_order_and_what_parses_as_time_is_time(desk: Desk) -> None:
    guess = desk.guess(TRANSACTIONS, "log")
    assert roles(guess) == {
        "bill": "skip", "buyer": "user", "sku": "item", "what it is": "title", "kind": "text", "moment": "time",
    }  # fmt: skip
    weak = desk.guess(TRANSACTIONS.replace("bill,", "id,", 1).replace("sku", "what", 1), "log")
    assert roles(weak)["id"] == "skip" and roles(weak)["what"] == "item"
    swapped = desk.guess(TRANSACTIONS.replace("moment", "day", 1).replace("kind", "time", 1), "log")
    assert roles(swapped)["day"] == "time" and roles(swapped)["time"] == "text"


def numbered(row: str, rows: int) -> str:
    """So many lines of a log. In `row`, {n} is the number of the line, {n7} its rest by 7, {half} has every number twice, {ninth}
    nine times, {mixed} those below nine in another order, {t} is a time."""
    return "".join(
        row.format(
            n=n, n5=n % 5, n7=n % 7, n9=n % 9, month=n % 28 + 1, half=n // 2, ninth=n // 9, mixed=n * 7 % 9, t=1_700_000_000 + n
        ) + "\n"
        for n in range(rows)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        # who rates is no title
        ("user_id,name,item_id,time", "u{n9},Person {n9},i{n7},{t}", {"name": "skip"}),
        # an id that never comes again is an event
        ("id,user,product_name,created", "ch_{n},u{n9},Course {n7},{t}", {"product_name": "item"}),
        ("Beleg,Firma,Ware,Wann", "No {n},Firm {n9},Nail {n7},{t}", {"Beleg": "skip", "Firma": "user", "Ware": "item"}),
        # ids that are left empty are none
        ("Name,Email,Status,Lineitem name,Lineitem sku,Created at", "#{half},a{n9}@x.org,paid,Shirt {n7},,{t}",
         {"Name": "skip", "Email": "user", "Lineitem name": "item", "Lineitem sku": "skip"}),
        ("Item Name,Buyer,Order ID,Listing ID,SKU,Sale", "Ring {n7},Jane {n9},{n},90{n7},,{t}",
         {"Item Name": "title", "Listing ID": "item", "SKU": "skip"}),
        # an export of orders is a log though their number is unique
        ("Name,Email,Lineitem name,Lineitem sku,Created at,Id", "#{half},a{n9}@x.org,Shirt {n7},S{n7},{t},4{n}",
         {"Name": "skip", "Email": "user", "Lineitem name": "title", "Lineitem sku": "item", "Created at": "time", "Id": "skip"}),
        # the day of a month is no time
        ("user,item,day,month,year", "u{n5},i{n7},{month},{n9},2024", {"day": "skip", "month": "skip", "year": "skip"}),
        # what holds no numbers is no rating
        ("user,item,rating,quantity,time", "u{n5},i{n7},PG-13,,{t}", {"rating": "skip", "quantity": "skip"}),
        ("user,item,rating,time", "u{n5},i{n7},4.5,{t}", {"rating": "weight"}),
        # neither names of users nor numbers of events are ids
        ("username,track name of album,uri,ts", "u{n9},The song {n7},spotify:track:{n7},{t}",
         {"track name of album": "title", "uri": "item"}),
        ("lodging,review,reviewer_id,reviewer_name,time", "{ninth},{n},{mixed},Ann {mixed},{t}",
         {"lodging": "item", "review": "skip", "reviewer_id": "user", "reviewer_name": "skip", "time": "time"}),
        # an accent may be a character of its own, as on a Mac
        ("user,item,time,quantite\u0301", "u{n5},i{n7},{t},{n9}", {"quantite\u0301": "quantity"}),
        # ids of variants are no titles
        ("asin,parent_asin,user_id,timestamp", "V{n7}00,B{n7}00,A{n9},{t}", {"asin": "skip"}),
    ],
)  # fmt: skip
def test_columns_of_logs_as_they_come(desk: Desk, header: str, row: str, expected: dict[str, str]) -> None:
    guess = desk.guess(f"{header}\n{numbered(row, 63)}", "log")
    assert guess.seems is None and expected.items() <= roles(guess).items(), roles(guess)


def test_titles_alone_tell_the_items(desk: Desk) -> None:
    desk.check(log="user,title,time\n" + numbered("u{n5},A film called {n7},{t}", 40))
    assert desk.items()[0] == {"item_id": "A film called 0", "title": "A film called 0"}


def test_a_time_of_day_without_a_day_is_no_time(desk: Desk) -> None:
    log = "user,item,time\n" + numbered("u{n5},i{n7},1{n9}:0{n9}", 30)
    assert any("time" in fault for fault in desk.guess(log, "log", fixed={"role:time": "clock"}).reading.faults("log"))


@pytest.mark.parametrize(
    ("content", "what", "seems"),
    [
        (TRANSACTIONS, "catalogue", "log"),
        ("Name,Email,Lineitem sku,Created at\n" + numbered("#{half},a{n9}@x.org,S{n7},{t}", 60), "catalogue", "log"),
        (LOG, "log", None),
        (ITEMS, "log", "catalogue"),
        (ITEMS, "catalogue", None),
        (numbered("u{n5},i{n7},{t}", 30), "catalogue", "log"),
        ("who,what,when\n" + numbered("u{n5},i{n7},{t}", 30), "catalogue", "log"),
        ("user,item,time\nu1,a,1700000000\nu2,b,1700000001\nu3,c,1700000002\n", "catalogue", "log"),
        (numbered("{n},The film of {n},2019-01-0{n9}", 30), "catalogue", None),
        (numbered("i{n},The film of {n},Drama", 30), "log", "catalogue"),
        (numbered("u{n5},i{n7}", 30), "log", None),
        ("Artikel;Name\n" + numbered("a{n};Ding {n}", 30), "log", "catalogue"),
    ],
)  # fmt: skip
def test_a_file_at_the_wrong_place_is_known(desk: Desk, content: str, what: FileKind, seems: str | None) -> None:
    assert desk.guess(content, what).seems == seems


def test_dates_whose_first_rows_do_not_tell_the_day_are_times(desk: Desk) -> None:
    rows = "".join(
        f"{n // 250 + 1:02d}/01/2024,{n % 1440 // 60:02d}:{n % 60:02d},m{n % 50},w{n % 70}\n" for n in range(4_000)
    )
    guess = desk.guess(f"Date,Time,Member,Ware\n{rows}", "log")
    assert roles(guess) == {"Date": "time", "Time": "clock", "Member": "user", "Ware": "item"}
    assert guess.reading.time == "%d/%m/%Y %H:%M"


def test_a_time_of_day_that_is_called_so_is_no_guess_from_values(desk: Desk) -> None:
    rows = "".join(f"{n // 20 + 1:02d}.03.2024;{n % 20:02d}:05;k{n % 4};a{n % 5}\n" for n in range(400))
    for name, sure in (("Uhrzeit", "likely"), ("Wann", "unsure")):
        choice = desk.guess(f"Datum;{name};Kunde;Artikel\n{rows}", "log").choice("columns")
        assert choice is not None and choice.sure == sure


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_day_and_a_time_of_day_in_two_columns_are_one_moment(desk: Desk, form: str, tmp_path: Path) -> None:
    cells = [(f"u{n % 4}", f"i{n % 5}", f"2024-03-0{1 + n // 20}", f"{n % 20:02d}:05:0{n % 7}") for n in range(40)]
    if form == "csv":
        content = ("user,item,date,time\n" + "".join(",".join(row) + "\n" for row in cells)).encode()
    else:
        names = ("user", "item", "date", "time")
        pq.write_table(pa.table(dict(zip(names, zip(*cells, strict=True), strict=True))), tmp_path / "log.parquet")
        content = (tmp_path / "log.parquet").read_bytes()
    guess = desk.guess(content, "log")
    assert roles(guess) == {"user": "user", "item": "item", "date": "time", "time": "clock"}
    desk.check()
    start = datetime.fromisoformat("2024-03-01T00:05:00+00:00").timestamp()
    assert [row["time"] for row in desk.log()] == [
        start + 86_400 * (n // 20) + 3_600 * (n % 20) + n % 7 for n in range(40)
    ]
    alone = desk.guess(content, "log", fixed={"role:time": "skip"})
    assert alone.reading.time == "iso" and roles(alone)["date"] == "time"


def test_files_of_recbole(desk: Desk) -> None:
    guess = desk.guess(RECBOLE_ITEMS)
    assert [(column.role, column.called, column.separator) for column in guess.reading.columns[1:]] == [
        ("title", "movie_title", "|"), ("text", "release_year", "|"), ("list", "class", " "),
    ]  # fmt: skip
    assert roles(desk.guess(RECBOLE_LOG, "log")) == {
        "user_id:token": "user", "item_id:token": "item", "rating:float": "weight", "timestamp:float": "time",
    }  # fmt: skip
    desk.check()
    (first, *_) = desk.items()
    assert (first["title"], first["release_year"], first["class"]) == ("Film number 1", 1991, ["Comedy", "Drama"])


def test_an_index_of_semantic_ids_is_called_what_it_is(desk: Desk) -> None:
    with pytest.raises(Refused, match=r"index of semantic IDs .* Upload the \.item\.json file"):
        desk.guess(json.dumps({"0": ["<a_1>", "<b_22>"], "1": ["<a_3>", "<b_4>"]}))


# --- formats


def test_json_lines_and_parquet(desk: Desk, tmp_path: Path) -> None:
    guess = desk.guess('{"id": 7, "name": "A", "tags": ["x", "y"]}\n{"id": 8, "name": "B", "price": 2.5}\n')
    assert guess.reading.format == "jsonl" and guess.choice("delimiter") is None
    assert roles(guess) == {"id": "item_id", "name": "title", "tags": "list", "price": "text"}
    desk.check()
    assert desk.items()[0] == {"item_id": "7", "title": "A", "tags": ["x", "y"], "price": None}
    table = pa.table({"movieId": [1.0, 2.0, None], "title": ["A", "B", "C"], "genres": [["x"], [], None]})
    pq.write_table(table, tmp_path / "x.parquet")
    guess = desk.guess(tmp_path / "x.parquet")
    assert guess.reading.format == "parquet" and guess.rows == 3
    desk.check()
    assert desk.items() == [
        {"item_id": "1", "title": "A", "genres": ["x"]},
        {"item_id": "2", "title": "B", "genres": None},
    ]


@pytest.mark.parametrize(("keyed", "indent"), [(True, None), (False, 2)])
def test_one_json_document(desk: Desk, keyed: bool, indent: int | None) -> None:
    titles = {"10": "A", "7": "B", "003": "C"}
    rows = {key: {"title": title, "tags": ["x", "y"]} for key, title in titles.items()}
    document = rows if keyed else [{"id": key, **row} for key, row in rows.items()]
    guess = desk.guess(json.dumps(document, indent=indent).encode())
    assert roles(guess) == {"id": "item_id", "title": "title", "tags": "list"}
    desk.check()
    assert {item["item_id"]: item["title"] for item in desk.items()} == titles


def test_lines_in_the_words_of_python(desk: Desk) -> None:
    # Amazon's metadata of 2014, Steam's reviews
    items = (
        "{u'id': u'7', u'title': u\"It's\", u'genres': [u'War', u'Drama']}\n{'id': '8', 'title': 'B', 'price': None}\n"
    )
    guess = desk.guess(items + "{'id': broken}\n")
    assert guess.reading.format == "jsonl"
    assert [column.name for column in guess.reading.columns] == ["id", "title", "genres", "price"]
    checked = desk.check()
    assert desk.items()[0] == {"item_id": "7", "title": "It's", "genres": ["War", "Drama"]}
    assert [(finding.line, finding.problem) for finding in checked.first] == [(3, "not_json")]


def test_a_json_document_of_histories(desk: Desk) -> None:
    histories = {f"u{u}": [f"i{(u + n) % 5}" for n in range(4)] for u in range(3)}
    desk.check(log=json.dumps(histories))
    assert [row["item"] for row in desk.log() if row["user"] == "u1"] == histories["u1"]


NO_TABLES = {
    "zip": (b"PK\x03\x04rest", "Excel workbook"),
    "png": (b"\x89PNG\r\n", "an image"),
    "parquet": (b"PAR1garbagePAR1", "cannot be read as Parquet"),
    "gzip-of-parquet": (gzip.compress(b"PAR1", mtime=0), "no text in the gzip file"),
    "blanks": (b"  \n\n \n", "nothing but blanks"),
    "json-of-neither": (b'{"0": {"title": "a"},\n"1": 5}', "one JSON document"),
    "json-cut-off": (b'{"0": {"title": "a"}, "1": {', "breaks off"),
    "nul": (b"a\x00b\x00\x00\x00" * 200, "not text"),
}


@pytest.mark.parametrize(("content", "words"), NO_TABLES.values(), ids=NO_TABLES)
def test_what_is_no_table_is_called_what_it_is(desk: Desk, content: bytes, words: str) -> None:
    with pytest.raises(Refused, match=words):
        desk.guess(content)


@pytest.mark.parametrize("content", ["[]", "3", "null\n", "[[]]"])
def test_json_that_holds_no_rows_is_told_what_json_must_be(desk: Desk, content: str) -> None:
    assert "an object on each line" in desk.guess(content).stop


def test_carriage_returns_alone_end_lines_and_rows_that_are_nested_too_deep_are_the_reason(desk: Desk) -> None:
    guess = desk.guess(ITEMS.replace("\n", "\r"))
    assert [column.name for column in guess.reading.columns] == ["item_id", "title", "genres"]
    assert len(desk.check().first) == 0 and len(desk.items()) == 4
    deep = '{"item_id": "a", "x": ' + "[" * 100 + "]" * 100 + "}\n"
    stop = desk.guess(deep * 3, "catalogue").stop
    assert "nested at most" in stop and "header" not in stop
