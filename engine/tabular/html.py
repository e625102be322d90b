"""HTML in the texts of a catalogue, as SQL: whether there is any, and the text without it."""

from __future__ import annotations

from engine.tabular.database import sql

_TAGS = (
    "p|br|div|span|b|i|u|em|strong|ul|ol|li|a|h[1-6]|table|tbody|thead|tr|td|th|img|font|center|hr|small|sup|sub|blockquote|pre|"
    "code|iframe|section|article"
)
_TAG = rf"(?i)</?(?:{_TAGS})(?:\s[^<>]*)?/?>"
_SCRIPT = r"(?is)<script\b.*?</script\s*>|<style\b.*?</style\s*>|<!--.*?-->"
_ENTITIES = {"&nbsp;": " ", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&apos;": "'", "&amp;": "&"}


def has_html(cell: str) -> str:
    """SQL: there are tags or entities of HTML in a text."""
    entities = " OR ".join(f"contains({cell}, {sql(entity)})" for entity in _ENTITIES)
    tags = " OR ".join(f"regexp_matches({cell}, {sql(form)})" for form in (_TAG, _SCRIPT))
    return f"((contains({cell}, '<') AND ({tags})) OR (contains({cell}, '&') AND ({entities})))"


def without_html(cell: str) -> str:
    """SQL: a text without its tags, with the characters that its entities stand for."""
    text = f"regexp_replace(regexp_replace({cell}, {sql(_SCRIPT)}, ' ', 'g'), {sql(_TAG)}, ' ', 'g')"
    for entity, sign in _ENTITIES.items():
        text = f"replace({text}, {sql(entity)}, {sql(sign)})"
    return f"trim(regexp_replace({text}, '  +', ' ', 'g'))"
