"""What a visitor may ask for at once, wherever it is asked: in an address, a saved history, a report."""

MAX_HISTORY = 200
"""Items of a history."""
MAX_K = 100
"""Items of a list."""
DEFAULT_K = 10
"""Those of a list whose length nobody has chosen."""
MAX_ID = 500
"""Characters of one item_id in an address or a saved history."""
