"""History → identifier. Networks that generate the codes of the next item instead of matching a vector with every item.

encoder_decoder.py and decoder_only.py are the networks; search.py turns a network and the prefix tree of
identifiers (engine/bundle/trie.py) into items: beam search, and exact scores of the whole catalogue.
"""

from engine.generation.base import Generator, Memory
from engine.generation.search import Beams, beam_search, exact_scores

__all__ = ["Beams", "Generator", "Memory", "beam_search", "exact_scores"]
