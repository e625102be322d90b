"""Catalogue → identifiers. One tokenizer per file; base.py finds them."""
