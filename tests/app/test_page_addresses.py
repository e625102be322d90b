"""What pages have for themselves in the address: read and written, and one message for each choice that cannot be had."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from app import zoo
from app.screens import PAGES
from app.session import state
from app.session.pages import read
from tests.app.test_page_catalogue import films
from tests.app.writers import WRITER
from tests.runtime.bundles import make_zoo
from tests.runtime.generators import with_attention, write_generator
from tests.runtime.spaces import write_space
from tests.runtime.tokenizations import write_tokenization

GOOD = {
    "compare": {"section": "beam", "beam": "writer", "width": "10", "temperature": "2.5", "write": "anything"},
    "catalogue": {
        "find": "Film", "only": "genres~Mystery", "between": "year~1970~1979", "sort": "year-down", "page": "2",
    },
    "attention": {
        "model": "beta", "view": "head", "layer": "1", "head": "2", "scale": "unit", "latest": "7", "people": "position",
    },
    "semantic_ids": {"left": "old", "right": "rqvae", "level": "2", "of": "rqvae", "prefix": "1", "colour": "genres"},
    "graph": {"model": "alpha"},
    "map": {
        "space": "codes.rqvae", "beside": "latents.rqvae", "projection": "pca", "colour": "code.rqvae", "scale": "log",
        "by": "items", "find": "Film", "top": "next", "only": "genres~Horror", "isolate": "yes", "code": "rqvae.1-2",
        "area": "prefix.rqvae~2-1",
    },
    "metrics": {"protocol": "full", "metric": "HR", "at": "5", "baseline": "beta", "by": "length", "along": "seconds"},
    "users": {
        "find": "u", "least": "1", "most": "12", "first": "beta", "second": "alpha", "hits": "second", "sort": "rank.beta",
        "order": "down", "page": "1", "user": "u2",
    },
    "report": {"parts": "lists~metrics", "attention": "beta", "view": "rollout", "rows": "yes", "title": "Mine"},
}  # fmt: skip

BAD = {  # one for each check of a page; choices of a few words have all the same
    "compare": [
        ("beam", "alpha", "generates no semantic IDs"),
        ("width", "0", "beam width “0”; possible is 1 to 100"),
        ("width", "101", "beam width"),
        ("temperature", "0", "temperature “0”; possible is 0.1"),
        ("section", "<b>", "section “<b>”"),
    ],
    "catalogue": [
        ("only", "height~tall", "filters by attributes that this catalogue does not have: “height~tall”"),
        ("only", "genres", "filters by attributes"),
        ("between", "year~a~b", "filters by attributes"),
        ("between", "item~1~2", "filters by attributes"),
        ("find", "x" * 201, "more than 200 characters"),
        ("sort", "height-up", "the order of items “height-up”"),
        ("page", "3", "page of the list “3”; possible is 1 to 2"),
    ],
    "attention": [
        ("model", "zeta", "model that this dataset does not have: “zeta”"),
        ("scale", "", "colours “”; possible is fit, unit or rows"),
        ("layer", "3", "layer “3”; possible is 1 to 2"),
        ("head", "٢", "head “٢”"),
        ("beside", "writer", "model to compare with “writer”; possible is "),
    ],
    "semantic_ids": [
        ("left", "nobody", "a tokenizer that this dataset does not have"),
        ("level", "9", "possible is 1 to 2"),
        ("prefix", "99", "does not have"),
        ("colour", "nothing", "which this catalogue does not have"),
    ],
    "map": [
        ("space", "nothing", "asks for a map that this dataset does not have: “nothing”"),
        ("space", "latents.old", "asks for the map “latents.old”. This export is older"),
        ("beside", "<script>", "map that this dataset does not have: “<script>”"),
        ("colour", "code.nobody", "asks for colours by “code.nobody”"),
        ("scale", "square", "colour scale “square”; possible is linear, log or quantile"),
        ("find", "x" * 201, "a text of more than 200 characters"),
        ("top", "history~history", "draws “history~history” on top"),
        ("top", "", "possible is history, next"),
        ("only", "genres~Smell", "values that this catalogue does not have: “genres~Smell”"),
        ("code", "rqvae.1-5", "a code that no tokenizer of this dataset has: “rqvae.1-5”"),
        ("code", "old.1-1", "a code that no tokenizer"),
        ("area", "alpha~" + "~".join(["0_0_1_1"] * 11), "an area of a map that cannot be read"),
        ("area", "popular~0_0_1_1", "cannot be read"),
        ("area", "alpha~" + "1_" * 4_000 + "1", "cannot be read"),
        ("area", "item.ids~toy-1~nobody", "items that this dataset does not have"),
        ("area", "item.ids~", "items that this dataset does not have"),
        ("area", "prefix.rqvae~9", "by the codes “prefix.rqvae~9”"),
        ("area", "prefix.nobody~1", "by the codes"),
    ],
    "metrics": [
        ("protocol", "luck", "protocol “luck”, which no model here was evaluated under; there is full"),
        ("metric", "AUC", "metric “AUC”; possible is NDCG, HR or MRR"),
        ("at", "11", "cut-off “11”; possible is 1, 5, 10, 20 or 50"),
        ("baseline", "nobody", "not evaluated under this protocol, or that is not here: “nobody”"),
        ("by", "attribute:smell", "groups users by “attribute:smell”"),
    ],
    "users": [
        ("find", "u" * 101, "more than 100 characters"),
        ("least", "13", "possible is 0 to 12"),
        ("first", "<b>", "that is not here: “<b>”"),
        ("second", "beta", "the model “beta” with itself"),
        ("sort", "rank.nobody", "rank.nobody"),
        ("page", "2", "possible is 1"),
        ("user", "u99", "the user “u99”, whom this dataset does not have"),
    ],
    "report": [
        ("parts", "lists~nope", "part that a report does not have: “nope”"),
        ("attention", "nope", "model that this dataset does not have"),
        ("codes", "rqvae~nope", "tokenizer that this dataset does not have: “nope”"),
        ("protocol", "nope", "“nope”, which no model was evaluated under"),
        ("saved_report", "../x", "which cannot be one"),
        ("title", "x" * 121, "more than 120 characters"),
    ],
}


@pytest.fixture(scope="module", autouse=True)
def exports(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[None]:
    """The sample; toys with films, a space of words, tokenizers with maps and without, and a model that writes codes."""
    path = make_zoo(tmp_path_factory.mktemp("exports"))
    pq.write_table(films(), path / "items.parquet")
    write_space(path, "minilm", without=(6,))
    write_tokenization(path, "rqvae", maps=True, order=1)
    write_tokenization(path, "old", seed=1, order=2)
    with_attention(write_generator(path, WRITER), WRITER, whole=True)
    (path.parent / "sample").symlink_to(root / "exports" / "sample")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQSCOPE_EXPORTS", str(path.parent))
        yield


def parse(page: str, address: dict[str, str]) -> state.State:
    return state.parse({"ds": "toys", "h": "toy-1", **address}, ["toys"], zoo.open_zoo, PAGES[page])


@pytest.mark.parametrize("page", GOOD)
def test_all_of_a_page_is_read_and_written(page: str) -> None:
    now = parse(page, GOOD[page] | {"item": "toy-9"})
    assert now.own == GOOD[page] and now.item == "toy-9" and not now.problems
    assert state.parse(state.params(now), ["toys"], zoo.open_zoo, PAGES[page]) == now


@pytest.mark.parametrize("page", BAD)
def test_what_cannot_be_had_gets_one_message_and_the_rest_is_kept(page: str) -> None:
    for name, text, says in BAD[page]:
        now = parse(page, GOOD[page] | {name: text})
        assert len(now.problems) == 1 and says in now.problems[0], (name, text[:100])
        assert now.own == {other: value for other, value in GOOD[page].items() if other != name}
        assert now.history == ("toy-1",)


@pytest.mark.parametrize(
    ("dataset", "model", "name", "text", "says"),
    [
        ("toys", "writer", "decoder", "3", "possible is mean, 1 or 2"),
        ("sample", "recformer", "word_layer", "3", "layer for the words “3”; possible is mean, 1 or 2"),
        ("sample", "recformer", "word_head", "<b>", "head for the words “<b>”; possible is mean, 1 or 2"),
    ],
)
def test_choices_of_models_that_write_codes_or_read_words(
    dataset: str, model: str, name: str, text: str, says: str
) -> None:
    kept, problems = read(PAGES["attention"].parameters, {"model": model, name: text}, zoo.open_zoo(dataset))
    assert kept == {"model": model} and len(problems) == 1 and says in problems[0]
