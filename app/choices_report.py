"""What the page Report has in the address for itself.

title       of the report
parts       what goes in, with ~ between them: history, lists, what-ifs, effects, overlap, attention, codes, graph, map,
            metrics
item        whose score is explained, by item_id
attention   models to look into, with ~ between them
view        mean or rollout
map         the model whose map is drawn
codes       tokenizers, with ~ between them
protocol    of the metrics
slow        asked: effects of models that take long for them are wanted
rows        yes: rows of the data themselves may go in
figures     static or interactive, in HTML
saved_report  the id of a saved report that is shown in place of the one of now; its owner alone can open it
"""

from __future__ import annotations

from collections.abc import Collection

from app import home
from app.address import decode
from app.analysis.metrics import protocols
from app.checks import Check, Own, is_item, is_model, one_of
from app.reports.document import PARTS
from app.text import short
from engine.runtime import Zoo

MAX_TITLE = 120
VIEWS = ("mean", "rollout")
FIGURES = ("static", "interactive")
SAVED = "saved_report"


def _some_of(what: str, there: Collection[str], text: str) -> str:
    unknown = [short(word, 30) for word in decode(text) if word not in there]
    return f"The link names a {what} that this dataset does not have: “{unknown[0]}”." if unknown else ""


def _parts(text: str, models: Zoo, own: Own) -> str:
    unknown = [short(word, 30) for word in decode(text) if word not in PARTS]
    return f"The link names a part that a report does not have: “{unknown[0]}”." if unknown else ""


def _models(text: str, models: Zoo, own: Own) -> str:
    return _some_of("model", models.bundles, text)


def _tokenizers(text: str, models: Zoo, own: Own) -> str:
    return _some_of("tokenizer", models.tokenizations, text)


def _protocol(text: str, models: Zoo, own: Own) -> str:
    found = protocols({name: bundle.ranks_table() for name, bundle in models.bundles.items()})
    return (
        ""
        if text in found
        else f"The link asks for the protocol “{short(text, 30)}”, which no model was evaluated under."
    )


def _title(text: str, models: Zoo, own: Own) -> str:
    return "" if len(text) <= MAX_TITLE else f"The link's title of the report has more than {MAX_TITLE} characters."


def _saved(text: str, models: Zoo, own: Own) -> str:
    return "" if home.ID.fullmatch(text) else f"The link names a saved report “{short(text, 30)}”, which cannot be one."


CHECKS: dict[str, Check] = {
    "title": _title,
    "parts": _parts,
    "item": is_item,
    "attention": _models,
    "view": one_of("view", VIEWS),
    "map": is_model,
    "codes": _tokenizers,
    "protocol": _protocol,
    "slow": one_of("slow answers", ("asked",)),
    "rows": one_of("rows of the data", ("yes",)),
    "figures": one_of("figures", FIGURES),
    SAVED: _saved,
}
