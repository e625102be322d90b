"""What a model is built from beside its configuration: read once, kept in the run folder, part of the run's identity."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from engine.console import note
from engine.data import identifiers
from engine.data.dataset import Dataset, Role
from engine.data.identifiers import Identifiers
from engine.data.words import ItemWords, parse
from engine.errors import SeqscopeError, first_line
from engine.files import load_json, replacing, write_json
from engine.models.graph import Graph, GraphRecommender
from engine.registry import MODELS
from engine.text.attributes import attributes, fields_elsewhere
from engine.text.embeddings import Stored, embed, find, understood, write_rows
from engine.text.tokenizer import Known
from engine.training import texts
from engine.training.recipe import Recipe

VECTORS = ("latents.npy", "codebooks.npy")
"""What a tokenizer run may hold beside its identifiers, and an export takes along."""


@dataclass(frozen=True)
class Material:
    """One of them: what the model is given, its digest, and the folder that it was read from."""

    value: Any
    digest: str | None
    """None where no step of a training depends on it."""
    source: Path
    origin: Any = None
    """What is known of it beside its value."""
    note: str = ""
    """A line about it for the console."""


class Materials(dict[str, Material]):
    """By the names of `Recommender.needs_of`."""

    @property
    def values_by_name(self) -> dict[str, Any]:
        """What the model is given, as keyword arguments."""
        return {name: material.value for name, material in self.items()}

    @property
    def digest(self) -> str:
        """Of everything that may change what is trained; empty where the model needs nothing."""
        return "".join(f"{name}={self[name].digest}" for name in sorted(self) if self[name].digest is not None)

    def keep(self, folder: Path) -> None:
        """Copies into the run folder, so that a run needs nothing outside it."""
        for name, material in self.items():
            if material.source != folder:
                KINDS[name].keep(material, folder)


class Kind:
    """How one of them is found, kept and found again."""

    @classmethod
    def gather(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        """To train in `folder`; SeqscopeError where it is missing."""
        raise NotImplementedError

    @classmethod
    def of_run(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        """From a run folder that has its copy; anew, where no run has one."""
        return cls.gather(recipe, dataset, folder)

    @staticmethod
    def keep(material: Material, folder: Path) -> None:
        """The copy, where there is to be one."""


COPIED = ("identifiers", "words", "vectors", "attributes")
"""Those of which a run folder has a copy."""
COPIES = (
    "identifiers.json", "identifiers.parquet", *VECTORS, "words.safetensors", "tokenizer.json", "text_vectors.npy",
    "text_vectors.json", "attributes.json",
)  # fmt: skip
"""The files of these copies."""


def gather(recipe: Recipe, dataset: Dataset, folder: Path, run: Path | None = None) -> Materials:
    """All that the recipe's model needs, to train in `folder`. Raises SeqscopeError where something is missing.

    run: a finished run of the same recipe, whose copies are taken as they are.
    """
    needs = MODELS[recipe.family].needs_of(recipe.model)
    if unknown := [name for name in needs if name not in KINDS]:
        raise SeqscopeError(f"{recipe.family} needs {unknown[0]!r}, which is none; there are {', '.join(KINDS)}")
    return Materials(
        {
            name: KINDS[name].gather(recipe, dataset, folder)
            if run is None or name not in COPIED
            else KINDS[name].of_run(recipe, dataset, run)
            for name in needs
        }
    )


def of_run(recipe: Recipe, dataset: Dataset, folder: Path) -> Materials:
    """The same from a run folder that has its copies."""
    needs = MODELS[recipe.family].needs_of(recipe.model)
    return Materials({name: KINDS[name].of_run(recipe, dataset, folder) for name in needs})


class _Identifiers(Kind):
    """What a generator writes: those of a tokenizer run."""

    @classmethod
    def gather(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        """From the run that the recipe names, or from the run's own copy where that is gone."""
        name = recipe.model.identifiers
        for place in (folder.parent / name, Path(name), folder):
            if (place / identifiers.ABOUT).is_file():
                return cls.of_run(recipe, dataset, place)
        raise SeqscopeError(
            f"{recipe.name} writes the identifiers of {name!r}, but {folder.parent / name} holds none. "
            f"Run `seqscope tokenize {name} --dataset {dataset.path}` first, or set model.identifiers."
        )

    @classmethod
    def of_run(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        item_codes = Identifiers.read(folder)
        made_for = item_codes.about.get("fingerprint", dataset.info.fingerprint)
        if len(item_codes) != dataset.num_items or made_for != dataset.info.fingerprint:
            raise SeqscopeError(
                f"{folder} holds identifiers of other items than {dataset.path} has now. Run `seqscope tokenize` again."
            )
        return Material(item_codes, item_codes.digest(), folder)

    @staticmethod
    def keep(material: Material, folder: Path) -> None:
        material.value.write(folder)
        for name in VECTORS:
            if (material.source / name).is_file():
                with replacing(folder / name) as staged:
                    shutil.copyfile(material.source / name, staged)


class _Words(Kind):
    """What a model that reads text is given: the words of every item, in the tokens of what training starts from."""

    @classmethod
    def gather(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        tokenizer = texts.tokenizer(recipe.model, dataset, folder)
        item_words = texts.read(recipe.model, dataset, tokenizer)
        reader = Path(recipe.model.start).name or "the tokenizer learnt from it"
        words = texts.understood(recipe.model, dataset, tokenizer)
        learn = "leave model.start empty to learn a tokenizer from the catalogue"
        sentence = words.sentence(reader, learn if recipe.model.start else "raise model.vocabulary")
        return Material(item_words, item_words.digest(), dataset.path, note=sentence)

    @classmethod
    def of_run(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        item_words = ItemWords.read(folder)
        return Material(item_words, item_words.digest(), folder)

    @staticmethod
    def keep(material: Material, folder: Path) -> None:
        material.value.write(folder)


class _Start(Kind):
    """The weights that training starts from. A run that has begun holds its own, so nothing is kept but where they were from."""

    @classmethod
    def gather(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        weights, digest = texts.start(recipe.model, folder)
        kind = MODELS[recipe.family]
        if weights is not None and texts.of_other_data(recipe.model, folder, dataset.info.fingerprint):
            if not kind.unseen_items:
                raise SeqscopeError(
                    f"{recipe.model.start} was trained on other data than {dataset.path} holds now, and {recipe.name} knows "
                    "items by their numbers there. Train it again first."
                )
            weights.pop(kind.per_item, None)
        return Material(weights, digest, folder)

    @classmethod
    def of_run(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        return Material(None, "", folder)


class _Attributes(Kind):
    """What a model is told of items in words: of each, its attributes as key and value. The run keeps those that it was trained
    with, as a catalogue may say something else later."""

    FILE = "attributes.json"

    @classmethod
    def gather(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        item_attributes = attributes(pq.read_table(dataset.path / "items.parquet").sort_by("item"))
        return cls._material(item_attributes, dataset.path)

    @staticmethod
    def _material(item_attributes: list[list[tuple[str, str]]], place: Path) -> Material:
        return Material(item_attributes, hashlib.sha256(json.dumps(item_attributes).encode()).hexdigest(), place)

    @classmethod
    def of_run(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        try:
            items = [[(str(key), str(text)) for key, text in pairs] for pairs in load_json(folder / _Attributes.FILE)]
        except FileNotFoundError:  # runs of before have no copy
            return cls.gather(recipe, dataset, folder)
        except (ValueError, TypeError) as error:
            raise SeqscopeError(
                f"{folder / _Attributes.FILE} is damaged ({error}). Train again with --restart."
            ) from None
        return cls._material(items, folder)

    @staticmethod
    def keep(material: Material, folder: Path) -> None:
        write_json(folder / _Attributes.FILE, material.value)


class _Graph(Kind):
    """Who has what in the training log, to propagate over or to fold users in. Read from the dataset whenever needed."""

    @classmethod
    def gather(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        material = cls.of_run(recipe, dataset, folder)
        graph, kind = material.value, MODELS[recipe.family]
        if not issubclass(kind, GraphRecommender):
            return material
        needed = kind.bytes_needed(recipe.model, graph)
        try:
            graph.check_bytes(needed)
        except ValueError as error:
            raise SeqscopeError(f"{dataset.path}: {error}.") from None
        return replace(material, note=f"{graph}; training takes about {needed / 2**20:,.0f} MB")

    @classmethod
    def of_run(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        log = dataset.training

        def user_id(row: int) -> str:
            return repr(pq.read_table(dataset.path / "users.parquet", columns=["user_id"])["user_id"][row].as_py())

        try:
            graph = Graph.of(log.values, log.offsets, dataset.num_items, user_name=user_id)
        except ValueError as error:
            raise SeqscopeError(f"{dataset.path}: {error}.") from None
        digest = hashlib.sha256(graph.offsets.tobytes() + graph.items.tobytes()).hexdigest()
        return Material(graph, digest, dataset.path)


class _Times(Kind):
    """When each training event was: int64, seconds since 1970, in the order of the log. Read from the dataset whenever needed."""

    @classmethod
    def gather(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        if dataset.timestamps is None:
            raise SeqscopeError(
                f"{dataset.path} does not say when its events were, which {recipe.name} reads. Import it with --time-column, or "
                f"{MODELS[recipe.family].where_no_times}."
            )
        times = dataset.timestamps[dataset.roles == Role.TRAIN]
        return Material(times, hashlib.sha256(times.tobytes()).hexdigest(), dataset.path)


class _Gaps(Kind):
    """How long after the event before it a validation event was: int64 [10], seconds, the 5 %, 15 %, … 95 % quantiles over those
    with one before; [0] where there are none. (The training events are not asked: a user's gaps grow.)"""

    @classmethod
    def gather(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        _Times.gather(recipe, dataset, folder)  # which says what to do where there are none
        assert dataset.timestamps is not None
        held = np.setdiff1d(dataset.validating, dataset.events.offsets)
        gaps = dataset.timestamps[held] - dataset.timestamps[held - 1]
        quantiles = np.quantile(gaps, np.arange(0.05, 1, 0.1), method="nearest") if len(gaps) else np.zeros(1, np.int64)
        return Material(quantiles, None, dataset.path)


class _Vectors(Kind):
    """What a model that compares texts is given: a vector of every item's words."""

    @classmethod
    def gather(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        config = recipe.model
        if start := getattr(config, "start", ""):
            before = TextVectors.read(texts.run_of(start, folder, TABLE))
            config = replace(config, encoder=before.place) if config.encoder == "auto" else config
        vectors, words = make_vectors(config, dataset)
        if start and vectors.digest != before.digest:
            raise SeqscopeError(
                f"{recipe.name} starts from {start}, which knows texts by {before.title}, not by {vectors.title}: "
                "leave model.encoder=auto"
            )
        sentence = words.sentence(vectors.encoder, "set model.encoder=scratch")
        return replace(cls._material(vectors, dataset.path), note=sentence)

    @classmethod
    def of_run(cls, recipe: Recipe, dataset: Dataset, folder: Path) -> Material:
        return cls._material(TextVectors.read(folder), folder)

    @staticmethod
    def keep(material: Material, folder: Path) -> None:
        material.origin.write(folder)

    @staticmethod
    def _material(vectors: TextVectors, source: Path) -> Material:
        return Material(vectors.rows, vectors.identity(), source, vectors)


def read_elsewhere(recipe: Recipe, dataset: Dataset, folder: Path) -> Materials:
    """As `of_run`, for a catalogue that the run never saw: its words in the run's tokens, or their vectors by its encoder."""
    if "vectors" in MODELS[recipe.family].needs:
        run_vectors = TextVectors.read(folder)
        fields = fields_elsewhere(
            pq.read_schema(dataset.path / "items.parquet"), run_vectors.fields, len(run_vectors.fields)
        )
        config = replace(recipe.model, encoder=run_vectors.place, fields=tuple(map(str, fields)))
        vectors, known_words = make_vectors(config, dataset)
        note(known_words.sentence(vectors.encoder, "its answers say little here"))
        return Materials(vectors=_Vectors._material(vectors, dataset.path))
    run_words = ItemWords.read(folder)
    tokenizer = parse(run_words.tokenizer)
    words = texts.read(recipe.model, dataset, tokenizer, elsewhere=True)
    heard = texts.understood(recipe.model, dataset, tokenizer, elsewhere=True)
    note(heard.sentence(recipe.name, "its answers say little here"))
    return Materials(words=Material(words, words.digest(), dataset.path), start=_Start.of_run(recipe, dataset, folder))


KINDS: dict[str, type[Kind]] = {
    "identifiers": _Identifiers,
    "words": _Words,
    "start": _Start,
    "attributes": _Attributes,
    "vectors": _Vectors,
    "graph": _Graph,
    "times": _Times,
    "gaps": _Gaps,
}


# --- the vectors of a catalogue's words, for models that match nothing else: made by a text encoder, kept in the run folder
#
# text_vectors.npy     float32 [items, d]; zeros for an item without words
# text_vectors.json    which encoder, which columns


TABLE, ABOUT = "text_vectors.npy", "text_vectors.json"
SCRATCH = "scratch"


@dataclass(frozen=True)
class TextVectors:
    rows: np.ndarray
    encoder: str
    """Its name."""
    place: str
    """What `engine.text.embeddings.find` takes to have it again: its name, or a folder."""
    title: str
    digest: str
    fields: tuple[str, ...]
    """Columns that make up a text, as `engine.text.attributes` has them."""
    unknown: float | None = None
    """Share of the catalogue's words that the encoder does not know; None in runs that are older than this figure."""

    @property
    def without(self) -> int:
        """Items without words."""
        return int((~self.rows.any(1)).sum())

    def identity(self) -> str:
        return hashlib.sha256(self.digest.encode() + np.ascontiguousarray(self.rows).tobytes()).hexdigest()

    def write(self, folder: Path) -> None:
        write_rows(folder / TABLE, self.rows)
        about = {name: value for name, value in vars(self).items() if name != "rows"}
        write_json(folder / ABOUT, about)

    @classmethod
    def read(cls, folder: Path) -> TextVectors:
        try:
            about = load_json(folder / ABOUT)
            about["fields"] = tuple(about["fields"])
            return cls(np.load(folder / TABLE, allow_pickle=False), **about)
        except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
            raise SeqscopeError(
                f"{folder} holds no vectors of items that can be read ({first_line(error)[:200]}). Train again."
            ) from None


def make_vectors(config: Any, dataset: Dataset) -> tuple[TextVectors, Known]:
    """The vectors of the dataset's items, by the encoder of the configuration (of the fields that it names), and how many words
    that knows."""
    stored = embed(dataset.path, config.encoder, config.fields or None)
    encoder = stored.encoder
    rows = stored.vectors * np.array([[bool(text)] for text in stored.texts])
    place = config.encoder
    if place in ("auto", SCRATCH):  # one that was trained on this very catalogue has its folder as a name
        place = str(_trained(stored)) if encoder.name == SCRATCH else encoder.name
    words = understood(stored, dataset.path)
    made = TextVectors(
        rows.astype(np.float32),
        encoder.name,
        place,
        encoder.title,
        encoder.digest,
        stored.fields,
        round(words.share, 4),
    )
    return made, words


def _trained(vectors: Stored) -> Path:
    """The folder of the encoder that was trained on the catalogue: it lies beside the vectors."""
    folders = sorted(path.parent for path in vectors.path.parent.glob(f"{SCRATCH}-*/scratch.json"))
    return next(
        (folder for folder in folders if find(str(folder)).digest == vectors.encoder.digest), vectors.path.parent
    )
