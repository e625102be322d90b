"""What the page Report has in the address for itself."""

from __future__ import annotations

from collections.abc import Collection

from app import home
from app.analysis.metrics import protocols, without_users
from app.reports.document import PARTS
from app.session.address import decode
from app.session.pages import Own, Parameter, is_model, one_of
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
    known = protocols({name: bundle.ranks_table() for name, bundle in models.bundles.items()})
    return (
        ""
        if text in known
        else f"The link asks for the protocol “{short(text, 30)}”, which no model was evaluated under."
    )


def _title(text: str, models: Zoo, own: Own) -> str:
    return "" if len(text) <= MAX_TITLE else f"The link's title of the report has more than {MAX_TITLE} characters."


def _saved(text: str, models: Zoo, own: Own) -> str:
    return "" if home.ID.fullmatch(text) else f"The link names a saved report “{short(text, 30)}”, which cannot be one."


PARAMETERS = (
    Parameter("title", "of the report", _title),
    Parameter("parts", "what goes in, with ~ between them", _parts),
    Parameter("attention", "models to look into, with ~ between them", _models),
    Parameter("view", "mean or rollout", one_of("view", VIEWS)),
    Parameter("map", "the model whose map is drawn", is_model),
    Parameter("codes", "tokenizers, with ~ between them", _tokenizers),
    Parameter("protocol", "of the metrics", _protocol, renewed=without_users),
    Parameter("slow", "effects of models that take long for them are wanted", one_of("slow answers", ("asked",))),
    Parameter("rows", "rows of the data themselves may go in", one_of("rows of the data", ("yes",))),
    Parameter("figures", "in HTML", one_of("figures", FIGURES)),
    Parameter(
        SAVED, "the id of a saved report that is shown in place of the one of now; its owner alone can open it", _saved
    ),
)
