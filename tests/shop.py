"""A shop's log as shops keep theirs (the columns of Online Retail): what makes it hard is known exactly.

Each customer places a small order, then a large one; the lines of an order share its minute and stand in the order of the
article numbers, which are drawn without any pattern. So within an order the next line says nothing, and its place in the file
everything. A few articles are bought again, and some customers end with a cancellation: an order `C…` of negative quantity.
"""

import csv
import io
from datetime import datetime, timedelta

import numpy as np

COLUMNS = ("InvoiceNo", "StockCode", "Description", "Quantity", "InvoiceDate", "UnitPrice", "CustomerID", "Country")
USERS, ITEMS = 80, 120
SMALL, LARGE = 4, 24
"""Lines of the two orders."""
CANCELLED, AGAIN = 8, 6
"""Every eighth customer ends with a cancellation; of the others, every sixth ends with an article of the first order."""


def rows(users: int = USERS, seed: int = 0) -> list[tuple[str, ...]]:
    """The lines of the file, by date; the first row that has a day above the twelfth comes late."""
    rng = np.random.default_rng(seed)
    found: list[tuple[datetime, int, tuple[str, ...]]] = []
    number = 536_000

    def order(user: int, moment: datetime, items: list[int], quantity: int = 1) -> None:
        nonlocal number
        number += 1
        invoice = f"{'C' if quantity < 0 else ''}{number}"
        date = f"{moment.month}/{moment.day}/{moment.year} {moment.hour}:{moment.minute:02d}"
        for item in sorted(items):
            article = (str(20_000 + item), f"ARTICLE {item}", str(quantity), date, "1.25")
            found.append((moment, number, (invoice, *article, str(12_000 + user), "France")))

    for user in range(users):
        first = datetime(2010, 12, 1, 8, 26) + timedelta(minutes=user)
        second = first + timedelta(days=int(rng.integers(10, 60)))
        drawn = rng.permutation(ITEMS)
        small, large = drawn[:SMALL].tolist(), drawn[SMALL : SMALL + LARGE].tolist()
        order(user, first, small)
        order(user, second, large, quantity=6)
        if user % CANCELLED == 0:
            order(user, second + timedelta(days=1), [large[0]], quantity=-6)
        elif user % AGAIN == 0:
            order(user, second + timedelta(days=1), [small[0]])
    return [line for _, _, line in sorted(found)]


def log(users: int = USERS, seed: int = 0) -> str:
    """The file as text."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows(users, seed)])
    return text.getvalue()
