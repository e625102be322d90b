"""Files to begin with: templates with a few rows to write over, and a small sample of a shop that never was.

The sample has some mistakes in it, so that one sees what a check says. Its log has an order to learn: people stay with a kind of
thing, and take what belongs together one after the other.
"""

import csv
import io
import random

from engine.tabular.reading import FileKind

_TEMPLATES: dict[FileKind, list[tuple[str, ...]]] = {
    "catalogue": [
        ("item_id", "title", "category", "price", "description"),
        ("A100", "Enamel teapot", "Kitchen|Tea", "24.50", "White, holds a litre"),
        ("A101", "Beech wood spoon", "Kitchen", "6.00", ""),
        ("A102", "Wool blanket", "Bedroom", "59.90", "Woven from recycled wool"),
    ],
    "log": [
        ("user", "item", "time", "weight"),
        ("anna", "A101", "2024-03-01 09:30:00", "1"),
        ("anna", "A100", "2024-03-04 18:05:00", "1"),
        ("ben", "A102", "2024-03-02 12:00:00", "1"),
    ],
}
_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Kitchen": (("Enamel", "Copper", "Oak", "Steel"), ("teapot", "kettle", "spoon", "pan", "board", "whisk")),
    "Garden": (("Zinc", "Clay", "Willow", "Hemp"), ("can", "pot", "trug", "twine", "trowel", "sieve")),
    "Desk": (("Brass", "Linen", "Cedar", "Slate"), ("lamp", "notebook", "tray", "pen", "ruler", "bookend")),
    "Bath": (("Cotton", "Olive", "Sea", "Bamboo"), ("towel", "soap", "sponge", "brush", "mat", "robe")),
    "Bedroom": (("Wool", "Flax", "Down", "Ash"), ("blanket", "pillow", "lampshade", "rug", "hanger", "clock")),
}
_USERS, _LONGEST = 160, 14
_START = 1_704_067_200  # 2024-01-01


def template(kind: FileKind) -> bytes:
    return _csv(_TEMPLATES[kind])


def sample(kind: FileKind) -> bytes:
    """The same bytes whenever it is asked for."""
    return _csv(_catalogue() if kind == "catalogue" else _log())


def _things() -> list[tuple[str, str, str]]:
    """(id, title, kind): within a kind, what belongs together stands side by side."""
    return [
        (f"{kind[:2].upper()}-{number:03d}", f"{stuff} {thing}", kind)
        for kind, (stuffs, things) in _KINDS.items()
        for number, (thing, stuff) in enumerate((thing, stuff) for thing in things for stuff in stuffs)
    ]


def _catalogue() -> list[tuple[str, ...]]:
    chance = random.Random(7)
    rows: list[tuple[str, ...]] = [("item_id", "title", "categories", "price")]
    for item, title, kind in _things():
        tags = kind if chance.random() < 0.6 else f"{kind}|Gifts"
        rows.append((item, title, tags, f"{chance.randint(4, 90)}.{chance.choice(('00', '50', '90'))}"))
    rows.insert(20, ("KI-003", "Another thing", "Kitchen", "12.00"))  # an id that is there already
    rows.insert(50, ("GA-900", "", "Garden", "9.00"))  # no title
    rows[70] = (*rows[70][:3], "on request")  # a text among numbers
    rows.append(("XX-001", "Row with a field too many", "Desk", "3.00", "?"))
    return rows


def _log() -> list[tuple[str, ...]]:
    chance = random.Random(11)
    things = _things()
    size = len(things) // len(_KINDS)
    rows: list[tuple[str, ...]] = [("user", "item", "time")]
    for user in range(_USERS):
        index, moment = chance.randrange(len(things)), _START + chance.randrange(150 * 86_400)
        for _ in range(chance.randint(4, _LONGEST)):
            rows.append((f"user-{user:03d}", things[index][0], str(moment)))
            moment += chance.randint(60, 5 * 86_400)
            kind = index // size if chance.random() < 0.85 else chance.randrange(len(_KINDS))
            step = 1 if chance.random() < 0.7 else chance.randrange(size)
            index = kind * size + (index % size + step) % size
    rows[30] = (rows[30][0], rows[30][1], "yesterday")
    rows.insert(60, ("", "KI-001", str(_START)))
    rows.insert(90, ("user-001", "KI-999", str(_START)))  # no such item
    rows.append(rows[-1])  # the same event again
    return rows


def _csv(rows: list[tuple[str, ...]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode("utf-8-sig")  # spreadsheets ask for the mark
