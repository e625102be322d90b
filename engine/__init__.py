"""Seqscope's engine: raw logs to datasets, datasets to trained models, trained models to portable bundles."""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when ONNX Runtime is imported: else it reports to its makers
__version__ = "0.1.0"
