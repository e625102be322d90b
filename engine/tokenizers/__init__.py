"""Catalogue → identifiers. One tokenizer per file; registry.py lists them."""
