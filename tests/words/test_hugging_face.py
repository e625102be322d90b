"""Encoders beside their own libraries, which take seconds to be imported."""

from pathlib import Path

import numpy as np
import pytest

from engine.errors import SeqscopeError
from engine.export.text import export_words
from engine.runtime.text import TextEncoder
from engine.text.bert import minilm_folder
from engine.text.embeddings import find
from engine.text.encoder import Encoder
from tests.words.tiny import ARABIC, ENGLISH, KOREAN, encoder

TEXTS = [*KOREAN, *ARABIC, *ENGLISH, "", "word " * 400]


@pytest.mark.long
def test_minilm_is_what_sentence_transformers_makes_of_it(minilm: Encoder) -> None:
    theirs = pytest.importorskip("sentence_transformers", reason="sentence-transformers: `make install-dev`")
    expected = theirs.SentenceTransformer(str(minilm_folder()), device="cpu").encode(TEXTS, show_progress_bar=False)
    assert np.abs(minilm.embed(TEXTS) - expected).max() < 1e-5
    assert minilm.dim == 384 and minilm.max_length == 256


@pytest.mark.long
def test_any_encoder_of_hugging_face_by_its_folder(tmp_path: Path) -> None:
    """It is exported, too."""
    transformers = pytest.importorskip("transformers", reason="transformers: `make install-dev`")
    pytest.importorskip("sentence_transformers", reason="sentence-transformers: `make install-dev`")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=encoder().tokenizer, pad_token="[PAD]", cls_token="[CLS]"
    )
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    theirs = tmp_path / "Some Model"
    transformers.BertModel(transformers.BertConfig(vocab_size=500, **sizes)).save_pretrained(theirs)
    tokenizer.save_pretrained(theirs)
    found = find(str(theirs))
    assert found.name == "some-model" and found.dim == 16
    rows = found.embed(TEXTS)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.allclose(rows[1], found.embed(TEXTS[1:2])[0], atol=1e-5)  # whatever shares its batch
    assert np.abs(TextEncoder.open(export_words(found, tmp_path / "build")).embed(TEXTS) - rows).max() < 1e-4
    (theirs / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(SeqscopeError, match="cannot be had"):
        find(str(theirs))


@pytest.mark.long
def test_a_text_may_end_with_what_its_encoder_pads_with(tmp_path: Path) -> None:
    """As those of Qwen3-Embedding do, which reads its vector there."""
    transformers = pytest.importorskip("transformers", reason="transformers: `make install-dev`")
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers: `make install-dev`")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=encoder().tokenizer, pad_token="[CLS]", mask_token="[MASK]"
    )
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    transformers.BertModel(transformers.BertConfig(vocab_size=500, **sizes)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    expected = library.SentenceTransformer(str(tmp_path), device="cpu").encode(ENGLISH, normalize_embeddings=True)
    assert np.abs(find(str(tmp_path)).embed(ENGLISH) - expected).max() < 1e-5
