"""Makes metrics.json of the exports that are committed now: python -m tests.golden.make"""

from pathlib import Path

from engine.files import write_json
from engine.runtime import EMBEDDED, Zoo
from tests.golden import KEPT_METRICS
from tests.golden.answers import printed

if __name__ == "__main__":
    exports = Path(__file__).resolve().parents[2] / "exports"
    write_json(KEPT_METRICS, {dataset: printed(Zoo.open(exports / dataset)) for dataset in EMBEDDED})
