"""SCAN beside the methods: its scores and step are the paper's, and a long test is scaled."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from manymatch.evaluation.embedded_model import embed_split
from manymatch.experiments.costs import scan as module
from manymatch.experiments.costs import timing
from manymatch.experiments.costs.efficiency import cross_attention_cost
from manymatch.experiments.costs.scan import Scan, cross_attention
from manymatch.model.embed import embed
from manymatch.shards.read import batches

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def trained(sources):
    return embed_split(*sources[0], "test", CPU)


@pytest.fixture
def scan(trained):
    """With fresh weights."""
    torch.manual_seed(0)
    return Scan(trained.vocabulary, trained.index.width, 16)


@pytest.fixture
def embedded(trained, scan):
    """The test split: 8 images with 3 captions each."""
    return embed(scan, batches(trained.shards, "test", trained.vocabulary, 3), CPU)


def mask(of):
    return of.parts()["mask"]


@pytest.mark.parametrize("numbers", [1, 2**12])
def test_blocks_are_scored_as_pair_by_pair(scan, embedded, numbers, monkeypatch):
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


def test_a_step_learns_from_the_hardest_negatives(trained, scan):
    given = {"captions_per_image": 1, "shuffle": (0, 0)}
    stream = batches(trained.shards, "test", trained.vocabulary, 8, **given)
    batch = next(iter(stream)).to("cpu")
    images, texts = scan.encode_images(batch), scan.encode_texts(batch)
    scores = scan.score(images, texts)
    own = scores.diagonal()
    rivals = scores.masked_fill(torch.eye(len(own), dtype=torch.bool), -torch.inf)
    hinges = [(0.2 + rivals.amax(way) - own).relu().mean() for way in (0, 1)]
    (loss,) = scan.loss(images, texts, batch).values()
    torch.testing.assert_close(loss, sum(hinges))
    loss.backward()
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in scan.parameters())


def test_where_images_are_pixels_regions_are_made_up(trained, monkeypatch):
    monkeypatch.setattr("manymatch.experiments.costs.efficiency._RANKING_SECONDS", 0.0)
    monkeypatch.setattr(timing, "_FIRST_IMAGES", 2)
    pixels = replace(trained, index=trained.index.model_copy(update={"dtype": "uint8"}))
    row = cross_attention_cost(pixels, "test", 16, (10,), CPU)
    assert (row.name, row.setting, row.elements) == ("cross-attention", None, 36)
    assert row.test.scaled_from == 2 and row.test.ranking > 0
    stream = batches(trained.shards, "test", trained.vocabulary, 8)
    words = (
        mask(embed(Scan(trained.vocabulary, None, 16), stream, CPU).texts).sum(1).double().mean()
    )
    assert row.multiply_adds == 2 * 36 * round(float(words)) * 16


REGION_MASK = torch.tensor([[True, True, True, False], [True] * 4, [True] + [False] * 3])
WORD_MASK = torch.tensor([[True, True, False], [True, True, True]])


def made_up():
    generator = torch.Generator().manual_seed(0)
    regions = torch.randn(3, 4, 6, dtype=torch.float64, generator=generator)
    words = torch.randn(2, 3, 6, dtype=torch.float64, generator=generator)
    return functional.normalize(regions, dim=2), functional.normalize(words, dim=2)


def naive(regions, words, temperature):
    clipped = (regions @ words.T).clamp(min=0)
    clipped = torch.stack([row / (row.norm() + 1e-8) for row in clipped])
    result = []
    for index, word in enumerate(words):
        weights = (temperature * clipped[:, index]).softmax(0)
        attended = sum(w * region for w, region in zip(weights, regions, strict=True))
        result.append(functional.cosine_similarity(attended, word, dim=0))
    return torch.stack(result).mean()


def test_cross_attention_and_gradients_are_the_naive_loop_with_either_side_as_context():
    regions, words = (vectors.requires_grad_() for vectors in made_up())
    result = cross_attention(regions, REGION_MASK, words, WORD_MASK, 9.0)
    other = cross_attention(words, WORD_MASK, regions, REGION_MASK, 4.0)
    (result.sum() + other.sum()).backward()
    gradients = regions.grad, words.grad
    regions.grad = words.grad = None
    for i in range(3):
        for j in range(2):
            pair = regions[i][REGION_MASK[i]], words[j][WORD_MASK[j]]
            alone, turned = naive(*pair, 9.0), naive(*pair[::-1], 4.0)
            torch.testing.assert_close(result[i, j], alone, atol=1e-9, rtol=0)
            torch.testing.assert_close(other[j, i], turned, atol=1e-9, rtol=0)
            (alone + turned).backward()
    for ours, theirs in zip(gradients, (regions.grad, words.grad), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-8, rtol=0)
