"""Multiply-adds are those of the papers' formulas, and a search in a gallery is a full ranking."""

import pytest
import torch
from small_methods import builder

from manymatch.batch.vocabulary import Vocabulary
from manymatch.evaluation.embedded_model import embed_split
from manymatch.evaluation.ranking.ranks import rank
from manymatch.experiments.costs import efficiency as module
from manymatch.experiments.costs.efficiency import grown, search
from manymatch.experiments.costs.scan import Scan
from manymatch.experiments.costs.timing import similarity_operations
from manymatch.methods.shared.method import Embeddings

CPU = torch.device("cpu")


def unit(*sizes):
    made = torch.randn(*sizes, generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.normalize(made, dim=-1)


@pytest.mark.parametrize(
    ("methods", "products"),
    [
        (["vsepp", "vse_infinity", "swamp", "pcme", "cora"], {(1, 16): 1, (1, 1024): 1}),
        (["dive", "maxmatch", "pvse"], {(2, 16): 4, (4, 1024): 16, (5, 300): 25}),
        (["msrm"], {(1, 1024): 2}),
    ],
)
def test_a_cosine_takes_d_and_sets_take_k_k_d(methods, products):
    """With K = 4 and D = 1,024 DivE's paper says 16,384; a Gaussian query takes two products."""
    for method in methods:
        score = builder(Vocabulary(Vocabulary.SPECIAL))(method).eval().score
        for (elements, size), count in products.items():
            image, text = (
                Embeddings(unit(1, elements, size), log_variance=torch.zeros(1, size))
                for _ in range(2)
            )
            assert similarity_operations(score, image, text) == count * size


@pytest.mark.parametrize(("regions", "words", "size"), [(36, 17, 1024), (4, 3, 8)])
def test_cross_attention_takes_two_r_l_d(regions, words, size):
    scan = Scan(Vocabulary(Vocabulary.SPECIAL), 12, size)
    image, text = (
        Embeddings(unit(1, count, size), mask=torch.ones(1, count, dtype=torch.bool))
        for count in (regions, words)
    )
    assert similarity_operations(scan.score, image, text) == 2 * regions * words * size


def test_a_search_finds_what_the_full_ranking_does(sources, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 3)
    for source in sources:
        trained = embed_split(*source, "test", CPU)
        method, result = trained.method, trained.embedded
        parts = result.images, result.texts, result.image_index
        ranking = rank(method.score, *parts, depth=5, t2i_score=method.t2i_score)
        made = grown(result.images, len(result.images))
        for row in range(len(result.texts)):
            query = result.texts.rows(slice(row, row + 1))
            with torch.inference_mode():
                position = search(method.t2i_score or method.score, made, query, depth=5)
            assert position.tolist() == ranking.t2i.items[row].tolist()
