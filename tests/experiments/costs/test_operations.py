"""Multiply-adds are those of the papers' formulas, exactly."""

from __future__ import annotations

import pytest
import torch
from small_methods import builder
from torch import Tensor

from manymatch.experiments.costs.cost import similarity_operations
from manymatch.experiments.costs.scan import Scan
from manymatch.methods.base import Embeddings
from manymatch.text.vocabulary import Vocabulary


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
    assert scan.operations(regions, words) == 2 * regions * words * size
