"""LETTER's terms against a straight-line derivation, and what each of them is for."""

import numpy as np
import pytest
import torch

from engine.tokenizers import report
from engine.tokenizers.base import Material, Scaling
from engine.tokenizers.letter import Letter, collaborative, companions, diversity
from engine.tokenizers.rqvae import Network
from tests.tokenization.tiny import config, fit, groups, material, planted, teacher


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


def test_collaborative_term() -> None:
    rng = np.random.default_rng(0)
    latent, vectors = rng.normal(size=(7, 4)), rng.normal(size=(7, 4))
    expected = -np.mean([log_softmax(latent[i] @ vectors.T)[i] for i in range(7)])
    assert float(collaborative(torch.from_numpy(latent), torch.from_numpy(vectors))) == pytest.approx(expected)


def test_diversity_term() -> None:
    rng = np.random.default_rng(0)
    book, codes, positives = rng.normal(size=(6, 4)), np.array([0, 3, 3, 5]), np.array([1, 4, -1, 2])
    terms = []
    for code, positive in zip(codes, positives, strict=True):
        if positive < 0:
            continue
        others = [j for j in range(6) if j != code]
        terms.append(-log_softmax(np.array([book[code] @ book[j] for j in others]))[others.index(positive)])
    rows = torch.from_numpy(book)
    found = diversity(rows[codes], rows, torch.from_numpy(codes), torch.from_numpy(positives))
    assert float(found) == pytest.approx(np.mean(terms))


def test_companions_are_others_of_the_same_cluster() -> None:
    clusters = np.array([0, 1, 0, 2, 1, 0, 1])  # 3 is alone
    codes = torch.arange(7).repeat(200)
    found = companions(codes, clusters, torch.Generator().manual_seed(0))
    seen: dict[int, set[int]] = {code: set(found[codes == code].tolist()) for code in range(7)}
    assert seen == {0: {2, 5}, 2: {0, 5}, 5: {0, 2}, 1: {4, 6}, 4: {1, 6}, 6: {1, 4}, 3: {-1}}


def test_the_loss_is_what_the_paper_adds_up() -> None:
    settings = config("letter", alpha=0.3, beta=0.2, epsilon=0.0, commitment=0.5)
    given = material(64)
    torch.manual_seed(0)
    found = Letter(settings, Scaling.of(given.of("vectors"), True), Network(settings, given.of("vectors").shape[1]))
    x = torch.from_numpy(found.scaling(given.of("vectors")))
    found._start(x, torch.Generator().manual_seed(0))
    found.begin_epoch(given, torch.Generator().manual_seed(0))
    terms = {
        name: term.item() for name, term in found.loss(x, torch.arange(64), torch.Generator().manual_seed(1)).items()
    }
    expected = terms["reconstruction"] + terms["codebook"] + 0.5 * terms["commitment"]
    assert terms["loss"] == pytest.approx(expected + 0.2 * terms["diversity"] + 0.3 * terms["collaborative"], rel=1e-5)


def test_the_collaborative_term_moves_the_encoder_and_not_the_codebooks() -> None:
    settings = config("letter")
    network = Network(settings, 12)
    _, quantised = network(torch.from_numpy(planted(32)))
    collaborative(quantised.latent, torch.from_numpy(teacher(32))).backward()
    assert all(book.grad is None or not book.grad.any() for book in network.quantiser.books)
    assert any(parameter.grad is not None and bool(parameter.grad.any()) for parameter in network.encoder.parameters())


@pytest.mark.parametrize("clusters", [1, 3, 8])
def test_the_number_of_clusters_is_honoured(clusters: int) -> None:
    settings = config("letter", clusters=clusters, codes=8)
    found = Letter(settings, Scaling.of(planted(), True), Network(settings, 12))
    found._start(torch.from_numpy(planted(spread=0.5)), torch.Generator().manual_seed(0))
    found.begin_epoch(material(), torch.Generator().manual_seed(0))
    assert [len(set(labels)) for labels in found._clusters] == [clusters] * 3


def test_every_code_alone_in_its_cluster_still_trains() -> None:
    fit("letter", material(64), epochs=1, clusters=8, codes=8)


def test_it_learns_who_takes_an_item_where_words_do_not_say() -> None:
    """Text knows the outer group alone; the teacher knows the inner one."""
    given = material()
    outer, inner = groups()
    rng = np.random.default_rng(0)
    text = planted()[outer * 4] + rng.normal(size=planted().shape).astype(np.float32)
    blind = Material(given.items, text.astype(np.float32), teacher(), given.training)
    near = np.array(
        [rng.choice(np.flatnonzero((inner == inner[i]) & (np.arange(len(inner)) != i))) for i in range(len(inner))]
    )
    similar = {
        alpha: report.shared(fit("letter", blind, epochs=60, alpha=alpha, beta=0.0, levels=2).identify(blind), near)
        for alpha in (0.0, 1.0)
    }
    assert similar[1.0] > similar[0.0] + 0.2


def test_more_clusters_than_codes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"tokenizer\.clusters"):
        fit("letter", material(64), epochs=1, clusters=9, codes=8)


def test_a_teacher_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="8 dimensions, the latent 6"):
        fit("letter", material(), dim=6)
