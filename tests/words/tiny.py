"""Small encoders and catalogues with a known answer, for every test about words."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from engine.text.bert import Bert, BertConfig, Sentence
from engine.text.encoder import Encoder
from engine.text.tokenizer import PAD, learn

KOREAN = ["보습 수분 크림 건성 피부용", "진정 토너 민감성 피부", "립스틱 매트 레드 컬러", "손상 모발 샴푸"]
JAPANESE = ["保湿クリーム 乾燥肌用", "口紅 マット レッド", "ダメージヘア用シャンプー", "日焼け止めジェル"]
ARABIC = ["كريم مرطب للبشرة الجافة", "أحمر شفاه مطفي", "شامبو للشعر التالف"]
ENGLISH = ["Moisturising cream for dry skin", "Matte lipstick, red", "Shampoo for damaged hair"]


def encoder(name: str = "tiny", seed: int = 0, max_length: int = 12) -> Encoder:
    """Random weights, drawn wide enough that texts differ."""
    tokenizer = learn([*KOREAN, *JAPANESE, *ARABIC, *ENGLISH], 400)
    config = BertConfig(tokenizer.get_vocab_size(), 16, 2, 4, 32, max_length, 2)
    bert = Bert(config, torch.Generator().manual_seed(seed)).eval()
    with torch.no_grad():
        for parameter in bert.parameters():
            parameter.mul_(5)
    return Encoder(
        name=name, title="Tiny", source="Made up for tests.", licence="None.", module=Sentence(bert).eval(),
        tokenizer=tokenizer, dim=16, max_length=max_length, pad=PAD,
    )  # fmt: skip


def write_items(folder: Path, columns: dict[str, list]) -> Path:
    """A dataset's folder with nothing but its catalogue."""
    folder.mkdir(parents=True, exist_ok=True)
    count = len(next(iter(columns.values())))
    table = pa.table(
        {"item": pa.array(range(count), pa.int32()), "item_id": [f"i{n}" for n in range(count)], **columns}
    )
    pq.write_table(table, folder / "items.parquet")
    return folder


SCRIPTS = {"korean": (0xAC00, 11_172), "japanese": (0x4E00, 20_000)}


def groups(
    script: str, *, shuffled: bool = False, seed: int = 0, count: int = 6, size: int = 40
) -> tuple[pa.Table, np.ndarray]:
    """Titles of five words; every group of items has 25 words of its own. shuffled: titles of any group at all.

    Returns the catalogue and each item's group, int [items].
    """
    rng = np.random.default_rng(seed)
    first, many = SCRIPTS[script]

    def word() -> str:
        return "".join(chr(first + int(c)) for c in rng.integers(0, many, rng.integers(2, 4)))

    words = [[word() for _ in range(25)] for _ in range(count)]
    group = np.repeat(np.arange(count), size)
    drawn = rng.integers(0, count, len(group)) if shuffled else group
    space = "" if script == "japanese" else " "
    return pa.table({"title": [space.join(rng.choice(words[g], 5, replace=False)) for g in drawn]}), group


def purity(vectors: np.ndarray, group: np.ndarray, k: int = 5) -> float:
    """Share of the k nearest other items that are of the item's own group."""
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    return float((group[np.argsort(-scores, axis=1)[:, :k]] == group[:, None]).mean())
