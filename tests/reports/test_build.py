"""What goes into a report: what the models say, to the item; and nothing that was not wanted."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.analysis import beam_search, graph_paths, map_colouring, metrics
from app.reports import document, html
from app.reports.build import build
from app.reports.document import PARTS, Asked, Report
from app.reports.files import tables
from app.reports.parts import attention, codes, effects, lists
from app.reports.parts import map as map_part
from app.reports.parts.graph import Paths
from app.reports.parts.metrics import verdict
from app.reports.summary import says_so, summary
from app.reports.verify import verify
from app.styles import titled
from engine.errors import SeqscopeError
from engine.runtime import NOT_SETTLED, STILL_IMPROVING, Zoo, judge, last_row
from tests.reports.conftest import HISTORY, with_user_vectors
from tests.runtime import bundles
from tests.runtime.bundles import TOYS, describe, retrain, rewrite, seal, with_parts


@pytest.fixture(scope="module")
def films(root: Path) -> Zoo:
    return Zoo.open(root / "exports" / "films")


def events(models: Zoo, ids: list[str]) -> list[int]:
    found = [models.position(item_id) for item_id in ids]
    return [item for item in found if item is not None]


def test_lists_are_the_models_and_effects_leave_one_out(models: Zoo, report: Report) -> None:
    history = events(models, HISTORY)
    for one in report.lists or []:
        best = models.bundles[one.model].recommend_one(history, 5)
        assert [item.item_id for item in one.items] == [models.item_ids[item] for item in best.items]
        assert [item.score for item in one.items] == pytest.approx(best.scores.tolist(), rel=1e-6)
        assert [item.place for item in one.items] == [1, 2, 3, 4, 5]
        assert not {item.item_id for item in one.items} & set(HISTORY)
    assert report.effects is not None and report.lists is not None
    assert report.effects.item_id == report.lists[0].items[0].item_id
    item = models.position(report.effects.item_id)
    assert item is not None
    for one in report.effects.models:
        effects = models.bundles[one.model].leave_one_out(events(models, HISTORY), item)
        assert one.effect == pytest.approx(effects.effect.tolist(), rel=1e-5, abs=1e-7)
        probable = effects.log_probability_effect.tolist() if np.isfinite(effects.log_probability) else []
        assert one.log_probability == pytest.approx(probable, rel=1e-5, abs=1e-7)
        assert one.rank == effects.rank and one.moves == pytest.approx(effects.move.tolist())


def test_an_item_is_in_so_many_of_the_lists_that_there_are(report: Report) -> None:
    first, *_ = report.lists or []
    silent = first.model_copy(update={"cannot": "It needs an item.", "items": []})
    assert "in 2 of 2" in next(lists._tags(first, [first, first, silent], report))


def test_what_ifs_and_their_moves(models: Zoo, report: Report) -> None:
    assert [one.name for one in report.what_ifs or []] == ["edited", "without-last", "swapped", "nothing"]
    edited = next(one for one in report.what_ifs or [] if one.name == "edited")
    before = {one.model: one for one in report.lists or []}
    for own in edited.models:
        after = models.bundles[own.model].recommend_one(events(models, HISTORY[:3]), 5).items
        now = {models.item_ids[item]: place for place, item in enumerate(after, 1)}
        was = {item.item_id: item.place for item in before[own.model].items}
        assert {item.item_id: (item.before, item.after) for item in own.items} == {
            item_id: (was.get(item_id), now.get(item_id)) for item_id in was.keys() | now.keys()
        }
    nothing = next(one for one in report.what_ifs or [] if one.name == "nothing")
    cannot = {own.model: own.cannot for own in nothing.models}
    assert cannot["popular"] is None and "at least one item" in (cannot["alpha"] or "")


def test_shares_of_attention_are_per_cent_in_figures_as_in_sentences(models: Zoo) -> None:
    made = build(models, Asked(history=HISTORY, parts=["attention"], attention=["alpha"]))
    (alpha,) = made.attention or []
    blocks = attention.PART.blocks([alpha], made)
    (bars, _) = next(block["figures"] for block in blocks if block["kind"] == "figures")
    assert all(f"{weight:.1%}" in str(bars.draw("")) for weight in alpha.last)
    least = alpha.model_copy(update={"last": [0.0004, *alpha.last[1:]]})
    (bars, _) = next(block["figures"] for block in attention.PART.blocks([least], made) if block["kind"] == "figures")
    assert all("&lt;0.1%" in str(drawn) for drawn in (bars.draw(""), bars.live()))
    assert {text[-1] for text in bars.live().data[0].text} == {"%"}


def test_figures_say_what_of_a_long_history_they_leave_out(films: Zoo) -> None:
    asked = Asked(history=films.item_ids[:50], parts=["history", "effects", "attention"], models=["sasrec"])
    made = build(films, asked)
    blocks = attention.PART.blocks(made.attention or [], made)
    (bars, _) = next(block["figures"] for block in blocks if block["kind"] == "figures")
    assert all("the other 35 positions" in str(drawn) for drawn in (bars.draw(""), bars.live()))
    assert "The map has the latest 40 of 50 positions." in str(blocks)
    assert made.effects is not None and "Drawn are the latest 24 of 50 items." in str(
        effects.PART.blocks(made.effects, made)
    )


def test_attention_is_the_models(models: Zoo, report: Report) -> None:
    found = {one.model: one for one in report.attention or []}
    assert set(found) == {"alpha", "beta", "gamma", "writer"}
    seen = models.bundles["beta"].attention(events(models, HISTORY))
    assert found["beta"].last == pytest.approx(last_row(seen).tolist(), rel=1e-5)
    assert found["beta"].positions[-1].item_id is None
    matrix = np.array([[np.nan if cell is None else cell for cell in row] for row in found["alpha"].matrix])
    assert np.isnan(matrix[np.triu_indices(len(matrix), 1)]).all()
    assert np.nansum(matrix, axis=1) == pytest.approx(1.0, abs=1e-4)
    bundle = models.bundles["writer"]
    first = int(bundle.recommend_one(events(models, HISTORY), 1).items[0])
    looked = beam_search.by_event(bundle.cross_attention(events(models, HISTORY), first))  # as the page Attention does
    positions, weights = found["writer"].of_prediction
    assert weights == pytest.approx(list(looked.values()), rel=1e-5)
    assert [position.place for position in positions] == [place + 1 for place in looked]
    assert found["writer"].grouped and len(found["writer"].positions) == 8  # an item each, as long as the model reads


def test_rollout_where_it_is_defined(models: Zoo) -> None:
    made = build(models, Asked(history=HISTORY, parts=["attention"], view="rollout", attention=["alpha", "gamma"]))
    alpha, gamma = made.attention or []
    assert alpha.view == "rollout" and alpha.last and not gamma.last
    assert gamma.cannot == models.bundles["gamma"].cannot("rollout")


def test_gates_are_the_models(films: Zoo) -> None:
    history = [films.item_ids[item] for item in (3, 1, 4, 1, 5, 9)]
    made = build(films, Asked(history=history, models=["hgn", "markov"], parts=["history", "attention"]))
    (hgn,) = made.attention or []
    assert hgn.gates is not None and hgn.cannot and not hgn.last
    openings = films.bundles["hgn"].gates(events(films, history))
    assert [at.place for at in hgn.gates.positions] == [place + 1 for place in openings]
    assert hgn.gates.openings == pytest.approx(list(openings.values()), rel=1e-5)
    assert tables(made)["gates"].rows[-1][1:3] == (6, history[-1]) and html.render(made)


def test_overlap_counts_what_is_shared_and_codes_are_those_of_the_items(report: Report, models: Zoo) -> None:
    assert report.overlap is not None and report.lists is not None
    lists = {one.model: {item.item_id for item in one.items} for one in report.lists}
    for i, first in enumerate(report.overlap.models):
        for j, second in enumerate(report.overlap.models):
            assert report.overlap.shared[i][j] == len(lists[first] & lists[second])
    assert report.overlap.different == len(set().union(*lists.values()))
    assert [one.tokenizer for one in report.codes or []] == ["letter", "rqvae"]
    one = next(one for one in report.codes or [] if one.tokenizer == "rqvae")
    table = models.tokenizations["rqvae"].identifiers.codes
    for coded in one.items:
        assert coded.codes == table[models.position(coded.item_id)].tolist()
    assert {coded.item_id for coded in one.items} >= set(HISTORY)


def test_codes_say_of_which_items_they_are_where_they_are_not_of_all(films: Zoo) -> None:
    asked = Asked(history=films.item_ids[:2], parts=["lists", "codes"], models=["sasrec", "markov"], codes=["letter"])
    few, many = (build(films, asked.model_copy(update={"k": k})) for k in (5, 50))
    words = [str(codes.PART.blocks(made.codes or [], made)) for made in (few, many)]
    assert (
        [text.count("the first 60 items") for text in words]
        == [text.count("the first 40 items") for text in words]
        == [0, 1]
    )


def test_paths_and_layers_are_those_of_the_page(models: Zoo, report: Report) -> None:
    assert report.graph is not None and report.effects is not None
    item, history = models.position(report.graph.item_id), tuple(events(models, HISTORY))
    assert item is not None and report.graph.item_id == report.effects.item_id
    assert [one.model for one in report.graph.models] == ["alpha", "plain"]
    for one in report.graph.models:
        drawn, layers = Paths.of(report.graph, one), graph_paths.layers(models, one.model, history, item)
        page = graph_paths.branches(models, one.model, history, item)
        told = graph_paths.table(page, {at: titled(models, at) for at in range(len(models))})
        assert graph_paths.table(drawn.branches, drawn.titles)["to"].tolist() == told["to"].tolist()
        assert drawn.sums == (one.model == "alpha")
        assert one.layers is not None and layers is not None
        np.testing.assert_allclose(one.layers.by_layer, layers.by_layer, rtol=1e-5)
        assert one.layers.items[0].ranks == [ranks[layers.items[0]] for ranks in layers.ranks.values()]
    rows = [row for row in tables(report)["graph"].rows if row[0] == "Alpha"]
    score = np.sum(report.graph.models[0].layers.adds)  # type: ignore[union-attr]
    assert sum(row[-1] for row in rows if row[-1] is not None) == pytest.approx(score, rel=1e-3)
    assert "is the sum of these" in html.render(report).decode()


def test_without_a_model_that_carries_a_graph_nothing_is_said_of_one(models: Zoo) -> None:
    made = build(models, Asked(history=HISTORY, models=["beta"], parts=["history", "graph"]))
    assert made.graph is None and made.asked.parts == ["history"]
    assert "graph" not in document.write(made).decode()


def test_a_map_is_coloured_by_single_genres_where_the_catalogue_has_them_in_one_text(copied: Path) -> None:
    genres = pq.read_table(copied / "items.parquet")["genres"].to_pylist()
    rewrite(copied / "items.parquet", genres=pa.array([", ".join(some) for some in genres], pa.string()))
    made = build(Zoo.open(copied), Asked(history=HISTORY, rows=True, parts=["map"])).map
    assert made is not None and made.column == "Genres"
    assert set(made.groups) <= {"wood", "tin", "plush", map_colouring.NOTHING}


def test_a_map_of_some_of_its_items_says_that_those_marked_were_not_drawn_at_random(
    models: Zoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_part, "POINTS", 9)
    report = build(models, Asked(history=HISTORY, parts=["map"]))
    assert report.map is not None and 9 <= len(report.map.x) < report.map.total == 40
    words = f"{len(report.map.x)} of 40 items, drawn at random but for those that are marked"
    assert words in html.render(report, "static").decode()
    whole = build(models, Asked(history=HISTORY, parts=["history", "map"])).map
    assert whole is not None
    places = {(round(at.x, 1), round(at.y, 1)) for at in whole.history}
    assert places <= {*zip(whole.x, whole.y, strict=True)}
    assert not places <= {*zip(report.map.x, report.map.y, strict=True)}, "its points would tell the history"
    some = whole.model_copy(update={"history": whole.history[1:3]})  # the first item is not on the map
    (steps,) = [trace for trace in map_part._live(some, report.models[0])["data"] if trace["name"] == "History"]
    assert [*steps["text"]] == ["2", "3"], "they keep their numbers"


def test_without_rows_nothing_of_the_data_leaves_but_what_is_told(models: Zoo) -> None:
    """The catalogue's own words: titles, categories and people."""
    person = models.users["user_id"][3].as_py()
    ids = [models.item_ids[item] for item in models.users["history"][3].as_py()]
    with_rows = build(models, Asked(history=ids, user=person, rows=True))
    without = build(models, Asked(history=ids, user=person))
    assert with_rows.history is not None and with_rows.history.person == person
    assert with_rows.history.target is not None and with_rows.map is not None and with_rows.map.titles
    assert all(one.target_rank is not None for one in with_rows.lists or [] if one.model != "writer")
    text = document.write(without).decode()
    assert person not in text and "plush" not in text
    told = {item.item_id for one in without.lists or [] for item in one.items} | set(ids)
    told |= {item.item_id for one in without.what_ifs or [] for own in one.models for item in own.items}
    others = [models.titles[item] for item, item_id in enumerate(models.item_ids) if item_id not in told]
    assert others and not [title for title in others if json.dumps(title, ensure_ascii=False) in text]


def test_a_person_is_named_for_their_own_history_alone_and_what_is_not_shown_is_left_out(models: Zoo) -> None:
    made = build(models, Asked(history=["toy-9"], user=models.users["user_id"][3].as_py(), rows=True))
    assert made.history is not None and made.history.person is None and made.asked.user is None
    made = build(models, Asked(history=["toy-9"], models=["alpha"], attention=["beta"], map="beta"))
    assert made.attention == [] and made.asked.attention == [] and made.asked.map is None
    assert made.map is not None and made.map.model == "alpha"


def test_codes_of_a_report_without_its_history_are_of_its_lists(models: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "CODED", 3)
    made = build(models, Asked(history=HISTORY, parts=["lists", "codes"]))
    first = dict.fromkeys(item.item_id for listing in made.lists for item in listing.items)
    assert [[item.item_id for item in entry.items] for entry in made.codes] == [[*first][:3]] * len(made.codes)


def test_without_the_history_nothing_tells_it(models: Zoo) -> None:
    wanted = [part for part in PARTS if part != "history"]
    made = build(models, Asked(history=HISTORY, k=3, parts=wanted), address="https://x.org/?h=secret")
    assert made.history is None and made.asked.history is None and made.address is None
    listed = {item.item_id for one in made.lists or [] for item in one.items}
    text = document.write(made).decode()
    for item_id in ("ключ", "a b&c=d#e", "toy-9"):
        assert item_id in listed or json.dumps(item_id, ensure_ascii=False) not in text
    assert document.read(document.write(made)) == made


@pytest.mark.parametrize("part", PARTS)
def test_one_part_alone(models: Zoo, part: document.Part) -> None:
    made = build(models, Asked(history=["toy-9", "toy-12"], parts=[part], k=3, rows=True))
    for other in PARTS:
        assert (getattr(made, other.replace("-", "_")) is None) == (other != part), other
    assert document.read(document.write(made)) == made


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked(history=["nope"]), "has no item “nope”"),
        (Asked(history=["toy-9"], edited=["nope", "neither"]), "“nope” and 1 more"),
        (Asked(models=["nope"]), "no model “nope”; there are alpha"),
        (Asked(codes=["nope"]), "no tokenizer “nope”; there are letter, rqvae"),
        (Asked(history=["toy-9"], protocol="nope"), "protocol “nope”; there are full"),
        (Asked(item="nope"), "has no item “nope”"),
    ],
)
def test_what_the_zoo_lacks(models: Zoo, asked: Asked, words: str) -> None:
    with pytest.raises(SeqscopeError, match=words):
        build(models, asked)


def test_metrics_begin_with_the_floor_and_say_nothing_beyond_a_beam(copied: Path) -> None:
    seal(copied / "plain", family="markov")
    seal(copied / "beta", metrics={"full": {"outside@5": 0.5}})
    retrain(copied / "beta", best_epoch=2)
    retrain(copied / "plain", best_epoch=1, recipe={"training": {"patience": 2}})
    with_user_vectors(copied / "alpha", [40.0] * 4)
    report = build(Zoo.open(copied), Asked(parts=["metrics"], models=["alpha", "beta", "plain"], protocol="full+user"))
    assert report.metrics is not None and report.metrics.protocol == "full"
    rows = tables(report)["metrics"].rows
    assert list(dict.fromkeys(row[0] for row in rows))[:3] == ["Plain", "Alpha", "Alpha, user vectors"]
    assert {row[3:6] + row[-1:] for row in rows if "script" in row[0]} == {(None, None, None, "beam of 5")}
    said, page = verdict(report.metrics, report), html.render(report, "interactive").decode()
    assert "Alpha, user vectors has a lower mean than Plain" in said and "(beam of 5)" in said
    assert report.metrics.verdict is not None and report.metrics.verdict.untrained.name in ("plain", "popular")
    sentences = judge.sentences(report.metrics.verdict)
    assert said.startswith(sentences) and sentences.split(";")[0] in page
    assert "n/a <small>(beam of 5)" in page and page.count(STILL_IMPROVING) == page.count(NOT_SETTLED) == 1
    beware = next(line.text for line in report.summary if line.about == "Beware")
    assert f"{STILL_IMPROVING.capitalize()}: {report.titles['beta']}. {NOT_SETTLED.capitalize()}: Plain." in beware
    assert page.index("Plain</span>") < page.index("Alpha, user vectors</span>")


def test_metrics_have_a_cut_off_that_the_page_offers(models: Zoo) -> None:
    """Where the catalogue has no more than k items, each is a hit."""
    report = build(models, Asked(parts=["metrics"], k=100))
    assert report.metrics is not None and report.metrics.k == metrics.cutoffs(len(models))[-1] == 20 < len(models) < 50
    before = report.model_copy(update={"metrics": report.metrics.model_copy(update={"k": 50})})
    assert [entry.subject for entry in verify(before, models) if not entry.holds] == ["metrics"]
    assert all(entry.holds is not False for entry in verify(before, models))


def test_what_a_report_leaves_out_is_not_called_missing(copied: Path) -> None:
    seal(copied / "plain", family="markov")
    models = Zoo.open(copied)
    some, all_of_them = (build(models, Asked(parts=["metrics"], models=names)) for names in (["alpha"], None))
    assert "seqscope baselines" in verdict(all_of_them.metrics, all_of_them)
    assert "seqscope baselines" not in verdict(some.metrics, some)


def test_the_summary_of_some_models_does_not_take_them_for_all(copied: Path) -> None:
    report = build(Zoo.open(copied), Asked(parts=["metrics"], models=["beta", "plain"]))
    (best,) = (line for line in report.summary if line.about == "Best")
    assert "Of all that were evaluated: Alpha" in best.text and "every other model here" not in best.text
    before = best.text.replace("Of all that were evaluated: ", "").replace("model of this report", "model here")
    older = [line.model_copy(update={"text": before}) if line.about == "Best" else line for line in report.summary]
    assert says_so(report.model_copy(update={"summary": older}), report)  # one that was made before this was said
    claimed = [
        line.model_copy(update={"text": "Of all that were evaluated: " * (line == best) + line.text})
        for line in report.summary
    ]
    # it is of the models of the report, not of all
    assert not says_so(report.model_copy(update={"summary": claimed}), report)


def test_the_summary_is_written_from_the_data(copied: Path) -> None:
    rewrite(copied / "alpha" / "ranks.parquet", rank=[1.0] * 4)
    seal(copied / "alpha", title="Best of all")
    models = Zoo.open(copied)
    report = build(models, Asked(history=["toy-9", "toy-8"], k=5))
    lines = {line.about: line.text for line in report.summary}
    assert list(lines) == ["Compared", "Best", "For whom", "Beware", "Check"]
    assert "a history of 2 items" in lines["Compared"] and "over 4 users" in lines["Compared"]
    assert lines["Best"].startswith("Best of all has the highest NDCG@5, 1.0000 (95% interval 0.3976 to 1.0000)")
    assert "simulated" in lines["Beware"] and "protocol “Full ranking”" in lines["Compared"]
    assert f"--verify {report.stem}.json" in lines["Check"]
    page = html.render(report, "static").decode()
    assert "FILE" not in page and "report.json" not in page and "<h3>Empty history" in page
    assert "Collision rate: 1 − unique IDs" in page and "bootstrap over people" not in page and "level with" not in page
    bare = {line.about: line.text for line in build(models, Asked(parts=["codes"])).summary}
    assert "no metrics" in bare["Best"] and "cannot be checked" in bare["Check"]
    assert lines["For whom"] == "No difference between groups can be told: there are too few users."
    seal(copied / "popular", family="sasrec")
    learned = {line.about: line.text for line in build(Zoo.open(copied), Asked(parts=["metrics"])).summary}
    assert learned["For whom"].endswith("only one of the two was evaluated.")


def test_among_equals_the_best_is_the_one_that_is_marked(copied: Path) -> None:
    ranks = sorted(path for path in copied.glob("*/ranks.parquet"))
    for path in ranks:
        rewrite(path, rank=[1.0] * 4)
        seal(path.parent)
    report = build(Zoo.open(copied), Asked(parts=["metrics"]))
    assert report.metrics is not None and len(ranks) > 1
    metrics = report.metrics
    (marked,) = (e.model for e in metrics.estimates if e.mark == "best" and e.metric == f"NDCG@{metrics.k}")
    assert metrics.verdict is not None and metrics.verdict.untrained is not None
    assert marked == metrics.verdict.untrained.name != metrics.estimates[0].model
    for order in (1, -1):
        listed = metrics.model_copy(update={"estimates": metrics.estimates[::order]})
        (best,) = (line.text for line in summary(report.model_copy(update={"metrics": listed})) if line.about == "Best")
        assert best.startswith(f"{report.titles[marked]} has the highest")


def test_what_p_is_at_least_stands_beside_it_and_in_the_words_of_the_page(models: Zoo) -> None:
    report = build(models, Asked(parts=["metrics"], models=["alpha", "beta", "plain"], k=5))
    rows = tables(report)["metrics"].rows
    least = "p adjusted by Holm for 2 comparisons, with 2,000 samples 0.002 at least"
    assert {(p is None, note) for *_, p, note in rows} == {(True, ""), (False, least)}
    assert html.render(report, "static").decode().count(least) == 1


def test_two_rows_of_one_model_are_not_compared_with_others(copied: Path) -> None:
    with_user_vectors(copied / "alpha", [1.0, 2.0, 7.0, 40.0])
    report = build(Zoo.open(copied), Asked(parts=["metrics"], models=["alpha"]))
    (best,) = (line.text for line in report.summary if line.about == "Best")
    assert report.metrics is not None and len(report.metrics.rows) == 2
    assert "has the highest" in best and "every other model" not in best


def test_a_model_that_stands_alone_is_not_called_the_best(copied: Path) -> None:
    """And none is compared with models that have no figure."""
    seal(copied / "beta", metrics={"full": {"outside@5": 0.5}})
    models = Zoo.open(copied)
    report = build(models, Asked(parts=["metrics"], models=["alpha", "beta"]))
    (best,) = (line for line in report.summary if line.about == "Best")
    assert best.text.startswith("Alpha has NDCG@10 0.")
    page = html.render(report, "static").decode()
    assert "* the best" not in page and "≈" not in page
    assert not any("lists" in line.text for line in report.summary)  # there are none
    texts = [line.text.replace("has NDCG@10", "has the highest NDCG@10,", 1) for line in report.summary]
    older = [line.model_copy(update={"text": text}) for line, text in zip(report.summary, texts, strict=True)]
    assert says_so(report.model_copy(update={"summary": older}), report)
    untold = older[-1].model_copy(
        update={"text": f"{texts[-1]} The lists cannot be checked: their history is left out."}
    )
    assert says_so(report.model_copy(update={"summary": [*older[:-1], untold]}), report)
    three = build(models, Asked(parts=["metrics"], models=["alpha", "beta", "plain"]))
    assert three.metrics is not None and three.metrics.beams == {"beta": 5}
    clear = [e.model_copy(update={"mark": "best" if e.mark == "best" else ""}) for e in three.metrics.estimates]
    metrics = three.metrics.model_copy(update={"estimates": clear})
    lines = summary(three.model_copy(update={"metrics": metrics}))
    assert "significantly more than every other model with a figure (" in next(
        o.text for o in lines if o.about == "Best"
    )


def test_metrics_say_what_held_out_items_are_before_any_verdict(copied: Path) -> None:
    cases = Zoo.open(copied).info.counts["test"]
    describe(copied, held_out={"ties": cases, "repeats": 0, "negative": 0})
    report = build(Zoo.open(copied), Asked(parts=["metrics"], models=["alpha"]))
    page = html.render(report, "static").decode()
    assert report.metrics is not None and f"{cases:,} (100%) share their time" in report.metrics.held_out[0]
    assert 0 < page.index("shuffle ties") < page.index("Novelty@")
    lines = {line.about: line.text for line in report.summary}
    assert list(lines) == ["Compared", "Best", "For whom", "Beware", "Check"]
    assert lines["Compared"].endswith(report.metrics.held_out[0]) and "shuffle ties" in lines["Beware"]


def test_scores_that_are_sums_are_told_part_by_part(films: Zoo) -> None:
    """Of weights between items, or of parts of a model: they add up to the score, and what is read again says the same."""
    history = films.item_ids[5:45:10]
    places = [films.position(item_id) for item_id in history]
    shown = films.bundles["counting"].recommend_one(places, 1)
    asked = Asked(
        history=history, item=films.item_ids[int(shown.items[0])], models=["counting", "fpmc", "sasrec"], k=1,
        parts=["history", "lists", "effects"],
    )  # fmt: skip
    report = build(films, asked)
    assert report.effects is not None and report.lists is not None
    listed = {listing.model: listing for listing in report.lists}
    counting, fpmc, sasrec = sorted(report.effects.models, key=lambda effect: effect.model)
    assert fpmc.sums is not None and not fpmc.given and "parts" not in counting.model_dump()
    assert fpmc.sums.score == pytest.approx(films.bundles["fpmc"].scores(places)[shown.items[0]], abs=1e-5)
    assert counting.sums is not None and sasrec.sums is None
    assert counting.sums.score == pytest.approx(listed["counting"].items[0].score, abs=1e-5)
    assert "given" not in sasrec.model_dump() and "adds up to" in str(effects.PART.blocks(report.effects, report))


def test_a_model_that_cannot_explain_an_item_takes_no_other_along(copied: Path) -> None:
    with_parts(copied / "alpha", TOYS[0], (0.5, 0.6))
    asked = Asked(history=HISTORY, item="toy-9", models=["alpha", "plain"], parts=["history", "effects"])
    report = build(Zoo.open(copied), asked)
    assert report.effects is not None
    alpha, plain = report.effects.models
    assert "do not add up" in (alpha.cannot or "") and plain.cannot is None and plain.effect


def test_parts_that_a_query_adds_up_stand_in_a_report(copied: Path) -> None:
    with_parts(copied / "alpha", TOYS[0])
    models = Zoo.open(copied)
    asked = Asked(history=HISTORY, item="toy-9", models=["alpha"], parts=["history", "effects"])
    report = build(models, asked)
    assert report.effects is not None
    (effect,) = report.effects.models
    assert list(effect.parts)[1:] == list(bundles.PARTS) and effect.sums is not None
    (item,) = events(models, ["toy-9"])
    assert effect.sums.score == pytest.approx(models.bundles["alpha"].scores(events(models, HISTORY))[item], abs=1e-5)
    page = html.render(report, "static").decode()
    assert document.read(document.write(report)) == report and all(part in page for part in bundles.PARTS)
