"""Small recipes and a plan over them, as files."""

from pathlib import Path
from typing import Any

from engine.studies.plan import Plan, load

RECIPES = {
    "teacher": """
family = "sasrec"
model = { dim = 16, blocks = 1, dropout = 0.0, max_length = 8, init = "normal" }
objective = { loss = "cross-entropy" }
optimiser = { lr = 0.01 }
training = { epochs = 6, batch_size = 32, validate_every = 6, precision = "float32" }
""",
    "codes": """
family = "random"
tokenizer = { levels = 2, codes = 8 }
collisions = { policy = "append" }
""",
    "writer": """
family = "encoder-decoder"
optimiser = { lr = 0.01 }
training = { epochs = 1, batch_size = 32, validate_every = 1, precision = "float32" }
[model]
identifiers = "codes"
dim = 16
layers = 1
heads = 2
head_dim = 8
inner = 32
dropout = 0.0
max_length = 6
causal = true
""",
}

PLAN = """
title = "What learning adds"
about = "Six epochs."
runs = ["teacher.toml"]
seeds = [1, 2]
baseline = "idle"
[[variants]]
name = "idle"
title = "one that does not learn"
set.teacher = ["optimiser.lr=1e-12"]
[[variants]]
name = "again"
title = "the same again"
set.teacher = ["optimiser.lr=1.0e-12"]
[[variants]]
name = "learns"
title = "one that learns"
"""

PUBLISHED = """
[[published]]
metric = "NDCG@10"
dataset = "ML-1M"
protocol = "among 100 negatives"
source = "A & B 2018, table 4"
differs = "Another log."
figures = { idle = 0.1, learns = 0.5 }
"""

SWEEP = """
title = "Codes"
runs = ["codes.toml"]
[sweep]
title = "codes"
run = "codes"
setting = "tokenizer.codes"
values = [4, 8, 16]
"""


def plan(folder: Path, text: str = PLAN, name: str = "learning", **replaced: Any) -> Plan:
    """The plan as a file in `folder`; replaced: pieces of its text and what to put there."""
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, str(new))
    path = folder / f"{name}.toml"
    path.write_text(text, "utf-8")
    return load(path)
