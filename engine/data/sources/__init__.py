"""One reader per public format; `SOURCES` names them."""

from engine.data.sources.amazon import AMAZON
from engine.data.sources.base import Reading, Source, Workshop
from engine.data.sources.letter import LETTER
from engine.data.sources.movielens import ML_1M, ML_20M, ML_100K, MOVIETWEETINGS
from engine.data.sources.table import TABLE
from engine.data.sources.user_item import USER_ITEM
from engine.data.sources.user_items import USER_ITEMS

SOURCES: dict[str, Source] = {
    s.name: s for s in (ML_1M, ML_100K, ML_20M, MOVIETWEETINGS, USER_ITEM, USER_ITEMS, LETTER, AMAZON, TABLE)
}

__all__ = ["SOURCES", "Reading", "Source", "Workshop"]
