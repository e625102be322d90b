"""What the columns of logs and catalogues are called. Uploads, imports and batches of histories guess by these names."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ITEM_IDS = (
    "itemid", "item", "iid", "parentasin", "asin", "movieid", "productid", "articleid", "sku", "trackid", "songid", "bookid",
    "gameid", "recipeid", "podcastid", "newsid", "appid", "placeid", "venueid", "poiid", "poi", "businessid", "isbn", "isbn13",
    "stockcode", "productcode", "itemcode", "articlecode", "상품id", "商品id",
)  # fmt: skip
_THINGS = (
    "product", "article", "movie", "film", "track", "song", "book", "game", "recipe", "podcast", "news", "app", "place", "venue",
    "business",
)  # fmt: skip
"""What else the items of a log are called, where no column has their ids."""
_ATTRIBUTES = ("spot", "location", "artist")
"""Items of some logs, and attributes of the items of others."""

NAMES: dict[str, tuple[str, ...]] = {
    "user": (
        "userid", "user", "uid", "reviewerid", "customerid", "memberid", "visitorid", "sessionid", "clientid", "account",
        "accountid", "username", "customerno", "customer", "visitor", "session", "사용자", "고객id", "会员id",
        "ユーザーid", "kunde", "client",
    ),
    "item": (*_ITEM_IDS, "contentid", *_THINGS, "spotid", "locationid", "artistid", "id", *_ATTRIBUTES),
    "time": (
        "timestamp", "time", "ts", "unixreviewtime", "unixtime", "datetime", "eventtime", "eventtimestamp", "date",
        "createdat", "created", "day", "orderdate", "purchasedate", "invoicedate", "transactiondate", "orderedat",
        "purchasedat", "viewedat", "occurredat", "시간", "일시", "날짜", "日時", "zeit", "datum", "fecha",
    ),
    "rating": ("rating", "overall", "score", "stars", "평점", "評価"),
    "quantity": ("quantity", "qty", "units", "수량", "数量", "menge", "anzahl", "quantité", "cantidad"),
    "item_id": (
        *_ITEM_IDS, "ean", "gtin", "imdbid", "tconst", "spotid", "locationid", "artistid", "id", "code", "key", "번호",
        "상품코드", "상품번호", "商品コード", "artikelnummer",
    ),
    "title": (
        "title", "itemtitle", "producttitle", "movietitle", "booktitle", "primarytitle", "tracktitle", "songtitle",
        "itemname", "productname", "moviename", "trackname", "songname", "bookname", "gamename", "recipename", "placename",
        "venuename", "businessname", "displayname", "name", "label", "headline", "제목", "이름", "상품명", "영화명", "タイトル",
        "商品名", "標題", "标题", "titel", "titre", "titulo", "título", "bezeichnung", "nombre", "nom",
    ),
}  # fmt: skip
"""Role → names as of `plain_name`, the surest first. item: of a log; item_id and title: of a catalogue."""


def plain_name(name: str) -> str:
    """Lower case, letters and digits only; RecBole's "user_id:token" is "userid"."""
    return re.sub(r"[\W_]+", "", name.split(":", maxsplit=1)[0].casefold())


def called(known: Iterable[str], names: Iterable[str]) -> list[str]:
    """The columns of `names` that are called like one of `known`, in the order of `known`; of columns called alike the first."""
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(plain_name(name), name)
    return [plain[name] for name in known if name in plain]
