"""Multiply-adds are those of the papers' formulas, and a search in a gallery is a full ranking."""

from __future__ import annotations

import pytest
import torch
from small_methods import builder
from torch import Tensor

from manymatch.batch.vocabulary import Vocabulary
from manymatch.evaluation.embedded_model import embed_split
from manymatch.evaluation.ranking.ranks import rank
from manymatch.experiments.costs import cost as module
from manymatch.experiments.costs.cost import grown, search, similarity_operations
from manymatch.experiments.costs.efficiency import Source
from manymatch.experiments.costs.scan import Scan
from manymatch.methods.shared.method import Embeddings


def unit(*sizes: int) -> Tensor:
    made = torch.randn(*sizes, generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.normalize(made, dim=-1)


def operations(method: str, elements: int, size: int) -> int:
    """The cost of comparing two sets, in evaluation mode, as a trained model is loaded."""
    built = builder(Vocabulary(Vocabulary.SPECIAL))(method).eval()
    image, text = (
        Embeddings(unit(1, elements, size), log_variance=torch.zeros(1, size)) for _ in range(2)
    )
    return similarity_operations(built.score, image, text)


@pytest.mark.parametrize(
    ("methods", "products"),
    [
        (["vsepp", "vse_infinity", "swamp", "pcme", "cora"], {(1, 16): 1, (1, 1024): 1}),
        (["dive", "maxmatch", "pvse"], {(2, 16): 4, (4, 1024): 16, (5, 300): 25}),
        (["msrm"], {(1, 1024): 2}),
    ],
)
def test_a_cosine_takes_d_and_sets_take_k_k_d(
    methods: list[str], products: dict[tuple[int, int], int]
) -> None:
    """With K = 4 and D = 1,024 DivE's paper says 16,384; a Gaussian query takes two products."""
    for method in methods:
        for (elements, size), count in products.items():
            assert operations(method, elements, size) == count * size


@pytest.mark.parametrize(("regions", "words", "size"), [(36, 17, 1024), (4, 3, 8)])
def test_cross_attention_takes_two_r_l_d(regions: int, words: int, size: int) -> None:
    scan = Scan(Vocabulary(Vocabulary.SPECIAL), 12, size)
    image, text = (
        Embeddings(unit(1, count, size), mask=torch.ones(1, count, dtype=torch.bool))
        for count in (regions, words)
    )
    assert similarity_operations(scan.score, image, text) == 2 * regions * words * size


CPU = torch.device("cpu")


def images(count: int) -> Embeddings:
    """The first number of image i is i."""
    vectors = torch.arange(count * 2 * 3).reshape(count, 2, 3) / 6.0
    return Embeddings(vectors, globals=torch.zeros(count, 3), attention=torch.ones(count, 2, 9))


def numbers(made: module.Gallery) -> list[int]:
    return torch.cat([block.vectors[:, 0, 0] for block in made.blocks()]).int().tolist()


def test_a_gallery_grows_by_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 4, 5, 10, 23):
        for block in (3, 4, 100):
            monkeypatch.setattr(module, "_BLOCK", block)
            made = grown(images(5), size)
            assert numbers(made) == [number % 5 for number in range(size)]
            assert set(made.held.parts()) == {"vectors"}  # no score looks at the rest


def test_what_does_not_fit_is_searched_over_and_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 4)
    of_an_image = 2 * 3 * 4
    made = grown(images(50), 30, most_bytes=9 * of_an_image)
    assert len(made.held) == 8  # whole blocks
    assert numbers(made) == [number % 8 for number in range(30)]
    assert len(grown(images(50), 30, most_bytes=1).held) == 4


def test_a_search_finds_what_the_full_ranking_does(
    sources: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    for block in (3, 100):
        monkeypatch.setattr(module, "_BLOCK", block)
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
