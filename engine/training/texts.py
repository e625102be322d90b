"""Where the words of a model that reads text come from, and the weights that it starts with.

[model] start names another run or a bundle of the same model, "minilm" (the pretrained text encoder), or nothing: then a
tokenizer is learnt from the catalogue and the weights are drawn.
"""

import hashlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.bundle.curve import LEAKS, refitted
from engine.data.dataset import Dataset
from engine.data.words import TOKENIZER, ItemWords, parse, tokenize
from engine.errors import SeqscopeError
from engine.evaluation.record import read_record
from engine.files import digest_of, load_json
from engine.models.recformer import RecformerConfig
from engine.text.attributes import Field, attributes, choose_fields, fields_elsewhere
from engine.text.bert import Sentence
from engine.text.embeddings import find
from engine.text.tokenizer import Known, known, learn

PRETRAINED = "minilm"
BEST = "best.safetensors"


def tokenizer(config: RecformerConfig, dataset: Dataset, folder: Path) -> Any:
    """That of the run or text encoder that training starts from, or one learnt from the catalogue."""
    if not config.start:
        item_attributes = _attributes(config, dataset)
        return learn((value for pairs in item_attributes for pair in pairs for value in pair), config.vocabulary)
    if config.start == PRETRAINED:
        return find(PRETRAINED).tokenizer
    if is_bundle(Path(config.start)):
        return parse((Path(config.start) / TOKENIZER).read_text("utf-8"))
    return parse((run_of(config.start, folder, TOKENIZER) / TOKENIZER).read_text("utf-8"))


def read(config: RecformerConfig, dataset: Dataset, tokenizer: Any, *, elsewhere: bool = False) -> ItemWords:
    """The words of every item of the catalogue. elsewhere: it is not the one that the model is for, and has its own fields where
    those that are named are not there."""
    item_attributes = _attributes(config, dataset, elsewhere)
    fields = [field.key for field in _fields(config, dataset, elsewhere)]
    words = tokenize(item_attributes, tokenizer, fields, config.attribute_tokens)
    if not any(item_attributes):
        raise SeqscopeError(f"{dataset.path}: no item has any words, so there is nothing to read")
    return words


def understood(config: RecformerConfig, dataset: Dataset, tokenizer: Any, *, elsewhere: bool = False) -> Known:
    """Of the words that `read` reads: how many the tokenizer knows."""
    return known(tokenizer, [value for pairs in _attributes(config, dataset, elsewhere) for _, value in pairs])


def start(config: RecformerConfig, folder: Path) -> tuple[dict[str, Tensor] | None, str]:
    """The weights by name (None: they are drawn), and a digest of them."""
    if not config.start:
        return None, ""
    if config.start == PRETRAINED:
        encoder = find(PRETRAINED)
        assert isinstance(encoder.module, Sentence)
        return dict(encoder.module.bert.state_dict()), encoder.digest
    if is_bundle(Path(config.start)):
        _check_fitted(Path(config.start) / "manifest.json")
        return exported_weights(Path(config.start) / GRAPH)
    run = run_of(config.start, folder, BEST)
    _check_fitted(run / "run.json")
    path = run / BEST
    try:
        with safe_open(path, "pt") as file:
            names = [name for name in file.keys() if name.startswith("model.")]  # noqa: SIM118 (not a dict)
            weights = {name.removeprefix("model."): file.get_tensor(name) for name in names}
    except (OSError, SafetensorError) as error:
        raise SeqscopeError(f"{path} cannot be read ({error}). Train it again.")
    return weights, digest_of(path)


def run_of(name: str, folder: Path, file: str) -> Path:
    for place in (folder.parent / name, Path(name)):
        if (place / file).is_file() and (place / "run.json").is_file():
            return place
    mend = f"Run `seqscope train {name}` on the same dataset first, or set model.start."
    if name != Path(name).name:
        mend = "Set model.start to a finished run, or to a bundle where the model can start from one."
    raise SeqscopeError(f"training starts from {name!r}, but {folder.parent / name} is no finished run. {mend}")


def of_other_data(config: Any, folder: Path, fingerprint: str) -> bool:
    """Whether training starts from a run on other data than that of this fingerprint: numbers of items mean others there."""
    if config.start in ("", PRETRAINED) or is_bundle(Path(config.start)):
        return False
    record = read_record(run_of(config.start, folder, BEST))
    return bool(record.get("fingerprint") != fingerprint)


def _check_fitted(path: Path) -> None:
    """path: run.json of a run or manifest.json of a bundle. Raises SeqscopeError where it is a refit of this dataset's events."""
    try:
        record = load_json(path)
        refit = refitted(record.get("training", record)) and not record.get("zero_shot")
    except (OSError, ValueError, AttributeError) as error:
        raise SeqscopeError(f"{path} cannot be read ({error}).") from None
    if refit:
        raise SeqscopeError(f"{path.parent} {LEAKS}")


def _fields(config: RecformerConfig, dataset: Dataset, elsewhere: bool) -> tuple[Field, ...]:
    schema = pq.read_schema(dataset.path / "items.parquet")
    if config.fields and not elsewhere:
        return choose_fields(schema, config.fields)
    return fields_elsewhere(schema, config.fields, config.attributes)


def _attributes(config: RecformerConfig, dataset: Dataset, elsewhere: bool = False) -> list[list[tuple[str, str]]]:
    table = pq.read_table(dataset.path / "items.parquet").sort_by("item")
    return attributes(table, _fields(config, dataset, elsewhere))


# --- weights to start from that an exported bundle holds: a server has bundles where it has no runs
#
# Its item encoder is the network as it was when it encoded the items, so histories and items begin alike.


GRAPH = "item_encoder.onnx"
_OURS = "model."


def is_bundle(path: Path) -> bool:
    return (path / "manifest.json").is_file() and (path / GRAPH).is_file()


def exported_weights(path: Path) -> tuple[dict[str, Tensor], str]:
    """The weights by name, and a digest of the files that hold them. Raises SeqscopeError."""
    import onnx  # a bare GPU box has none, and needs none
    from onnx import numpy_helper

    try:
        inside = onnx.load(path, load_external_data=False).graph.initializer
        outside = sorted(
            {entry.value for tensor in inside for entry in tensor.external_data if entry.key == "location"}
        )
        graph = onnx.load(path).graph
        arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    except Exception as error:  # protobuf's, onnx's and those of reading
        raise SeqscopeError(f"{path} cannot be read ({error}). Export it again.") from error
    weights = {name.removeprefix(_OURS): array for name, array in arrays.items() if name.startswith(_OURS)}
    made = {node.output[0]: node for node in graph.node}
    # PyTorch's exporter keeps every name but those of matrices, which it turns over: the bias that is added says whose they are
    for node in graph.node:
        if node.op_type != "Add":
            continue
        for bias, product in (node.input, reversed(node.input)):
            source = made.get(product)
            if source is None or source.op_type != "MatMul" or source.input[1] not in arrays:
                continue
            if bias in arrays and bias.startswith(_OURS):
                weights[bias.removeprefix(_OURS).removesuffix("bias") + "weight"] = arrays[source.input[1]].T
    digest = hashlib.sha256()
    for file in (path.name, *outside):
        digest.update(path.with_name(file).read_bytes())
    return {name: torch.from_numpy(array.copy()) for name, array in weights.items()}, digest.hexdigest()
