"""The path of a pretrained language model, with a tiny one that is made here and knows nothing."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.data.dataset import Dataset
from engine.errors import SeqscopeError, UsageError
from engine.evaluation.evaluate import evaluate
from engine.generation import beam_search, exact_scores
from engine.generation.bigrec import BIGRec
from engine.generation.language import TASKS, LanguageModel, open_base
from engine.generation.search import item_scores, path_scores
from engine.training.materials import gather
from engine.training.objectives.generation import ANSWER, InstructionConfig, Instructions
from engine.training.recipe import Recipe, from_dict
from engine.training.run import build_model, open_run, train
from tests.generation.learn import ITEMS, circle, store
from tests.training.tiny import cycles, write_log


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a LLaMA of two small layers and a tokenizer of bytes."""
    # here, not above: seconds for every worker that collects this file
    transformers = pytest.importorskip("transformers", reason="transformers: `make install-dev`")
    pytest.importorskip("peft", reason="peft: `make install-dev`")
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers: `make install-dev`")
    folder = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=300, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=1024, bos_token_id=256, eos_token_id=257,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = {letter: number for number, letter in enumerate(alphabet)} | {"<s>": 256, "</s>": 257}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=words, merges=[]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")
    fast.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dataset, Path]:
    folder = tmp_path_factory.mktemp("language")
    dataset = write_log(folder / "data", cycles(24, ITEMS), ITEMS)
    store(circle(), folder / "runs" / "codes")
    return dataset, folder / "runs"


def recipe(base: str, **tables: dict[str, Any]) -> Recipe:
    raw: dict[str, Any] = {
        "model": {"identifiers": "codes", "base": base, "max_length": 5, "beam": 8},
        "objective": {"tasks": "seqrec,item2index", "words": 12},
        "optimiser": {"name": "adamw", "lr": 0.01},
        "training": {"epochs": 1, "batch_size": 32, "validate_every": 1, "precision": "float32", "valid_users": 5},
    }
    for table, entries in tables.items():
        raw[table] |= entries
    return from_dict({"family": "language-model", "name": "lc-rec-lora", **raw}, "lc-rec-lora")


@pytest.fixture(scope="module")
def model(base: str, place: tuple[Dataset, Path]) -> LanguageModel:
    """One that nobody trained. No test may change it."""
    dataset, runs = place
    chosen = recipe(base)
    found = build_model(chosen, ITEMS, 24, gather(chosen, dataset, runs / "run"))
    assert isinstance(found, LanguageModel)
    with torch.no_grad():  # adapters start as nothing
        for name, parameter in found.named_parameters():
            if "lora_B" in name:
                parameter += 0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(len(name)))
    return found.eval()


def test_caches_change_nothing(model: LanguageModel) -> None:
    items = torch.tensor([[ITEMS, ITEMS, 3], [5, 6, 7]])
    with torch.no_grad():
        memory = model.encode(items)
        exact = exact_scores(model, memory)
        everything = torch.arange(ITEMS).expand(2, -1)
        torch.testing.assert_close(exact, path_scores(model, memory, everything), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(item_scores(model, beam_search(model, memory, 99)), exact, atol=1e-4, rtol=1e-4)
        alone = model.query(torch.tensor([[3]]))
        torch.testing.assert_close(exact[:1], alone, atol=1e-4, rtol=1e-4)  # padding is nothing


def test_it_answers_as_the_whole_sequence_does(model: LanguageModel) -> None:
    """Question and codes in one pass, without caches and padding."""
    question = model.start() + model.fill(TASKS["seqrec"][0].question, {"history": model.history([5, 6])})
    codes = model.codes(9)
    ids = torch.tensor([question + codes])
    with torch.no_grad():
        states, _ = model.run(ids, torch.ones_like(ids), torch.arange(ids.shape[1])[None])
        wanted = model.coded(states[0, len(question) - 1 : -1])
        found = model.after(torch.tensor([[5, 6]]), torch.tensor([[9]]))[0, 0]
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


def test_no_word_of_a_title_is_a_special_token(model: LanguageModel) -> None:
    assert not {model.tokenizer.bos_token_id, model.tokenizer.eos_token_id} & {*model.text("<s> and </s>")}


def instructions(model: Any, dataset: Dataset, tasks: str, examples: int = 0) -> Instructions:
    items, offsets = (torch.from_numpy(array).long() for array in (dataset.training.values, dataset.training.offsets))
    return Instructions(InstructionConfig(tasks=tasks, words=12, examples=examples), model, items, offsets, 16)


@pytest.mark.parametrize("task", list(TASKS))
def test_answers_are_what_is_asked_for(model: LanguageModel, place: tuple[Dataset, Path], task: str) -> None:
    found = instructions(model, place[0], task)
    generator = torch.Generator().manual_seed(0)
    batch = found.draw(next(iter(found.batches(generator))), generator)
    ids, parts = batch
    assert (found.targets(batch) > 0).all()
    assert torch.isfinite(found.loss(model, batch))
    coded = {tuple(model.codes(item)) for item in range(ITEMS)}
    for row in range(len(ids)):
        answer = ids[row][parts[row] == ANSWER].tolist()
        assert tuple(answer) in coded or answer[-1] == model.tokenizer.eos_token_id
    if task == "seqrec":
        assert len(found.examples) == sum(max(0, len(s) - 1) for s in found.sequences)


def test_a_training_writes_adapters_alone(base: str, place: tuple[Dataset, Path]) -> None:
    dataset, runs = place
    folder = runs / "lc-rec-lora"
    train(recipe(base), dataset, folder, device="cpu")
    model, *_ = open_run(folder)
    assert (folder / "best.safetensors").stat().st_size < 200_000
    learned = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learned == set(model.state_dict())
    assert all("lora" in name or name == "words.weight" for name in learned)
    found = evaluate(model, dataset, folder)
    assert 0 <= found["full"]["NDCG@10"] <= 1


def test_what_is_missing_is_said(base: str, tmp_path: Path) -> None:
    with pytest.raises(SeqscopeError, match=r"model\.base"):
        open_base("")
    with pytest.raises(SeqscopeError, match="cannot be had"):
        open_base(str(tmp_path))


def test_unknown_tasks_are_refused(model: LanguageModel, place: tuple[Dataset, Path]) -> None:
    with pytest.raises(UsageError, match="poetry"):
        instructions(model, place[0], "poetry")


def test_a_part_of_the_examples_may_be_drawn(model: LanguageModel, place: tuple[Dataset, Path]) -> None:
    every = instructions(model, place[0], "seqrec")
    some = instructions(model, place[0], "seqrec", examples=7)
    assert some.count == len(set(some.examples)) == 7 < every.count and set(some.examples) < set(every.examples)
    assert instructions(model, place[0], "seqrec", examples=10**6).count == every.count
    generator = torch.Generator().manual_seed(0)
    assert sum(map(len, some.batches(generator))) == 7


# --- BIGRec


def titles(base: str) -> Recipe:
    raw = {
        "model": {"base": base, "max_length": 3, "words": 6, "beam": 2},
        "objective": {"tasks": "titlerec", "words": 60},
        "optimiser": {"name": "adamw", "lr": 0.01},
        "training": {"epochs": 1, "batch_size": 32, "validate_every": 1, "precision": "float32", "valid_users": 3},
    }
    return from_dict({"family": "bigrec", "name": "bigrec", **raw}, "bigrec")


def test_bigrec_trains_adapters_alone_and_ranks_all_items(base: str, place: tuple[Dataset, Path]) -> None:
    dataset, runs = place
    train(titles(base), dataset, runs / "bigrec", device="cpu")
    model, *_ = open_run(runs / "bigrec")
    assert isinstance(model, BIGRec)
    assert all("lora" in name for name in model.state_dict())
    histories = torch.tensor([[ITEMS, 4, 5], [7, 8, 9]])
    with torch.no_grad():
        scores = model.scores(histories)
        torch.testing.assert_close(scores[:1], model.scores(histories[:1, 1:]), atol=1e-3, rtol=1e-4)
        written, rows = model.embedded(model.written(histories)), model.index().rows
        assert rows is not None
        distances = torch.cdist(written.double(), rows.double()).square()
    torch.testing.assert_close(
        scores.double() - written.double().square().sum(1, keepdim=True), -distances, atol=1e-3, rtol=1e-4
    )


def test_bigrec_grounds_a_title_in_its_item(
    base: str, place: tuple[Dataset, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the adapters are: titles are embedded by the model as it came."""
    dataset, runs = place
    model = build_model(titles(base), ITEMS, 24, gather(titles(base), dataset, runs / "bigrec")).eval()
    assert isinstance(model, BIGRec)
    model.index()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter += 0.5
    monkeypatch.setattr(model, "written", lambda items: [model.text(model.title(item)) for item in (11, 3)])
    assert model.scores(torch.tensor([[1], [2]])).argmax(1).tolist() == [11, 3]
    rows = model.index().rows  # kept, and taken along when the model goes to another device
    assert rows is model.index().rows and any(rows is buffer for buffer in model.buffers())


def test_bigrec_writes_without_a_base_models_settings_of_generation(
    base: str, place: tuple[Dataset, Path], tmp_path: Path
) -> None:
    dataset, runs = place
    opinionated = tmp_path / "opinionated"
    shutil.copytree(base, opinionated)
    settings = {"repetition_penalty": 5.0, "do_sample": True, "temperature": 3.0, "forced_bos_token_id": 7}
    (opinionated / "generation_config.json").write_text(json.dumps(settings))
    written = []
    for folder in (base, str(opinionated)):
        model = build_model(titles(folder), ITEMS, 24, gather(titles(folder), dataset, runs / "bigrec")).eval()
        assert isinstance(model, BIGRec)
        with torch.no_grad():
            written.append(model.written(torch.tensor([[1, 2, 3], [4, 5, 6]])))
    assert written[0] == written[1]


def test_logits_are_those_that_the_base_model_makes_of_its_states(
    base: str, place: tuple[Dataset, Path], tmp_path: Path
) -> None:
    """Cohere multiplies them, Granite divides them, and Gemma 2 keeps them within bounds."""
    import transformers

    dataset, runs = place
    size = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "head_dim": 8,
            "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 256, "eos_token_id": 257}  # fmt: skip
    for kind, settings in (
        ("Cohere", {"logit_scale": 0.1}), ("Granite", {"logits_scaling": 9.0}), ("Gemma2", {"final_logit_softcapping": 0.2})
    ):  # fmt: skip
        folder = tmp_path / kind
        shutil.copytree(base, folder)
        config = getattr(transformers, f"{kind}Config")(**size, **settings)
        getattr(transformers, f"{kind}ForCausalLM")(config).save_pretrained(folder)
        model = build_model(titles(str(folder)), ITEMS, 24, gather(titles(str(folder)), dataset, runs / "x")).eval()
        assert isinstance(model, BIGRec)
        ids = torch.tensor([[256, 5, 9, 20]])
        with torch.no_grad():
            states, _ = model.run(ids, torch.ones_like(ids), torch.arange(4)[None])
            torch.testing.assert_close(model.logits(states), model.base(input_ids=ids).logits)


def test_bigrec_has_no_codes_to_be_asked_for(base: str, place: tuple[Dataset, Path]) -> None:
    dataset, runs = place
    model = build_model(titles(base), ITEMS, 24, gather(titles(base), dataset, runs / "bigrec"))
    with pytest.raises(UsageError, match="titlerec"):
        instructions(model, dataset, "titlerec,seqrec")
