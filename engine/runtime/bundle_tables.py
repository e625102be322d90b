"""What a bundle holds beside the model: its evaluation, its training and its map, as tables."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from engine.bundle.curve import STILL_IMPROVING, unsettled
from engine.bundle.files import EAGER_BYTES, Folder, Lazy
from engine.bundle.manifest import Manifest
from engine.bundle.tables import TABLE_BYTES, Column, read_places, read_table, side_tables
from engine.evaluation import protocols


class BundleTables:
    """The tables of the bundle in `folder`, None where it does not have them. Those above 16 MiB are read on first use."""

    def __init__(self, folder: Folder, manifest: Manifest) -> None:
        """Raises BundleError where a table is not what `side_tables` says, or figures of a refit could be taken for others."""
        self.folder, self.manifest = folder, manifest
        self._check_protocols("manifest.json", manifest.metrics)
        self._tables = {file: self._table(file, columns) for file, columns in side_tables(manifest.num_items).items()}

    def ranks_table(self) -> pa.Table | None:
        """Evaluation: user int32, target int32, history_length int32, protocol string, rank float64 (mean under ties)."""
        return self._tables["ranks.parquet"].value()

    def seeds_table(self) -> pa.Table | None:
        """Full rankings of the same training with other seeds: as `ranks_table`, and seed int64."""
        return self._tables["seeds.parquet"].value()

    def exposure_table(self) -> pa.Table | None:
        """How often each item was recommended: protocol string, k int32, item int32, count int64."""
        return self._tables["exposure.parquet"].value()

    def map_table(self) -> pa.Table | None:
        """Item rows on a plane: item int32 (each once), x float32, y float32, without units."""
        return self._tables["map.parquet"].value()

    def curve_table(self) -> pa.Table | None:
        """Training: step int64, epoch float64, seconds float64, loss float64, valid_ndcg float64 (the last two may be null)."""
        return self._tables["curve.parquet"].value()

    @property
    def unsettled(self) -> str | None:
        """`STILL_IMPROVING` or `NOT_SETTLED` where training ended before validation had settled, as curve and recipe tell;
        without a curve, what the manifest says. None where it had, and where nothing was validated."""
        made, curve = self.manifest.training, self.curve_table()
        if curve is None:
            return STILL_IMPROVING if made.improving else None
        checked = curve.filter(curve["valid_ndcg"].is_valid())
        validated = dict(zip(checked["epoch"].to_pylist(), checked["step"].to_pylist(), strict=True))
        return unsettled(made.best_epoch, validated, made.recipe)

    def _table(self, file: str, columns: dict[str, Column]) -> Lazy[pa.Table | None]:
        expected = self.manifest.files.get(file)
        if expected is None:
            return Lazy(lambda: None)
        table: Lazy[pa.Table | None] = Lazy(lambda: self._read(file, columns))
        if self.folder.size(file, limit=TABLE_BYTES, expected=expected) <= EAGER_BYTES:
            table.value()
        return table

    def _read(self, file: str, columns: dict[str, Column]) -> pa.Table:
        expected = self.manifest.files[file]
        if file == "map.parquet":
            return read_places(self.folder, file, expected, self.manifest.num_items)
        table = read_table(self.folder, file, columns, expected=expected)
        if "protocol" in columns:
            self._check_protocols(file, table["protocol"].unique().to_pylist())
        return table

    def _check_protocols(self, file: str, names: Iterable[str]) -> None:
        """Raises BundleError where figures of a refit could be taken for others, or others for those of a refit."""
        for name in names:
            if protocols.parse(name).refit != self.manifest.refitted:
                reason = f"figures under “{name[:80]}” of a model that was fitted on {self.manifest.training.fitted_on} events"
                raise self.folder.fault(file, reason)
