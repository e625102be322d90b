"""What one changes at a time, and what it does: a plan (TOML) is carried out run by run, and its results are one file."""
