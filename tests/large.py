"""Exports with a large catalogue and no model: made by DuckDB, in a second for 200,000 items."""

from pathlib import Path

import duckdb

from engine.data.dataset import DatasetInfo

FINGERPRINT = "0" * 64
_LETTERS = "'abcdefghiklmnoprstuvwy'"


def make(path: Path, items: int, *, words: int = 45) -> Path:
    """exports/<name>/ at `path`: titles of three or four words (every hundredth with an accent), a brand, genres, a year, a
    description of so many words."""
    path.mkdir(parents=True)
    con = duckdb.connect(config={"threads": 2, "memory_limit": "1GB", "temp_directory": str(path / "spill")})
    con.execute("select setseed(0.5)")
    letters = f"[{_LETTERS}[1 + (hash(w * 31 + p) % 22)::int] for p in range((3 + hash(w) % 6)::int)]"
    word = f"array_to_string({letters}, '')"
    con.execute(f"create table vocabulary as select w, {word} as word from range(20000) t(w)")
    con.execute("create table words as select list(word order by w) as l from vocabulary")

    def some(count: str, salt: int) -> str:
        return f"array_to_string([l[1 + (hash(i * 977 + p * 13 + {salt}) % 20000)::int] for p in range({count})], ' ')"

    con.execute(
        f"""copy (select i::int as item, 'item-' || i as item_id,
            {some("3 + i % 2", 1)} || case when i % 100 = 0 then ' Café' else '' end as title,
            {some("1", 2)} || ' & co' as brand,
            [['Action', 'Drama', 'Comedy', 'Horror', 'Space'][1 + (hash(i) % 5)::int], ['New', 'Old'][1 + i % 2]] as genres,
            1950 + (hash(i * 7) % 75)::bigint as year,
            {some(str(words), 3)} || '.' as description,
            (hash(i * 3) % 1000)::bigint as popularity
            from range({items}) t(i), words) to '{path / "items.parquet"}' (format parquet, compression zstd)"""
    )
    con.close()
    counts = {"users": 0, "items": items, "events": 0, "train": 0, "valid": 0, "test": 0}
    info = DatasetInfo(
        name=path.name, title=f"{items:,} items", source="Made for a test.", licence="None.", simulated=True, counts=counts,
        lengths={"min": 0.0, "median": 0.0, "mean": 0.0, "max": 0.0}, sparsity=1.0,
        time={"unit": "order", "first": None, "last": None, "ties": 0}, split={"kind": "none"}, options={}, left_out={},
        fingerprint=FINGERPRINT, created="2026-01-01T00:00:00+00:00", created_by="a test",
        attributes=["brand", "genres", "year", "description"],
    )  # fmt: skip
    (path / "dataset.json").write_text(info.to_json(), "utf-8")
    return path
