"""Pretrained causal language models, and LC-Rec's real path (Zheng et al., ICDE 2024): one that learns to read and write codes.

The model comes from Hugging Face by name or from a folder and stays as it is but for LoRA (Hu et al. 2022; the settings are
those of LETTER-LC-Rec). Codes are new words. Their vectors are a table of our own beside the model's vocabulary, for reading
and for writing, so a checkpoint holds that table and the adapters and nothing of the base model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.cards import Card
from engine.data.identifiers import Identifiers
from engine.errors import SeqscopeError, first_line
from engine.generation.base import CODES, Generator, Memory, Past
from engine.models.base import AttentionShape, Recommender

# --- what a language model is asked, in words: LC-Rec's mixture of tasks (Zheng et al. 2024, 3.3), with prompts of our own.
#
# In a prompt, {history} are the codes of the items taken so far, {codes} those of one item, {text} the words of one item,
# {texts} those of the history, {query} words that somebody might search with. LC-Rec has preferences and searches written by a
# larger language model; here they are made of the attributes in the catalogue.


class Task(NamedTuple):
    """question, answer: prompts in which slots stand."""

    question: str
    answer: str


# The first is how recommendations are asked for; the others are there so that the wording does not matter.
NEXT = (
    Task("Somebody took these items, the latest last: {history}. Which item comes next? ", "{codes}"),
    Task("History: {history}. Name the item that this person will take next. ", "{codes}"),
    Task("Here is what was taken, in order: {history}. Continue. ", "{codes}"),
)

TITLES = "titlerec"
"""BIGRec's one task (Bao et al. 2023, 3.1), without codes."""
TASKS: dict[str, tuple[Task, ...]] = {
    TITLES: (Task("Somebody took, in order: {texts}. What is the title of the next item? ", "{text}"),),
    "seqrec": NEXT,
    "item2index": (
        Task("Which item is this? {text}. ", "{codes}"),
        Task("Give the index of the item described as: {text}. ", "{codes}"),
    ),
    "index2item": (
        Task("Describe the item {codes}. ", "{text}"),
        Task("What is {codes}? ", "{text}"),
    ),
    "fusionseqrec": (
        Task("Somebody took {history}. In words, what comes next? ", "{text}"),
        Task("Somebody took, in order: {texts}. Which item comes next? ", "{codes}"),
    ),
    "itemsearch": (
        Task("Somebody who took {history} now looks for: {query}. Which item fits? ", "{codes}"),
        Task("Search: {query}. Taken before: {history}. Best match? ", "{codes}"),
    ),
    "preferenceobtain": (
        Task("Somebody took {history}. What does this person like? ", "{likes}"),
        Task("From {history}, say in a few words what this taste is. ", "{likes}"),
    ),
}
"""Task → its prompts. The first four and itemsearch are about one target; preferenceobtain is about a history."""


# --- the network


UNSEEN = "Which of its words a large language model looked at is not exported."


@dataclass(frozen=True)
class LanguageConfig:
    identifiers: str = "lc-rec-rqvae"
    """The tokenizer run that made the identifiers: a folder beside this run's, or a path."""
    base: str = ""
    """The language model: a name on Hugging Face, or the path of a folder that holds it."""
    rank: int = 8
    """Rank r of the adapters."""
    alpha: int = 32
    """Adapters weigh alpha / rank."""
    dropout: float = 0.05
    """Before the adapters."""
    adapted: str = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"
    """The layers that get adapters, by their names in the base model."""
    max_length: int = 20
    """Latest items read."""
    beam: int = 20
    """Identifiers that a beam search keeps."""


def open_base(name: str) -> tuple[Any, Any]:
    """Tokenizer and causal language model. Raises SeqscopeError where a package or the model is missing."""
    if not name:
        raise SeqscopeError("say which language model: --set model.base=NAME, or the path of a folder that holds one")
    try:
        import peft  # noqa: F401
        from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
    except ImportError as error:
        raise SeqscopeError(
            f"a language model needs the packages transformers and peft ({error.name} is missing): "
            "`pip install 'seqscope[llm]'`"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        # On a CPU the backward pass of PyTorch's fused attention takes longer than that of the plain one
        attention = None if torch.cuda.is_available() else "eager"
        model = AutoModelForCausalLM.from_pretrained(
            name, trust_remote_code=False, use_safetensors=True, attn_implementation=attention
        )
        # penalties and sampling of its authors would change what is written
        model.generation_config = GenerationConfig()
    except Exception as error:  # what is missing or damaged shows in many ways
        raise SeqscopeError(
            f"the language model {name} cannot be had ({first_line(error)[:200]}). Give the path of a folder that holds it."
        )
    return tokenizer, model


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Numbers, padded on the left, and 1 where there is one: int64 [rows, longest] each."""
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask


class Adapted(Recommender):
    """A pretrained causal language model that is asked in words, and LoRA adapters, which are all that is learnt of it."""

    attributes: Sequence[Sequence[tuple[str, str]]]

    def adapt(self, config: Any, generator: torch.Generator) -> Any:
        """Opens `config.base`, puts adapters in it (`adapted`, `rank`, `alpha`, `dropout`) and returns it."""
        self.tokenizer, base = open_base(config.base)
        from peft import LoraConfig, get_peft_model

        module_names = [name.strip() for name in config.adapted.split(",")]
        lora = LoraConfig(
            r=config.rank, lora_alpha=config.alpha, lora_dropout=config.dropout, target_modules=module_names
        )
        seed = int(torch.randint(2**31, (), generator=generator))
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.language = get_peft_model(base, lora)
        return base

    # --- words

    def text(self, words: str) -> list[int]:
        """Text as numbers of the model's own vocabulary; no word of it is a special token."""
        ids: list[int] = self.tokenizer(words, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids

    def title(self, item: int) -> str:
        """What an item is called: its first attribute."""
        attributes = self.attributes[item]
        return attributes[0][1] if attributes else "?"

    def fill(self, prompt: str, slots: Mapping[str, list[int]]) -> list[int]:
        """A prompt as numbers, slots filled in."""
        ids: list[int] = []
        for number, part in enumerate(prompt.replace("}", "{").split("{")):
            ids += slots[part] if number % 2 else (self.text(part) if part else [])
        return ids

    def start(self) -> list[int]:
        first = self.tokenizer.bos_token_id
        return [] if first is None else [first]

    @property
    def base(self) -> Any:
        """The causal language model beneath the adapters."""
        return self.language.get_base_model()

    def embed(self, ids: Tensor) -> Tensor:
        """Numbers of words → vectors."""
        vectors: Tensor = self.base.get_input_embeddings()(ids)
        return vectors

    def run(self, ids: Tensor, mask: Tensor, places: Tensor, cache: Any = None) -> tuple[Tensor, Any]:
        """Last states of `ids` [rows, new], given mask [rows, all] (1 where something stands), and the cache."""
        output = self.base.model(
            inputs_embeds=self.embed(ids),
            attention_mask=mask,
            position_ids=places,
            past_key_values=cache,
            use_cache=True,
        )
        return output.last_hidden_state, output.past_key_values

    def logits(self, states: Tensor) -> Tensor:
        """Over the vocabulary, float32 [..., known]."""
        return self.scaled(self.base.lm_head(states).float())

    def scaled(self, products: Tensor) -> Tensor:
        """Logits as the base model makes them of the products of states and words, float32 [..., words] both: Cohere and Granite
        scale them, Gemma 2 bounds them."""
        settings = self.base.config
        logits = products * getattr(settings, "logit_scale", 1.0) / getattr(settings, "logits_scaling", 1.0)
        limit = getattr(settings, "final_logit_softcapping", None)
        return logits if limit is None else limit * torch.tanh(logits / limit)

    def codes(self, item: int) -> list[int]:
        """An item's codes as words, of those that have any."""
        raise TypeError(f"{type(self).__name__} writes no codes")

    def history(self, items: Sequence[int]) -> list[int]:
        """The codes of several items, commas between them."""
        raise TypeError(f"{type(self).__name__} writes no codes")

    # --- storage: the base model is not ours to write

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """What was trained alone."""
        learned = {name for name, parameter in self.named_parameters() if parameter.requires_grad}
        return {name: value for name, value in super().state_dict(*args, **kwargs).items() if name in learned}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Raises RuntimeError where `state` is not of this model."""
        if strict and state.keys() != self.state_dict().keys():
            raise RuntimeError("adapters of another language model")
        return super().load_state_dict(state, strict=False, assign=assign)


class LanguageModel(Adapted, Generator):
    name = "language-model"
    Config = LanguageConfig
    objective = "instructions"
    kind = "generative"
    card = Card(
        title="LC-Rec",
        order=65,
        summary="A pretrained language model that learned the codes of items as new words, from a mixture of tasks that tie "
        "codes to sequences and to texts. Asked what comes next, it answers with a semantic ID.",
        paper="Zheng et al., Adapting Large Language Models by Integrating Collaborative Semantics for Recommendation, ICDE 2024",
        geometry="none",
        reasons={"neighbours": CODES, "map": CODES, "attention": UNSEEN},
    )
    needs = ("identifiers", "attributes")
    exports = ()

    def __init__(
        self,
        config: LanguageConfig,
        num_items: int,
        num_users: int,
        generator: torch.Generator,
        *,
        identifiers: Identifiers,
        attributes: Sequence[Sequence[tuple[str, str]]],
    ) -> None:
        super().__init__(num_items, config.max_length, config.beam, identifiers)
        self.config, self.attributes = config, attributes
        base = self.adapt(config, generator)
        settings = base.config
        self.dim, self.layers = settings.hidden_size, settings.num_hidden_layers
        self.heads = getattr(settings, "num_key_value_heads", None) or settings.num_attention_heads
        self.head_dim = getattr(settings, "head_dim", None) or self.dim // settings.num_attention_heads
        known = base.get_input_embeddings().weight
        self.known = known.shape[0]
        # new words start about where the others are: as large, around their mean
        self.words = nn.Embedding(self.vocabulary, self.dim)
        with torch.no_grad():
            noise = torch.randn(self.words.weight.shape, generator=generator)
            self.words.weight.copy_(known.float().mean(0) + known.float().std() * noise)

    # --- words

    def codes(self, item: int) -> list[int]:
        """An item's codes as words: numbers after those of the model's own vocabulary."""
        return (self.known + self.tokens[item][self.written[item]]).tolist()

    def history(self, items: Sequence[int]) -> list[int]:
        """The codes of several items, commas between them."""
        comma, ids = self.text(", "), self.codes(items[0]) if items else []
        for item in items[1:]:
            ids = ids + comma + self.codes(item)
        return ids

    def embed(self, ids: Tensor) -> Tensor:
        """Numbers of both vocabularies → vectors."""
        text_vectors = super().embed(ids.clamp(max=self.known - 1))
        new = self.words((ids - self.known).clamp(min=0)).to(text_vectors.dtype)
        return torch.where((ids >= self.known)[..., None], new, text_vectors)

    def logits(self, states: Tensor) -> Tensor:
        """Over both vocabularies, float32 [..., known + vocabulary]."""
        return torch.cat([super().logits(states), self.coded(states)], -1)

    def coded(self, states: Tensor) -> Tensor:
        return self.scaled(F.linear(states.float(), self.words.weight.float()))

    # --- a generator

    def encode(self, items: Tensor, users: Tensor | None = None) -> Memory:
        from transformers import DynamicCache

        rows = []
        for row in items.tolist():
            history = self.history([item for item in row if item != self.pad])
            rows.append(self.start() + self.fill(NEXT[0].question, {"history": history})[:-1])
        ids, mask = padded(rows, items.device)
        _, cache = self.run(ids, mask, (mask.cumsum(1) - 1).clamp(min=0), DynamicCache())
        keys = torch.stack([layer.keys for layer in cache.layers], 1)
        values = torch.stack([layer.values for layer in cache.layers], 1)
        return Memory(keys, values, torch.zeros(mask.shape, device=items.device).masked_fill(mask == 0, -torch.inf))

    def decode(
        self,
        tokens: Tensor,
        memory: Memory,
        past: Past | None = None,
        places: Tensor | None = None,
        kept: list[Tensor] | None = None,
    ) -> tuple[Tensor, Past]:
        from transformers import DynamicCache

        people, beams, new = tokens.shape
        real = (memory.mask == 0).long()
        read, written = real.shape[1], 0 if past is None else past.keys.shape[4]
        cache = DynamicCache()
        for layer in range(self.layers):
            pair = []
            for whole, decoded in ((memory.keys, past and past.keys), (memory.values, past and past.values)):
                part = whole[:, None, layer].expand(-1, beams, -1, -1, -1)
                part = part if decoded is None else torch.cat([part, decoded[:, :, layer]], 3)
                pair.append(part.flatten(0, 1))
            cache.update(pair[0], pair[1], layer)
        last = self.fill(NEXT[0].question, {"history": []})[-1]  # the end of the question asks for the first code
        ids = torch.where(tokens == self.bos, last, self.known + tokens).flatten(0, 1)
        mask = F.pad(real, (0, written + new), value=1).repeat_interleave(beams, 0)
        place = real.sum(1, keepdim=True).repeat_interleave(beams, 0) + written + torch.arange(new, device=ids.device)
        states, cache = self.run(ids, mask, place, cache)
        keys_values = [
            torch.stack([getattr(layer, name)[:, :, read:].unflatten(0, (people, beams)) for layer in cache.layers], 2)
            for name in ("keys", "values")
        ]
        return self.coded(states).unflatten(0, (people, beams)), Past(*keys_values)

    @property
    def shares(self) -> bool:
        return False

    @property
    def attention(self) -> AttentionShape | None:
        return None
