"""SCAN beside the methods: its scores and step are the paper's, and a long test is scaled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.evaluation.embedded_model import EmbeddedModel, embed_split
from manymatch.experiments.costs import cost
from manymatch.experiments.costs import scan as module
from manymatch.experiments.costs.measure import Source
from manymatch.experiments.costs.scan import Scan, cross_attention, cross_attention_cost
from manymatch.methods.shared.method import Embeddings
from manymatch.model.embed import Embedded, embed
from manymatch.shards.read import batches

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def trained(sources: list[Source]) -> EmbeddedModel:
    return embed_split(*sources[0], "test", CPU)


@pytest.fixture
def scan(trained: EmbeddedModel) -> Scan:
    """With fresh weights."""
    torch.manual_seed(0)
    return Scan(trained.vocabulary, trained.index.width, 16)


@pytest.fixture
def embedded(trained: EmbeddedModel, scan: Scan) -> Embedded:
    """The test split: 8 images with 3 captions each."""
    return embed(scan, batches(trained.shards, "test", trained.vocabulary, 3), CPU)


def mask(of: Embeddings) -> Tensor:
    return of.parts()["mask"]


@pytest.mark.parametrize("numbers", [1, 2**12, 2**24])
def test_blocks_are_scored_as_pair_by_pair(
    scan: Scan, embedded: Embedded, numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module._NUMBERS, "cpu", numbers)
    monkeypatch.setattr(module, "_MOST_IMAGES", 3)
    images, texts = embedded.images, embedded.texts
    lengths = mask(texts).sum(1).tolist()
    assert lengths != sorted(lengths)  # captions are sorted by length, and come back in order
    scores = scan.score(images, texts)
    for i in range(len(images)):
        for j, length in enumerate(lengths):
            words = texts.vectors[j : j + 1, :length], mask(texts)[j : j + 1, :length]
            regions = images.vectors[i : i + 1], mask(images)[i : i + 1]
            alone = cross_attention(*words, *regions, 4.0)
            torch.testing.assert_close(scores[i, j], alone[0, 0])


def first_captions(trained: EmbeddedModel) -> Batch:
    stream = batches(
        trained.shards, "test", trained.vocabulary, 8, captions_per_image=1, shuffle=(0, 0)
    )
    return next(iter(stream)).to("cpu")


def test_a_step_learns_from_the_hardest_negatives(trained: EmbeddedModel, scan: Scan) -> None:
    batch = first_captions(trained)
    images, texts = scan.encode_images(batch), scan.encode_texts(batch)
    scores = scan.score(images, texts)
    own = scores.diagonal()
    rivals = scores.masked_fill(torch.eye(len(own), dtype=torch.bool), -torch.inf)
    hinges = [(0.2 + rivals.amax(way) - own).relu().mean() for way in (0, 1)]
    (loss,) = scan.loss(images, texts, batch).values()
    torch.testing.assert_close(loss, sum(hinges))
    loss.backward()
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in scan.parameters())


def test_where_images_are_pixels_regions_are_made_up(trained: EmbeddedModel) -> None:
    pixels = replace(trained, index=trained.index.model_copy(update={"dtype": "uint8"}))
    row = cross_attention_cost(pixels, "test", 16, (10,), CPU)
    assert (row.name, row.setting, row.elements) == ("cross-attention", None, 36)
    words = mask(embed_of(pixels)).sum(1).double().mean()
    assert row.multiply_adds == 2 * 36 * round(float(words)) * 16


def embed_of(trained: EmbeddedModel) -> Embeddings:
    scan = Scan(trained.vocabulary, None, 16)
    return embed(scan, batches(trained.shards, "test", trained.vocabulary, 8), CPU).texts


def test_a_long_ranking_is_scaled_from_a_part(
    scan: Scan, embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pair takes a second."""
    ranked: list[int] = []

    def rank(_: Any, images: Embeddings, texts: Embeddings, *more: Any, **options: Any) -> None:
        ranked.append(len(images) * len(texts))

    def seconds(work: Callable[[], None], _: torch.device) -> float:
        work()
        return float(ranked[-1])

    monkeypatch.setattr(cost, "rank", rank)
    monkeypatch.setattr(cost, "seconds", seconds)
    monkeypatch.setattr(cost, "_FIRST_IMAGES", 2)
    assert cost.rank_seconds(scan, embedded, CPU, math.inf) == (8 * 24, None)
    assert ranked == [2 * 6, 8 * 24]
    assert cost.rank_seconds(scan, embedded, CPU, 50.0) == (8 * 24, 4)
    assert ranked[2:] == [2 * 6, 4 * 12]  # about 50 seconds
    assert cost.rank_seconds(scan, embedded, CPU, 1.0) == (8 * 24, 2)


def test_a_scaled_time_is_said_to_be_so(
    trained: EmbeddedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RANKING_SECONDS", 0.0)
    monkeypatch.setattr(cost, "_FIRST_IMAGES", 2)
    row = cross_attention_cost(trained, "test", 16, (10,), CPU)
    assert row.test.scaled_from == 2 and row.test.ranking > 0
