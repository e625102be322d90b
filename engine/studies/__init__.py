"""What one changes at a time, and what it does: a plan (TOML) is carried out run by run, and its results are one file."""

from engine.studies.plan import Plan, find, load
from engine.studies.run import carry_out

__all__ = ["Plan", "carry_out", "find", "load"]
