"""How good the models are, how sure that is, and for whom."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app import export, guard, zoo
from app.analysis import evaluation, metrics
from app.components import choice
from app.figures import metrics as figures
from app.screens.metrics import parameters, studies
from app.session import state
from app.text import clean, count, listed, md
from engine.runtime import STILL_IMPROVING, Zoo, judge
from engine.runtime import protocols as naming

_FOUR = st.column_config.NumberColumn(format="%.4f")
_SIGNED = st.column_config.NumberColumn(format="%+.4f")
_P = st.column_config.NumberColumn(format="%.4f")
_ALONG = dict(zip(parameters.ALONG, ("epochs", "seconds", "steps"), strict=True))


class MetricsChoices:
    """What every part of the page speaks of."""

    def __init__(self, models: Zoo, protocol: str, name: str, k: int) -> None:
        self.models, self.protocol, self.k = models, protocol, k
        self.metric = judge.key(name, k)
        self.people, self.left_out = evaluation.people(models, protocol)
        named = {model: bundle.manifest.title for model, bundle in models.bundles.items()}
        absent = [model for model in named if model not in {metrics.model_of(row) for row in self.people}]
        rows = [row for name in named for row in (name, name + metrics.USERS) if row in self.people or row in absent]
        self.families = evaluation.families(models, rows)
        self.rows = metrics.floor_first(rows, self.families)
        """Of every table: a model, or one with its users' vectors (`metrics.ranked`); the floor first."""
        self.titles = metrics.titled(named, self.rows)
        looks = {model: zoo.style(models, model) for model in named}
        self.looks = {
            row: zoo.with_users(looks[metrics.model_of(row)]) if row.endswith(metrics.USERS) else looks[row]
            for row in self.rows
        }

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table for people: titles in place of the models' names."""
        return table.assign(model=[clean(self.titles[name]) for name in table["model"]])

    def notes(self) -> dict[str, str]:
        """Row → why it is not compared, or what has to be known of it."""
        notes = {}
        for row in self.rows:
            if row not in self.people:
                notes[row] = f"not evaluated under “{self.protocol}”"
            elif self.models.bundles[metrics.model_of(row)].improving:
                notes[row] = STILL_IMPROVING
        return notes

    def means(self) -> dict[str, float]:
        """Row → the chosen metric; NaN where there is none."""
        table = evaluation.standing(self.models, self.protocol, self.k)
        part = table[table["metric"] == self.metric]
        return dict(zip(part["model"], part["mean"], strict=True))

    def below(self, rows: Sequence[str]) -> str:
        """Which of the rows are below the floor, as Markdown."""
        counted = [row for row in self.people if row not in metrics.learned(self.people, self.families)]
        means = {row: mean for row, mean in self.means().items() if row in (*rows, *counted)}
        return metrics.below_floor(means, self.families, metrics.bold(self.titles))

    def beams(self) -> str:
        """Rows that have nothing at this cut-off, and why; "" where there are none."""
        reasons = {row: metrics.beyond_beam(ranks, self.metric) for row, ranks in self.people.items()}
        entries = [f"{self.titles[row]} (ranked by a {why})" for row, why in reasons.items() if why]
        return f"Left out, as nothing is known of places beyond the beam: {listed(entries)}." if entries else ""


def page() -> None:
    st.title("Metrics")
    models = zoo.open_zoo(state.get().dataset)
    st.markdown("How often each model puts what truly came next near the top, and how sure that is.")
    protocols = evaluation.protocols(models)
    if not protocols:
        st.info(
            "No model of this dataset has been evaluated, so there is nothing to judge. "
            "Run `seqscope evaluate`, then `seqscope export`, and come back."
            if models.has_log
            else "This is a catalogue without a log: nobody has a held-out item to ask for, so no model can be judged. A log of "
            "who took what would change that."
        )
        with guard.watch("how the models were made"):
            _made(models)
        return
    this = _choose(models, protocols)
    if not this.people or not len(next(iter(this.people.values()))):
        st.info(
            "The models were evaluated on different people, so they cannot be compared. Evaluate them on one split."
        )
        return
    for part, words in (
        (_standing, "the metrics"),
        (_baseline, "the comparison"),
        (_beyond, "what is beyond accuracy"),
        (_slices, "the groups of people"),
        (_disputed, "the people"),
    ):
        with guard.watch(words):
            part(this)
    with guard.watch("the training curves"):
        _curves(this)
    with guard.watch("how the models were made"):
        _made(models)
    with guard.watch("the studies"):
        studies.show(models, this.metric if "@" in this.metric else f"{judge.HEADLINE}@{this.k}")


def _choose(models: Zoo, protocols: list[str]) -> MetricsChoices:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        protocol = choice.segmented(
            "Protocol",
            "protocol",
            {name: md(name) for name in protocols},
            protocols[0],
            key=f"metrics_protocol_{models.info.name}",
            clears=("baseline", "first", "second", "person"),
            wrap=True,
        )
        sets = naming.parse(protocol).sets
        names = metrics.metrics_of(protocol)
        name = choice.segmented(
            "Metric", "metric", {name: name for name in names}, names[0], key=f"metrics_name{'_sets' if sets else ''}"
        )
        k = choice.segmented(
            "Among the first", "at", {str(k): str(k) for k in judge.CUTOFFS}, "20" if sets else "10",
            key=f"metrics_k{'_sets' if sets else ''}",
        )  # fmt: skip
    this = MetricsChoices(models, protocol, name, int(k))
    n = next((ranks.people for ranks in this.people.values()), 0)
    split = models.info.split.get("kind", "unknown")
    note = (
        f"{naming.sentence(this.protocol, len(models))} Split: {split}; {metrics.asked(n, this.protocol)}. Intervals: "
        f"95 %, bootstrap over people, {metrics.SAMPLES:,} samples, seed {metrics.SEED}."
    )
    note += metrics.left_out(this.left_out)
    if models.info.simulated:
        note += " The people of this dataset are simulated."
    st.caption(md(note, 2_000))
    alike: dict[str, list[str]] = {}  # what is said of a model → the names of all of whom it is said
    for bundle in models.bundles.values():
        if bundle.cannot("identifiers") is None and bundle.name in this.people:
            words = metrics.beam_words("", this.protocol, bundle.manifest.metrics, len(models))
            alike.setdefault(words, []).append(f"{this.looks[bundle.name].sign} {md(bundle.manifest.title)}")
    for words, alike_models in alike.items():
        st.caption(", ".join(alike_models) + md(words, 1_000))
    return this


def _standing(this: MetricsChoices) -> None:
    table = evaluation.standing(this.models, this.protocol, this.k)
    st.subheader("Which model is best")
    _held_out(this.models)
    st.markdown(metrics.headline(table, this.metric, this.families, this.titles))
    part = table[table["metric"] == this.metric]
    models = count(len(metrics.models_of(part["model"])), "model")
    export.figure(
        export.shared_figure(figures.dots, part, this.metric, this.titles, this.looks, this.families),
        key="metrics_dots",
        alt=f"{this.metric} of {models} with 95 % intervals: the floor first, then the best on top.",
        table=this.named(table),
        name=f"metrics {this.protocol} {this.k}",
        columns={"mean": _FOUR, "low": _FOUR, "high": _FOUR, "p": _P},
    )
    signs = {model: look.sign for model, look in this.looks.items()}
    st.table(
        metrics.grid(table, this.notes(), this.titles, signs),
        border="horizontal",
        hide_index=True,
        alt=f"Metrics of every model at {this.k}, with 95 % intervals.",
    )
    st.caption(
        "**Bold**: the best. ≈: level with the best, by a paired bootstrap over the same people and Holm's correction (adjusted "
        "p > .05, or an interval of the difference that contains 0). In brackets: 95 % interval."
    )
    vectors = "User vectors: the trained user's own vector, in place of what the model makes of the history alone."
    known = any(row.endswith(metrics.USERS) for row in this.people)
    for words in (vectors if known else "", this.beams(), metrics.floor_missing(this.families, this.protocol)):
        if words:
            st.caption(words)


def _held_out(models: Zoo) -> None:
    """What has to be known of the held-out items before any verdict."""
    counted, *advice = metrics.held_out_words(models.info) or [""]
    if advice:
        st.warning(md(" ".join([counted, *advice]), 2_000), icon=":material/rule:")
    elif counted:
        st.caption(md(counted, 500))


def _baseline(this: MetricsChoices) -> None:
    st.subheader("Against a baseline")
    models = list(this.people)
    if len(models) < 2:
        st.info(
            "Only one model was evaluated under this protocol, so there is no other to compare it with. Choose another protocol."
        )
        return
    counted = metrics.floor_best(this.means(), this.families)
    baseline = choice.selected(
        "Baseline",
        "baseline",
        {name: this.titles[name] for name in models},
        counted[0] if counted else models[-1],
        key=f"metrics_baseline_{this.models.info.name}_{len(models)}",
        width=320,
    )
    table = evaluation.against(this.models, this.protocol, baseline, this.metric)
    if table.empty:
        st.info(f"There is nothing to compare at {this.k}. {this.beams()} Choose a smaller cut-off.")
        return
    rows = table[table["verdict"] == "better"]["model"].tolist()
    words = metrics.better_words(table, baseline, metrics.bold(this.titles))
    st.markdown(f"{words}{this.below([baseline, *rows])} {metrics.ONE_SEED}")
    export.figure(
        export.shared_figure(
            figures.differences, table, this.metric, this.titles[baseline], this.titles, this.looks, this.families
        ),
        key="metrics_differences",
        alt=f"Difference in {this.metric} to {clean(this.titles[baseline])}, with 95 % intervals.",
        table=this.named(table),
        name=f"against {baseline} {this.metric}",
        columns={"difference": _SIGNED, "low": _SIGNED, "high": _SIGNED, "p": _P, "holm": _P},
    )
    st.caption(
        f"Paired over the same people; p adjusted by Holm for {count(len(table), 'comparison')}. Hollow: level with the baseline."
    )


def _beyond(this: MetricsChoices) -> None:
    st.subheader("Beyond accuracy")
    st.markdown("What the lists are made of: how much of the catalogue anybody gets to see, and how well known it is.")
    table = evaluation.beyond(this.models, this.protocol, this.k)
    shown = this.named(table).set_axis(
        ["Model", *(metric.at(this.k) for metric in judge.BEYOND.values()), "Note"], axis=1
    )
    if not table["note"].any():
        shown = shown.drop(columns="Note")
    elif table["coverage"].isna().all():
        st.info(
            md(
                f"n/a: no bundle keeps the lists for “{this.protocol}” at {this.k}; they are kept for full rankings. "
                f"Choose the protocol “{naming.main(this.models.info.repeats, this.models.info.split.get('kind'))}” to see them."
            )
        )
        return
    scored = evaluation.standing(this.models, this.protocol, this.k)
    scored = scored[(scored["metric"] == this.metric) & (scored["note"] == "")][["model", "mean"]]
    export.figure(
        export.shared_figure(
            figures.trade_off, table.dropna().merge(scored, on="model"), this.metric, this.k, this.titles, this.looks
        ),
        key="metrics_beyond",
        alt=f"{this.metric} against the share of the catalogue that is shown to anybody.",
        table=shown,
        name=f"beyond accuracy {this.protocol} {this.k}",
    )
    texts = shown.copy()
    for metric in judge.BEYOND.values():
        texts[metric.at(this.k)] = [metric.text(value) for value in shown[metric.at(this.k)]]
    texts["Model"] = [md(text) for text in texts["Model"]]
    if "Note" in texts:
        texts["Note"] = [md(text) for text in texts["Note"]]
    st.table(texts, border="horizontal", hide_index=True, alt="What is beyond accuracy, of every model.")
    st.caption(" ".join(f"{metric.capital}: {md(metric.brief, 300)}." for metric in judge.BEYOND.values()))


def _slices(this: MetricsChoices) -> None:
    st.subheader("For whom")
    options = evaluation.sliceable(this.models, this.protocol)
    by = choice.selected(
        "Group people by",
        "by",
        {by: clean(words, 80) for by, words in options.items()},
        next(iter(options)),
        key=f"metrics_slice_{this.models.info.name}",
        width=420,
    )
    table = evaluation.slices(this.models, this.protocol, by, this.metric)
    if table.empty:
        st.info(f"No held-out item has a value here, so there are no groups. Choose another attribute. {this.beams()}")
        return
    export.figure(
        export.shared_figure(figures.slices, table, this.metric, this.titles, this.looks),
        key="metrics_slices",
        alt=f"{this.metric} of every model by {clean(options[by], 80).lower()}, with 95 % intervals.",
        table=this.named(table),
        name=f"slices {by} {this.metric}",
        columns={"mean": _FOUR, "low": _FOUR, "high": _FOUR},
    )
    note = (
        "Slices overlap: a user whose held-out item has several values counts in each of them."
        if evaluation.overlap(this.models, by)
        else "By the value of the held-out item."
        if by.startswith("attribute:")
        else "Of an item in nobody's training only those models can have learned anything that read what is said of it, or "
        "write codes made from that."
        if by == evaluation.COLD
        else "Two questions: does the user come back to an item, or take a new one? Of people whose histories are part of this "
        "export."
        if by == evaluation.REPEATED
        else "Groups of about equal size."
    )
    if table["few"].any():
        note += f" Grey: fewer than {metrics.FEW} people, too few to say much."
    if (table["high"] == 0).any():
        note += (
            " Where nobody's item was found the interval has no width; up to 3 in n are still possible (rule of three)."
        )
    st.caption(note)


def _disputed(this: MetricsChoices) -> None:
    if naming.parse(this.protocol).sets:
        return  # one rank per person is what the two are compared by
    st.subheader("People on whom two models differ")
    models = [*metrics.learned(this.people, this.families)]
    models += [row for row in this.people if row not in models]
    if len(models) < 2:
        st.info("Only one model was evaluated under this protocol. Choose another protocol to compare two.")
        return
    titled = {name: clean(this.titles[name]) for name in models}
    left, right = st.columns(2)
    with left:
        first = choice.selected(
            "First model", "first", titled, models[0], key=f"metrics_first_{len(models)}", clears=("second", "person")
        )
    rest = {name: title for name, title in titled.items() if name != first}
    with right:
        second = choice.selected(
            "Second model",
            "second",
            rest,
            next(iter(rest)),
            key=f"metrics_second_{first}_{len(models)}",
            clears=("person",),
        )
    ours, theirs = this.people[first], this.people[second]
    better, worse, level = metrics.wins(ours, theirs)
    st.markdown(
        f"{md(titled[first])} ranks the held-out item higher for **{count(better, 'person', 'people')}**, "
        f"{md(titled[second])} for **{worse:,}**; {level:,} are level.{this.below([first, second])}"
    )
    ids = dict(zip(this.models.users["user"].to_pylist(), this.models.users["user_id"].to_pylist(), strict=True))
    rows = metrics.among(ours, list(ids))
    if len(rows):  # those whose histories can be opened
        ours, theirs = ours.take(rows), theirs.take(rows)
    table = metrics.disputed(ours, theirs)
    if table.empty:
        st.info("The two models rank every held-out item alike, so there is nobody to show. Choose two others.")
        return
    shown = pd.DataFrame(
        {
            "person": [clean(ids.get(user, f"no. {user}"), 60) for user in table["user"]],
            "what truly came next": [clean(zoo.titled(this.models, item), 120) for item in table["target"]],
            "history": table["length"],
            f"rank, {titled[first]}": table["first"],
            f"rank, {titled[second]} ": table["second"],
        }
    )
    st.dataframe(
        shown,
        hide_index=True,
        alt="People for whom the ranks of the held-out item differ most.",
        height=min(400, 40 + 35 * len(shown)),
        key="metrics_people",
    )
    export.csv_button(shown, f"people {first} {second}", key="metrics_people")
    widths = [ranks.width for ranks in (ours, theirs) if ranks.width]
    if widths:
        st.caption(f"No rank: beyond the beam of {min(widths)}, where nobody's place is known.")
    if not len(rows):
        st.caption("Their histories are not part of this export, so they cannot be opened in Compare.")
        return
    if len(rows) < better + worse + level:
        st.caption(
            "Listed are the most disputed of those whose histories are part of this export, "
            f"{count(len(rows), 'person', 'people')}."
        )
    people = {ids[user]: clean(ids[user], 60) for user in table["user"]}
    user_id = state.get().own.get("person")  # a link may name somebody on whom the two models agree
    if user_id is not None:
        people.setdefault(user_id, clean(user_id, 60))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        person = choice.selected(
            "Open somebody's history",
            "person",
            people,
            next(iter(people)),
            key=f"metrics_person_{first}_{second}",
            width=320,
        )
        if st.button("Open in Compare", icon=":material/compare_arrows:", key="metrics_open"):
            state.choose_user(this.models, person)
            st.switch_page("screens/compare/page.py", query_params=state.link_params())


def _curves(this: MetricsChoices) -> None:
    st.subheader("Training")
    table = metrics.curves({name: bundle.curve_table() for name, bundle in this.models.bundles.items()})
    if table.empty:
        st.info(
            "No bundle has a training curve: these models are counted, not trained. Train one with `seqscope train` to see it."
        )
        return
    along = choice.segmented("Along", "along", _ALONG, "epoch", key="metrics_along")
    export.figure(
        export.shared_figure(figures.validation, table, along, _ALONG[along], this.titles, this.looks),
        key="metrics_validation",
        alt=f"NDCG@10 on the validation items along {_ALONG[along]} of training.",
        table=this.named(table),
        name="training curves",
        columns={"loss": _FOUR, "ndcg": _FOUR},
    )
    if table["loss"].notna().any():
        st.markdown("**Loss**, each model in units of its own")
        st.plotly_chart(
            export.shared_figure(figures.losses, table, along, _ALONG[along], this.titles, this.looks),
            key="metrics_losses",
            alt=f"Training loss of every model along {_ALONG[along]}; the table above has the numbers.",
            config=export.config("training loss"),
        )


def _made(models: Zoo) -> None:
    st.subheader("How it was made")
    rows = []
    for name in metrics.floor_first(models.bundles, evaluation.families(models, models.bundles)):
        bundle = models.bundles[name]
        made, still = bundle.manifest.training, f", {STILL_IMPROVING}" if bundle.improving else ""
        rows.append(
            {
                "Model": md(bundle.manifest.title),
                "Commit": md((made.commit or "unknown")[:10]),
                "Device": md(made.device),
                "Time": metrics.span(made.seconds),
                "Seed": str(made.seed),
                "Epochs": f"{made.epochs:,} (best {made.best_epoch:,}{still})" if made.epochs else "counted once",
                "Parameters": f"{made.parameters:,}",
            }
        )
    if rows:
        st.table(pd.DataFrame(rows), border="horizontal", hide_index=True, alt="How every model was trained.")
    split = ", ".join(f"{key} {value}" for key, value in models.info.split.items() if value is not None)
    protocol = f"split {split}. Checkpoints are chosen on validation; the test set is asked once."
    st.caption(
        md(
            f"Dataset {models.info.title}, fingerprint {models.info.fingerprint[:16]}…, "
            + (protocol if models.has_log else "a catalogue without a log."),
            1_000,
        )
    )
    for name, bundle in models.bundles.items():
        folded = st.expander(f"Recipe of {md(bundle.manifest.title)}", key=f"metrics_recipe_{name}", on_change="rerun")
        if folded.open:
            with folded:
                st.code(clean(bundle.manifest.training.command, 1_000), language="bash", wrap_lines=True)
                st.json(bundle.manifest.training.recipe)
    for refusal in models.refused:
        st.warning(md(f"Not shown: {refusal}"), icon=":material/block:")


page()
