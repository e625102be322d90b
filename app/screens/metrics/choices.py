"""What every part of the page Metrics speaks of, and how it is chosen."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app import glossary, zoo
from app.analysis import evaluation, floor, metrics, model_card
from app.components import choice
from app.text import clean, listed, md
from engine.cards import KINDS
from engine.runtime import Zoo, judge
from engine.runtime import protocols as naming

_FEW = 8
"""So many models are read at once."""


class MetricsChoices:
    """A protocol, a metric, a cut-off and a kind of models, with the rows of all tables."""

    def __init__(self, models: Zoo, protocol: str, name: str, k: int, kind: str = "all") -> None:
        """kind: as `model_card.by_kind` calls it, or all."""
        self.models, self.protocol, self.k = models, protocol, k
        self.metric = judge.key(name, k)
        self.people, self.left_out = evaluation.people(models, protocol)
        refit = naming.parse(protocol).refit
        named = {
            model: bundle.manifest.title
            for model, bundle in models.bundles.items()
            if bundle.manifest.refitted == refit  # the others have protocols, and tables, of their own
        }
        absent = [model for model in named if model not in {metrics.model_of(row) for row in self.people}]
        rows = [row for name in named for row in metrics.rows_of(name) if row in self.people or row in absent]
        self.families = evaluation.families(models, rows)
        if kind != "all":
            alike = model_card.by_kind(models).get(kind, [])
            learned = floor.learned(rows, self.families)
            rows = [row for row in rows if row not in learned or metrics.model_of(row) in alike]
        self.people = {row: self.people[row] for row in rows if row in self.people}
        means = self._means() if any(map(len, self.people.values())) else {}
        best_first = sorted(rows, key=lambda row: -np.nan_to_num(means.get(row, 0.0)))
        self.rows = floor.first(best_first, self.families)
        """Of every table: a model, or one that was told more (`metrics.ranked`); the floor first, then the best."""
        self.titles = metrics.titled(named, self.rows)
        looks = {model: zoo.style(models, model) for model in named}
        self.looks = {
            row: zoo.dotted(looks[metrics.model_of(row)]) if metrics.more_of(row) else looks[row] for row in self.rows
        }

    def of_kind(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of those models alone that are shown, in the order of `rows`."""
        places = {row: place for place, row in enumerate(self.rows)}
        part = table[table["model"].isin(self.rows)]
        return part.sort_values("model", key=lambda names: names.map(places), kind="stable")

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table for the eye: titles in place of the models' names."""
        return table.assign(model=[clean(self.titles[name]) for name in table["model"]])

    def basis(self) -> str:
        """What the figures are of, as Markdown."""
        info, users = self.models.info, next((ranks.people for ranks in self.people.values()), 0)
        usual = self.protocol == naming.main(info.repeats, info.split.get("kind"))
        ranking = naming.title(self.protocol) if usual else naming.sentence(self.protocol, len(self.models))
        simulated = " · **simulated users**" if info.simulated else ""
        return md(f"{ranking} · {metrics.users_words(users, self.protocol)}", 1_000) + simulated

    def notes(self) -> dict[str, str]:
        """Row → why it is not compared, or what has to be known of it."""
        notes = {}
        for row in self.rows:
            if row not in self.people:
                notes[row] = f"not evaluated under “{naming.title(self.protocol)}”"
            elif (early := self.models.bundles[metrics.model_of(row)].unsettled) is not None:
                notes[row] = early
        return notes

    def means(self) -> dict[str, float]:
        """Row that is shown → the chosen metric; NaN where there is none."""
        return {row: mean for row, mean in self._means().items() if row in self.rows}

    def _means(self) -> dict[str, float]:
        table = evaluation.standing(self.models, self.protocol, self.k)
        part = table[table["metric"] == self.metric]
        return dict(zip(part["model"], part["mean"], strict=True))

    def below(self, rows: Sequence[str]) -> str:
        """Which of the rows are below the floor, as Markdown."""
        counted = [row for row in self.people if row not in floor.learned(self.people, self.families)]
        means = {row: mean for row, mean in self.means().items() if row in (*rows, *counted)}
        return floor.below(means, self.families, metrics.bold(self.titles))

    def chance(self) -> float:
        """The chosen metric of a random order."""
        return metrics.by_chance(next(iter(self.people.values())), self.metric, len(self.models))

    def beams(self) -> str:
        """Rows that have nothing at this cut-off, and why; "" where there are none."""
        reasons = {row: ranks.beyond_beam(self.metric) for row, ranks in self.people.items()}
        entries = [f"{md(self.titles[row])} (ranked by a {why})" for row, why in reasons.items() if why]
        return f"n/a, as ranks beyond the beam are unknown: {listed(entries)}." if entries else ""


def choose(models: Zoo, protocols: list[str]) -> MetricsChoices:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        protocol = choice.segmented(
            "Protocol",
            "protocol",
            {name: md(naming.title(name)) for name in protocols},
            protocols[0],
            key=f"metrics_protocol_{models.info.name}",
            clears=("baseline",),
            wrap=True,
        )
        sets = naming.parse(protocol).sets
        names = metrics.metrics_of(protocol)
        name = choice.segmented(
            "Metric",
            "metric",
            {name: name for name in names},
            names[0],
            key=f"metrics_name{'_sets' if sets else ''}",
            help="\n\n".join(f"**{name}**: {glossary.tooltip(name)}" for name in names),
        )
        cutoffs = list(map(str, metrics.cutoffs(len(models))))
        usual = str(metrics.usual_cutoff(len(models), protocol))
        k = choice.segmented("k", "at", {k: k for k in cutoffs}, usual, key=f"metrics_k{'_sets' if sets else ''}")
        kinds = model_card.by_kind(models) if len(models.bundles) > _FEW else {}
        offered = {  # of other kinds, those alone that the floor does not hold already
            kind: kind
            for kind, some in kinds.items()
            if kind == KINDS["counting"]
            or any(floor.needs_training(models.bundles[name].manifest.family) for name in some)
        }
        kind = "all"
        if len(offered) > 1:
            kind = choice.segmented(
                "Models", "kind", {"all": "All", **offered}, "all", key="metrics_kind", wrap=True,
                clears=("baseline",),
            )  # fmt: skip
    return MetricsChoices(models, protocol, name, int(k), kind)
