"""What the Metrics page asks of studies, computed once for all visitors: by the content of the study."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.kept import until_deleted
from app.views import metrics_studies as views
from engine.runtime import Study


def table(study: Study, metric: str) -> pd.DataFrame:
    """`views.table`."""
    return _table(study, study.digest, metric)


def singles(study: Study, metric: str) -> dict[str, list[float]]:
    """Variant → `views.by_seed`."""
    return _singles(study, study.digest, metric)


@until_deleted
@st.cache_data(max_entries=200, show_spinner="Comparing variants over the same people …")
def _table(_study: Study, digest: str, metric: str) -> pd.DataFrame:
    return views.table(_study, metric)


@until_deleted
@st.cache_data(max_entries=200, show_spinner=False)
def _singles(_study: Study, digest: str, metric: str) -> dict[str, list[float]]:
    return {variant.name: views.by_seed(_study, variant.name, metric) for variant in _study.variants}
