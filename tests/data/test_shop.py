"""A shop's log: its columns and dates are guessed, what is special about held-out items is counted, and can be dropped."""

import torch

from engine.evaluation import metrics
from engine.evaluation.ranks import full_ranks
from engine.models.markov import Markov, MarkovConfig
from engine.models.popularity import Popularity, PopularityConfig
from tests import shop
from tests.data.conftest import Bench

CANCELLED = shop.USERS // shop.CANCELLED


def test_a_format_of_times_is_taken_and_asked_for_where_it_decides(bench: Bench) -> None:
    rows = "".join(f"u{u},i{i},{i + 1}/{u + 1}/2024\n" for u in range(3) for i in range(4))
    log = bench.write("log.csv", "user,item,date\n" + rows)
    assert "--time-format '%d/%m/%Y'" in bench.fails(log, code=2)
    by_month, by_day = (bench.load(log, "--time-format", form) for form in ("%m/%d/%Y", "%d/%m/%Y"))
    assert by_month.timestamps is not None and by_day.timestamps is not None
    assert by_month.timestamps[:2].tolist() == [1_704_067_200, 1_706_745_600]  # the first of January and of February
    assert by_day.timestamps[:2].tolist() == [1_704_067_200, 1_704_153_600]
    assert "pattern" in bench.fails(log, "--time-format", "soon", code=2)


def test_cancellations_are_counted_and_can_be_dropped(bench: Bench) -> None:
    log = bench.write("retail.csv", shop.log())
    again = len([user for user in range(shop.USERS) if user % shop.AGAIN == 0 and user % shop.CANCELLED])
    ties = shop.USERS - CANCELLED - again
    kept = bench.load(log)
    assert kept.info.held_out == {"ties": ties, "repeats": CANCELLED + again, "negative": CANCELLED}
    assert f"{CANCELLED:,} (12%) have a negative quantity" in bench.out
    dropped = bench.load(log, "--drop-negative")
    assert dropped.info.left_out["negative quantity"] == CANCELLED
    assert dropped.info.held_out == {"ties": ties + CANCELLED, "repeats": again, "negative": 0}
    assert "needs a quantity column" in bench.fails(log, "--drop-negative", "--quantity-column", "-", code=2)
    mended = bench.write("retail.csv", shop.log().replace(",-6,", ",six,", 1))
    assert bench.load(mended, "--drop-negative").info.left_out["quantity that is not a number"] == 1


def test_the_lead_of_a_chain_is_the_order_of_lines_within_an_order(bench: Bench) -> None:
    log = bench.write("retail.csv", shop.log(240))
    leads = {}
    for ties in ("file", "shuffle"):
        dataset = bench.load(log, "--ties", ties, "--repeats", "first", "--drop-negative")
        training = (torch.from_numpy(dataset.training.values).long(), torch.from_numpy(dataset.training.offsets))
        ndcg = []
        for model in (
            Markov(MarkovConfig(), dataset.num_items, dataset.num_users, torch.Generator()),
            Popularity(PopularityConfig(), dataset.num_items, dataset.num_users, torch.Generator()),
        ):
            model.fit(*training)
            ndcg.append(metrics.ndcg(full_ranks(model, dataset.cases("test")).ranks, 10).mean())
        leads[ties] = ndcg[0] - ndcg[1]
    assert leads["file"] > 0.1 and abs(leads["shuffle"]) < 0.03, leads
