"""Metrics: how training went, and how every model was made."""

from functools import partial

import pandas as pd
import streamlit as st

from app import export, guard
from app.analysis import evaluation, metrics
from app.components import choice, sections, widgets
from app.figures import metrics as figures
from app.screens.metrics import ALONG
from app.screens.metrics.choices import MetricsChoices
from app.text import clean, distinct, listed, md, span
from engine.runtime import Zoo


def show(this: MetricsChoices) -> None:
    with guard.watch("the training curves"):
        _curves(this)
    with guard.watch("the training runs"):
        made(this.models)


def _curves(this: MetricsChoices) -> None:
    bundles = this.models.bundles
    table = metrics.curves({name: bundles[name].curve_table() for name in bundles if name in this.titles})
    if table.empty:
        st.info(
            "No bundle has a training curve: these models are counted, not trained. Train one with `seqscope train` to see it."
        )
        return
    along = choice.segmented("Along", "along", ALONG, "epoch", key="metrics_along")
    if table["ndcg"].notna().any():
        export.figure(
            export.shared_figure(
                figures.validation, table, along, ALONG[along], this.titles, this.looks, widgets.on_phone()
            ),
            key="metrics_validation",
            alt=f"NDCG@10 on the validation items along {ALONG[along]} of training.",
            table=this.named(table),
            name="training curves",
            columns={"loss": widgets.FOUR_DIGITS, "ndcg": widgets.FOUR_DIGITS},
        )
        validated = table[table["ndcg"].notna()]["model"].unique()
        for sampled, names in evaluation.validated_among(this.models, validated).items():
            titles = listed([this.titles[name] for name in names])
            words = f"{titles}: validated among {sampled:,} sampled items. Such values are much higher than the other curves'."
            st.caption(md(words, 1_000))
        if names := evaluation.validated_by_users(this.models, validated):
            titles = listed([this.titles[name] for name in names])
            st.caption(
                md(f"{titles}: validated with trained user vectors. The table's rows without them know users by their "
                   "histories alone, so their values may differ a lot.", 1_000)
            )  # fmt: skip
    else:
        st.caption("These runs had no validation: only the loss is shown.")
    if table["loss"].notna().any():
        sections.folded_on_phone("Loss", partial(_losses, this, table, along), key="metrics_loss")


def _losses(this: MetricsChoices, table: pd.DataFrame, along: str) -> None:
    st.caption("Each model in units of its own.")
    st.plotly_chart(
        export.shared_figure(figures.losses, table, along, ALONG[along], this.titles, this.looks, widgets.on_phone()),
        key="metrics_losses",
        alt=f"Training loss of every model along {ALONG[along]}; the table above has the numbers.",
        config=export.config("training loss"),
    )


def made(models: Zoo) -> None:
    rows = []
    for bundle in models.bundles.values():
        made, carried = bundle.manifest.training, bundle.manifest.zero_shot
        still = f", {bundle.unsettled}" if bundle.unsettled else ""
        rows.append(
            {
                "Model": md(bundle.manifest.title),
                "Time": span(made.seconds, 1)
                if carried is None
                else f"not trained on this dataset; {span(made.seconds, 1)} on {md(carried.title)}",
                "Epochs": "counted once"
                if not made.epochs
                else f"{made.epochs:,}, as validation had selected"
                if bundle.manifest.refitted
                else f"{made.epochs:,} (best {made.best_epoch:,}{still})",
                "Fitted on": made.fitted_on,
                "Parameters": f"{made.parameters:,}",
                "Device": md(made.device).replace(" ", "\u00a0"),
                "Seed": str(made.seed),
                "Commit": md((made.commit or "unknown")[:10]),
            }
        )
    table = pd.DataFrame(rows)
    if not any(bundle.manifest.refitted for bundle in models.bundles.values()):
        table = table.drop(columns="Fitted on", errors="ignore")
    if rows:
        st.table(table, border="horizontal", hide_index=True, alt="How every model was trained.")
    if models.bundles:
        titles = distinct({name: clean(bundle.manifest.title) for name, bundle in models.bundles.items()})
        chosen = st.selectbox(
            "Recipe", list(titles), format_func=lambda name: titles.get(name, name), index=None, key="metrics_recipe",
            placeholder="Choose a model", width=320,
        )  # fmt: skip
        if chosen in models.bundles:
            training = models.bundles[chosen].manifest.training
            st.code(clean(training.command, 1_000), language="bash", wrap_lines=True)
            st.json(training.recipe)
    for refusal in models.refused:
        st.warning(md(f"Not shown: {refusal}"), icon=":material/block:")
