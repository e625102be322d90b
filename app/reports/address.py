"""A page's address ↔ what a report is asked for, so that a report leads back to its page and a link becomes a report."""

from collections.abc import Callable, Collection, Mapping, Sequence
from urllib.parse import parse_qsl, urlencode, urlsplit

from app import examples, home
from app.analysis import model_card
from app.analysis.metrics import protocols, variant
from app.limits import MAX_HISTORY, MAX_K
from app.reports.document import PARTS, Asked
from app.session import pages
from app.session.address import VERSION, Address, Ids, decode, encode
from app.session.pages import Check, Own, Parameter, is_model, one_of
from app.text import editable, short
from engine.errors import SeqscopeError
from engine.runtime import Zoo


def parameters(address: str) -> dict[str, str]:
    """The parameters of an address, whole or its part after the ?. Raises SeqscopeError where it has none."""
    try:
        parts = urlsplit(address)
        query = parts.query if parts.query or parts.scheme else address.lstrip("?")
        entries = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=200, errors="surrogateescape"))
    except ValueError:
        raise SeqscopeError(f"“{short(address, 80)}” is no address.") from None
    for name, text in entries.items():
        try:
            f"{name}={text}".encode()
        except UnicodeEncodeError as error:
            before, byte = error.object[: error.start], ord(error.object[error.start]) & 0xFF
            raise SeqscopeError(
                f"The address holds bytes that are not UTF-8 text: %{byte:02X} after “{short(before[-40:], 40)}”."
            ) from None
    if not entries.keys() - {"v"}:  # all that a shell leaves of one without quotes
        raise SeqscopeError(
            f"The address “{short(address, 80)}” names nothing: copy it from the app with “Copy link”, and put it into quotes."
        )
    if entries.get("v", VERSION) != VERSION:
        raise SeqscopeError(f"The address was made by another version of Seqscope (form {short(entries['v'], 20)}).")
    return entries


def read(parameters: Mapping[str, str], models: Zoo) -> Asked:
    """What a report of that page is asked for; of all models where there is no address. Raises SeqscopeError where the zoo lacks
    what the address names."""
    choices, problems = pages.read(PARAMETERS, parameters, models)
    if problems:
        raise SeqscopeError(problems[0])
    if SAVED in choices:
        raise SeqscopeError(
            "The address is that of a saved report: take its files from the page, which opens it for its owner."
        )
    link = Address.read(parameters)
    if link.item is not None and (problem := pages.is_item(link.item, models, {})):
        raise SeqscopeError(problem)
    if link.user is not None:
        history = of_person(models, link.user)
    else:
        history = examples.of(models)[0].history if link.history is None else link.history
    if link.length is None:
        raise SeqscopeError(
            f"The address asks for lists of length “{short(link.k or '', 20)}”; possible is 1 to {MAX_K}."
        )
    names = tuple(model_card.usual(models)) if parameters and link.models is None else link.models
    return request_of(
        choices,
        history=history[-MAX_HISTORY:],
        edited=None if link.variant is None else link.variant[-MAX_HISTORY:],
        models=None if {*(names or ())} == {*models.bundles} else names,
        k=link.length,
        user=link.user,
        item=link.item,
    )


def of_person(models: Zoo, user: str) -> Ids:
    """The history of a user of the dataset, as long as the app shows it."""
    history = examples.history_of(models, user)
    if history is None:
        raise SeqscopeError(f"{models.info.name} has nobody called “{short(user)}” whose history was exported.")
    return history


def request_of(
    parameters: Mapping[str, str],
    *,
    history: Sequence[str],
    edited: Sequence[str] | None,
    models: Sequence[str] | None,
    k: int,
    user: str | None,
    item: str | None,
) -> Asked:
    """parameters: what the page Report has for itself, checked."""

    def some(name: str) -> list[str] | None:
        return list(decode(parameters[name])) if name in parameters else None

    return Asked(
        parts=[part for part in PARTS if "parts" not in parameters or part in decode(parameters["parts"])],
        history=list(history),
        edited=None if edited is None else list(edited),
        models=None if models is None else list(models),
        k=k,
        item=item,
        attention=some("attention"),
        view="rollout" if parameters.get("view") == "rollout" else "mean",
        map=parameters.get("map"),
        codes=some("codes"),
        protocol=parameters.get("protocol"),
        slow="slow" in parameters,
        rows="rows" in parameters,
        user=user,
        title=parameters.get("title", ""),
    )


def query(request: Asked, dataset: str, parameters: Mapping[str, str], models: Zoo) -> str:
    """The parameters of the page that shows the same. A person is named only where rows of the data are wanted."""
    names = request.models
    if names is None and len(model_card.usual(models)) < len(models.bundles):  # the page shows the usual ones unasked
        names = list(models.bundles)
    address = Address(
        dataset=dataset,
        history=tuple(request.history or ()),
        user=request.user if request.rows else None,
        k=str(request.k),
        models=None if names is None else tuple(names),
        variant=None if request.edited is None else tuple(request.edited),
        item=request.item,
    )
    return urlencode({**address.write(), **parameters})


def parameters_of(request: Asked) -> dict[str, str]:
    """What the page Report would have for itself: the opposite of `request_of`."""
    choices = {
        "title": request.title or None,
        "parts": None if list(request.parts) == list(PARTS) else encode(request.parts),
        "attention": None if request.attention is None else encode(request.attention),
        "view": None if request.view == "mean" else request.view,
        "map": request.map,
        "codes": None if request.codes is None else encode(request.codes),
        "protocol": request.protocol,
        "slow": "asked" if request.slow else None,
        "rows": "yes" if request.rows else None,
    }
    return {name: text for name, text in choices.items() if text is not None}


# --- what the page Report has in the address for itself


MAX_TITLE = 120
SAVED = "saved_report"


def _some_of(kind: str, whose: str, names: Callable[[Zoo], Collection[str]]) -> Check:
    def check(text: str, models: Zoo, parameters: Own) -> str:
        unknown = [short(word, 30) for word in decode(text) if word not in names(models)]
        return f"The link names a {kind} that {whose} does not have: “{unknown[0]}”." if unknown else ""

    return check


_MODELS = _some_of("model", "this dataset", lambda models: models.bundles)
_TOKENIZERS = _some_of("tokenizer", "this dataset", lambda models: models.tokenizations)
_PARTS = _some_of("part", "a report", lambda models: PARTS)


def _protocol(text: str, models: Zoo, parameters: Own) -> str:
    known = protocols({name: bundle.ranks_table() for name, bundle in models.bundles.items()})
    return (
        ""
        if text in known
        else f"The link asks for the protocol “{short(text, 30)}”, which no model was evaluated under."
    )


def _title(text: str, models: Zoo, parameters: Own) -> str:
    return (
        ""
        if len(editable(text)) <= MAX_TITLE
        else f"The link's title of the report has more than {MAX_TITLE} characters."
    )


def _saved(text: str, models: Zoo, parameters: Own) -> str:
    return "" if home.ID.fullmatch(text) else f"The link names a saved report “{short(text, 30)}”, which cannot be one."


PARAMETERS = (
    Parameter("title", "of the report", _title),
    Parameter("parts", "what goes in, with ~ between them", _PARTS),
    Parameter("attention", "models to look into, with ~ between them", _MODELS),
    Parameter("view", "mean or rollout", one_of("view", ("mean", "rollout"))),
    Parameter("map", "the model whose map is drawn", is_model),
    Parameter("codes", "tokenizers, with ~ between them", _TOKENIZERS),
    Parameter("protocol", "of the metrics", _protocol, renewed=variant),
    Parameter("slow", "effects of models that take long for them are wanted", one_of("slow answers", ("asked",))),
    Parameter("rows", "rows of the data themselves may go in", one_of("rows of the data", ("yes",))),
    Parameter("figures", "in HTML", one_of("figures", ("static", "interactive"))),
    Parameter(
        SAVED, "the id of a saved report that is shown in place of the one of now; its owner alone can open it", _saved
    ),
)
