"""A zoo and what is asked for → the report."""

from collections.abc import Callable, Hashable
from typing import Any

from app.analysis.cache import cached, of_content
from app.reports import provenance
from app.reports.document import Asked, Report, sealed
from app.reports.part import Source, person_of, positions
from app.reports.parts import PARTS
from app.reports.summary import summary
from engine.errors import SeqscopeError
from engine.machine import now
from engine.runtime import Zoo


def content(models: Zoo, request: Asked, address: str) -> Hashable:
    """What a report is known by, but for its time."""
    tokenizers = tuple(tokenizer.digest for tokenizer in models.tokenizations.values())
    return of_content(models, tokenizers, request.model_dump_json(), address)


@cached(60, by=content, spinner="Asking the models …")
def shared(models: Zoo, request: Asked, address: str) -> Report:
    """`build`, once for all who ask the same."""
    return build(models, request, address=address)


def build(
    models: Zoo,
    request: Asked,
    *,
    address: str | None = None,
    at: str | None = None,
    tell: Callable[[str], None] = lambda words: None,
) -> Report:
    """Asks every model. Raises SeqscopeError where something is asked for that the zoo does not have.

    address: of the page that shows the same. at: the UTC time to put on it; now. tell: hears what is being done.
    """
    check(models, request)
    names = [name for name in models.bundles if request.models is None or name in request.models]
    person = person_of(models, request)
    parts = [part for name, part in PARTS.items() if name in request.parts and part.possible(models, names)]
    narrowed = request.model_copy(
        update={
            "parts": [part.name for part in parts],
            "user": None if person is None else request.user,
            # what was chosen of models that are not shown is left out
            "attention": None if request.attention is None else [name for name in request.attention if name in names],
            "map": request.map if request.map in names else None,
        }
    )
    source = Source(models, names, narrowed, person, tell)
    made: dict[str, Any] = {}
    for part in parts:
        tell(part.busy)
        made[part.field] = part.make(source)
    untold = {} if source.tells_history else {"history": None, "edited": None, "user": None}
    report = Report(
        created=at or now(),
        address=address if source.tells_history else None,
        program=provenance.program(),
        dataset=provenance.dataset(models),
        asked=narrowed.model_copy(update=untold),
        models=[provenance.model(models, name) for name in names],
        **made,
        notes=provenance.notes(models, narrowed),
    )
    return sealed(report.model_copy(update={"summary": summary(report)}))


def check(models: Zoo, request: Asked) -> None:
    """Raises SeqscopeError where the zoo lacks what is asked for."""
    for names in (request.models, request.attention, None if request.map is None else [request.map]):
        models.expect(names or [])
    models.expect(request.codes or [], tokenizers=True)
    if not models.bundles:
        raise SeqscopeError(f"{models.info.name} has no model that can be opened, so there is nothing to report.")
    for ids in (request.history or [], request.edited or [], [] if request.item is None else [request.item]):
        positions(models, ids)
