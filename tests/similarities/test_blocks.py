"""Blocks change nothing but time and memory."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.similarities import (
    blocks,
    chamfer,
    match_probability,
    max_match,
    mil,
    smooth_chamfer,
    top_match,
)
from manymatch.similarities.vectors import pair_cosines, plane_cosines

SIMILARITIES = {
    "mil": mil,
    "chamfer": chamfer,
    "smooth_chamfer": smooth_chamfer,
    "max_match": max_match,
    "top_match": top_match,
    "match_probability": partial(match_probability, scale=5.0, shift=-1.0),
}


def sets(n: int, size: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(n, size, 8, generator=generator), dim=-1)


@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize(("n_image", "n_text"), [(2, 3), (4, 4)])
@pytest.mark.parametrize("m", [17, 1])
def test_uneven_blocks_give_what_one_block_gives(
    monkeypatch: pytest.MonkeyPatch, name: str, n_image: int, n_text: int, m: int
) -> None:
    images, texts = sets(11, n_image, 0), sets(17, n_text, 1)
    similarity = SIMILARITIES[name]
    whole, texts = similarity(images, texts)[:, :m], texts[:m]
    for elements, pairs in ((1024, 16384), (7, 4), (20, 1), (1, 100)):
        monkeypatch.setattr(blocks, "_CPU_ELEMENTS", elements)
        monkeypatch.setattr(blocks, "_CPU_PAIRS", pairs)
        monkeypatch.setattr(blocks, "_IMAGES_FOR_ONE_TEXT", 2)
        torch.testing.assert_close(similarity(images, texts), whole)
        learning = similarity(images.clone().requires_grad_(), texts)
        torch.testing.assert_close(learning.detach(), whole)


def test_threads_change_nothing() -> None:
    images, texts = sets(100, 4, 0), sets(900, 4, 1)
    before = torch.get_num_threads()
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        learning = images.clone().requires_grad_()
        score = max_match(learning, texts)
        score.sum().backward()
        results.append((max_match(images, texts), score.detach(), learning.grad))
    torch.set_num_threads(before)
    torch.testing.assert_close(results[0], results[1])


def test_runs_cover_everything_once() -> None:
    assert blocks.runs(7, 3) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert blocks.runs(2, 0) == [slice(0, 1), slice(1, 2)]
    assert blocks.runs(0, 5) == []


def test_cosines_as_planes_are_the_cosines_by_pairs() -> None:
    images, texts = sets(3, 2, 0), sets(5, 4, 1)
    planes = plane_cosines(images, texts)
    torch.testing.assert_close(planes.permute(2, 3, 0, 1), pair_cosines(images, texts))
    assert planes.stride(3) == 1
