"""Seqscope's engine: raw logs to datasets, datasets to trained models, trained models to portable bundles."""

__version__ = "0.1.0"
