"""What columns are called and what stands in them; and files without a header that many people have, told by their shape
(MovieLens 100K and 1M). Uploads, imports and batches of histories guess by these names (roles.py)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.tabular.reading import FileKind, Role, Seen

if TYPE_CHECKING:
    import duckdb

_ITEM_IDS = (
    "itemid", "item", "iid", "parentasin", "asin", "movieid", "productid", "articleid", "sku", "lineitemsku", "trackid",
    "songid", "bookid", "gameid", "recipeid", "podcastid", "newsid", "appid", "placeid", "venueid", "poiid", "poi", "businessid",
    "isbn", "isbn13", "stockcode", "productcode", "itemcode", "articlecode", "상품id", "商品id",
    "artikelnummer", "artikelnr", "artnr",
)  # fmt: skip
_THINGS = (
    "product", "article", "movie", "film", "track", "song", "book", "game", "recipe", "podcast", "news", "app", "place", "venue",
    "business", "artikel", "produkt", "produit",
)  # fmt: skip
"""What else the items of a log are called, where no column has their ids."""
_ATTRIBUTES = ("spot", "location", "artist")
"""Items of some logs, and attributes of the items of others."""

_RATING_NAMES = ("rating", "overall", "score", "stars", "평점", "評価")

NAMES: dict[str, tuple[str, ...]] = {
    "user": (
        "userid", "user", "uid", "reviewerid", "customerid", "memberid", "visitorid", "sessionid", "clientid", "account",
        "accountid", "username", "customerno", "customer", "buyerid", "buyer", "shopper", "visitor", "session", "사용자",
        "고객id", "会员id", "ユーザーid", "kundennummer", "kundennr", "kdnr", "kundenid", "kunde",
        "nutzer", "benutzer", "utilisateur", "client", "customeremail", "email",
    ),
    "item": (*_ITEM_IDS, "contentid", *_THINGS, "spotid", "locationid", "artistid", "id", *_ATTRIBUTES),
    "time": (
        "timestamp", "time", "ts", "unixreviewtime", "unixtime", "datetime", "eventtime", "eventtimestamp", "date",
        "createdat", "created", "day", "orderdate", "purchasedate", "invoicedate", "transactiondate", "orderedat",
        "purchasedat", "viewedat", "occurredat", "시간", "일시", "날짜", "日時", "zeit", "datum", "bestelldatum",
        "kaufdatum", "fecha",
    ),
    "clock": ("timeofday", "clocktime", "uhrzeit"),
    "rating": _RATING_NAMES,
    "weight": ("weight", *_RATING_NAMES, "count", "playcount", "value"),
    "quantity": ("quantity", "lineitemquantity", "qty", "units", "수량", "数量", "menge", "anzahl", "quantité", "cantidad"),
    "item_id": (
        *_ITEM_IDS, "ean", "gtin", "imdbid", "tconst", "spotid", "locationid", "artistid", "id", "code", "key", "번호",
        "상품코드", "상품번호", "商品コード",
    ),
    "title": (
        "title", "itemtitle", "producttitle", "movietitle", "booktitle", "primarytitle", "tracktitle", "songtitle",
        "itemname", "lineitemname", "productname", "moviename", "trackname", "songname", "bookname", "gamename", "recipename",
        "placename", "venuename", "businessname", "displayname", "name", "label", "headline", "제목", "이름", "상품명", "영화명",
        "タイトル", "商品名", "標題", "标题", "titel", "titre", "titulo", "título", "bezeichnung", "nombre", "nom",
    ),
}  # fmt: skip
"""Role → names as of `plain_name`, the surest first. item: of a log; item_id and title: of a catalogue."""


RESERVED = ("item", "item_id", "title", "popularity")
"""Columns with a meaning of their own, in a dataset or in a bundle: no attribute is called so."""
INTEGER = r"0|-?[1-9]\d{0,17}"
"""Texts that are whole numbers; 007 is a text."""
DECIMAL = r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?"
COMMA_DECIMAL = r"-?(0|[1-9]\d{0,14})(,\d{1,2})?"
"""A comma before three digits may part thousands, and one before more of them two ids: such texts stay texts."""


def plain_name(name: str) -> str:
    """Lower case, letters and digits only; RecBole's "user_id:token" is "userid"."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", name.split(":", maxsplit=1)[0].casefold()))


def called(known: Iterable[str], names: Iterable[str]) -> list[str]:
    """The columns of `names` that are called like one of `known`, in the order of `known`; of columns called alike the first."""
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(plain_name(name), name)
    return [plain[name] for name in known if name in plain]


COUNTS = {"weight", "count", "playcount", "value", "quantity", "qty"}
"""Columns of weights that are no ratings."""
LISTS = {
    "genres", "genre", "categories", "category", "tags", "keywords", "actors", "authors", "artists", "directors", "topics",
    "styles", "languages", "countries", "subjects",
}  # fmt: skip
"""Attributes that have several values."""


@dataclass
class Values:
    """A column of the rows that were looked at."""

    name: str
    values: list[str] = field(default_factory=list)
    """Empty where there is none."""

    @property
    def filled(self) -> list[str]:
        return [value for value in self.values if value]

    @property
    def distinct(self) -> set[str]:
        return set(self.filled)

    def share(self, holds: Callable[[str], bool]) -> float:
        return sum(map(holds, self.filled)) / max(1, len(self.filled))

    def seen(self) -> Seen:
        samples = list(dict.fromkeys(self.filled))[:3]
        return Seen(
            name=self.name,
            samples=tuple(value[:80] + ("…" if len(value) > 80 else "") for value in samples),
            filled=round(len(self.filled) / max(1, len(self.values)), 4),
            distinct=len(self.distinct),
        )


def known_name(name: str) -> bool:
    """Whether a column may well be called so."""
    plain = plain_name(name)
    return plain in LISTS or any(plain in names for names in NAMES.values()) or plain in COMMON


COMMON = {
    "description", "price", "brand", "year", "director", "author", "artist", "language", "country", "color", "colour", "size",
    "url", "image", "summary", "overview", "releasedate", "publisher", "manufacturer", "store", "type", "kind", "duration",
    "event",
}  # fmt: skip
"""Other attributes."""


GENRES = (
    "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy", "Film-Noir",
    "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
"""The flags of u.item in their order, after the first, which stands for "unknown"."""
_NUMBER = re.compile(r"\d{1,10}")


@dataclass(frozen=True)
class Known:
    """A layout: what each column is, and what it is called."""

    title: str
    roles: tuple[Role, ...]
    called: dict[int, str] = field(default_factory=dict)
    flags: str = "tags"


_U_ITEM = Known(
    "u.item of MovieLens 100K",
    ("item_id", "title", "text", "skip", "skip", "skip", *("flag",) * len(GENRES)),  # type: ignore[arg-type]
    {2: "released", **{6 + number: name for number, name in enumerate(GENRES)}},
    flags="genres",
)
_MOVIES = Known("movies.dat of MovieLens 1M", ("item_id", "title", "list"), {2: "genres"})
_RATINGS = Known("ratings of MovieLens", ("user", "item", "weight", "time"))


def recognise(kind: FileKind, delimiter: str, columns: Sequence[Values]) -> Known | None:
    """The layout of a file without a header, if it is a known one."""
    if kind == "catalogue":
        if delimiter == "|" and len(columns) == len(_U_ITEM.roles) and _flags(columns[5:]) and _ids(columns[0]):
            return _U_ITEM
        if (
            delimiter == "::"
            and len(columns) == 3
            and _ids(columns[0])
            and any("|" in genres for genres in columns[2].values)
        ):
            return _MOVIES
        return None
    if delimiter not in ("\t", "::") or len(columns) != 4:
        return None
    stars = columns[2].distinct <= {"1", "2", "3", "4", "5"}
    moments = columns[3].share(lambda value: bool(re.fullmatch(r"(8|9)\d{8}|1[0-6]\d{8}", value))) > 0.99
    return _RATINGS if stars and moments and _ids(columns[0]) and _ids(columns[1]) else None


def _ids(column: Values) -> bool:
    return bool(column.filled) and column.share(lambda value: bool(_NUMBER.fullmatch(value))) > 0.99


def _flags(columns: Sequence[Values]) -> bool:
    return all(column.distinct and column.distinct <= {"0", "1"} for column in columns)


# --- ratings among the weights of a log: below the middle of their scale they are low, and count as liked by default


SCALES = {3.0: 5, 5.0: 10}
"""Middle of a scale of ratings → its top."""


def lowest_liked(con: duckdb.DuckDBPyConnection, column: str, weight: str, rows: str) -> float | None:
    """The middle of a scale of ratings, 3 of 5 or 5 of 10, where the weights look like ratings; None elsewhere.

    column: what the file calls it; weight: SQL, the number; rows: SQL, the table of the events, and which of them count.
    """
    lowest, highest, different = con.execute(
        f"SELECT min({weight}), max({weight}), count(DISTINCT {weight}) FROM {rows}"
    ).fetchall()[0]
    if plain_name(column) in COUNTS or lowest is None or lowest < 0 or not 3 <= different <= 21 or highest > 10:
        return None
    return 3.0 if highest <= 5 else 5.0


def scale_words(low: float) -> str:
    """low: a key of SCALES."""
    return f"Below {low:g} on a scale to {SCALES[low]}."
