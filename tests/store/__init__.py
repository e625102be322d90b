"""Three owners: two browsers and an account."""

ANNA = "b" + "0a" * 16
BEN = "b" + "1b" * 16
CLARA = "a" + "2c" * 16
