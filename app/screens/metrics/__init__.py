"""The page Metrics."""

from app.analysis import evaluation, metrics, model_card
from app.session.pages import Own, Page, Parameter, one_of, script, section
from app.text import listed, short
from engine.runtime import Zoo, judge

ALONG = {"epoch": "epochs", "seconds": "seconds", "step": "steps"}
"""What training is drawn along → what that is called."""
SECTIONS = {
    "comparison": "Comparison",
    "beyond": "Beyond accuracy",
    "slices": "Slices",
    "ablations": "Ablations",
    "sweeps": "Hyper-parameter sweeps",
    "runs": "Training runs",
    "protocol": "Protocol",
}
"""Name in the address → its tab."""


def shown_protocol(models: Zoo, parameters: Own) -> str | None:
    """The protocol that the page shows: the chosen one, else the first; None where no model was evaluated."""
    protocols = evaluation.protocols(models)
    return parameters["protocol"] if parameters.get("protocol") in protocols else next(iter(protocols), None)


def _protocol(text: str, models: Zoo, parameters: Own) -> str:
    protocols = evaluation.protocols(models)
    if text in protocols:
        return ""
    possible = f"; there is {listed([short(name, 30) for name in protocols[:10]])}" if protocols else ""
    return f"The link asks for the protocol “{short(text, 30)}”, which no model here was evaluated under{possible}."


def _metric(text: str, models: Zoo, parameters: Own) -> str:
    shown = shown_protocol(models, parameters)
    return one_of("metric", tuple(judge.ACCURACY) if shown is None else metrics.metrics_of(shown))(
        text, models, parameters
    )


def _kind(text: str, models: Zoo, parameters: Own) -> str:
    return one_of("kind of models", ("all", *model_card.by_kind(models)))(text, models, parameters)


def _is_evaluated(text: str, models: Zoo, parameters: Own) -> str:
    """A model with ranks under the protocol."""
    shown = shown_protocol(models, parameters)
    if shown is not None and text in evaluation.people(models, shown)[0]:
        return ""
    return f"The link names a model that was not evaluated under this protocol, or that is not here: “{short(text)}”."


def _is_study(text: str, models: Zoo, parameters: Own) -> str:
    if text in models.studies.found:
        return ""
    return f"The link names a study that this dataset does not have: “{short(text)}”."


def _slicing(text: str, models: Zoo, parameters: Own) -> str:
    if text in evaluation.sliceable(
        models, shown_protocol(models, parameters) if text in (evaluation.COLD, evaluation.REPEATED) else None
    ):
        return ""
    return f"The link groups users by “{short(text)}”, which this dataset does not have."


PAGE = Page(
    name="metrics",
    title="Metrics",
    icon=":material/leaderboard:",
    section="Judge",
    order=1,
    help="How good the models are, with intervals and tests.",
    script=script(__file__),
    parameters=(
        section(SECTIONS),
        Parameter("protocol", "of the evaluation", _protocol, renewed=metrics.variant),
        Parameter("metric", "over users, by its name, such as NDCG; which there are depends on the protocol", _metric),
        Parameter("at", "k, how many of the first count", one_of("cut-off", tuple(map(str, judge.CUTOFFS)))),
        Parameter("kind", "of models that are shown beside those that need no training: Sequential, Text, …", _kind),
        Parameter("baseline", "the model that others are compared with", _is_evaluated),
        Parameter(
            "by", "what users are grouped by: popularity-10, repeated, cold, length, attribute:genres, …", _slicing
        ),
        Parameter("study", "the study whose variants are shown, by its name", _is_study),
        Parameter("along", "what training is drawn along", one_of("curves along", ALONG)),
    ),
)
