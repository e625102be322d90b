"""The formats that export writes and runtime reads, without torch: each is written down in one place (docs/bundle.md)."""
