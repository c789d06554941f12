"""Whole splits as embeddings, and runs of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from manymatch.evaluation.embed import concatenate, embed
from manymatch.evaluation.ranking.blocks import rows
from manymatch.methods.base import Embeddings, Method
from manymatch.shards.batch import Batch
from manymatch.system.errors import DataError


class _Mean(Method):
    """Images: their mean region. Captions: their word ids. Never with gradient, never training."""

    def __init__(self) -> None:
        super().__init__(None, None, 2)  # type: ignore[arg-type]
        self.scale = torch.nn.Parameter(torch.ones(()))

    def _checked(self, vectors: Tensor) -> Embeddings:
        assert not self.training
        assert not torch.is_grad_enabled()
        return Embeddings((self.scale * vectors)[:, None])

    def encode_images(self, batch: Batch) -> Embeddings:
        return self._checked(batch.features.mean(1))

    def encode_texts(self, batch: Batch) -> Embeddings:
        return self._checked(batch.words.float())

    def score(self, images: Embeddings, texts: Embeddings) -> Tensor:
        raise NotImplementedError

    def loss(self, images: Embeddings, texts: Embeddings, batch: Batch) -> dict[str, Tensor]:
        raise NotImplementedError


def _batch(first: int, captions: list[int]) -> Batch:
    n, m = len(captions), sum(captions)
    index = torch.arange(n).repeat_interleave(torch.tensor(captions))
    return Batch(
        image_ids=[f"i{first + row}" for row in range(n)],
        caption_ids=[f"i{first + image}#{row}" for row, image in enumerate(index.tolist())],
        owner=index,
        features=torch.arange(first, first + n).view(n, 1, 1).expand(n, 3, 2).float(),
        region_mask=torch.ones(n, 3, dtype=torch.bool),
        words=torch.full((m, 2), first),
        word_mask=torch.ones(m, 2, dtype=torch.bool),
    )


def test_embeds_a_split_in_order() -> None:
    method = _Mean().train()
    found = embed(method, [_batch(0, [2, 1]), _batch(2, [3])], "cpu")
    assert found.image_ids == ["i0", "i1", "i2"]
    assert found.caption_ids == ["i0#0", "i0#1", "i1#2", "i2#0", "i2#1", "i2#2"]
    assert found.image_index.tolist() == [0, 0, 1, 2, 2, 2]
    assert found.images.vectors[:, 0, 0].tolist() == [0, 1, 2]
    assert found.texts.vectors[:, 0, 0].tolist() == [0, 0, 0, 2, 2, 2]
    assert method.training


def test_embeddings_that_are_not_finite_name_their_image() -> None:
    batch = _batch(0, [1, 1])
    features = batch.features.clone()
    features[1, 2, 0] = torch.nan
    with pytest.raises(DataError, match="'i1' is not finite"):
        embed(_Mean(), [replace(batch, features=features)], "cpu")


def test_empty_split_is_refused() -> None:
    with pytest.raises(DataError, match="no images"):
        embed(_Mean(), [], "cpu")


def test_concatenation_pads_attention_over_unequally_many_inputs() -> None:
    parts = [torch.rand(2, 3, 5), torch.rand(1, 4, 2), torch.rand(2, 4, 5)]
    found = concatenate([Embeddings(torch.rand(len(a), 1, 2), attention=a) for a in parts])
    assert found.attention is not None
    assert found.attention.shape == (5, 4, 5)
    assert torch.equal(found.attention[:2, :3], parts[0])
    assert torch.equal(found.attention[2:3, :, :2], parts[1])
    assert torch.equal(found.attention[3:], parts[2])
    assert (found.attention[:2, 3:] == 0).all() and (found.attention[2, :, 2:] == 0).all()


def test_concatenation_pads_sets_and_counts_owners_on() -> None:
    one = Embeddings(
        torch.ones(2, 1, 3),
        entities=torch.ones(3, 3),
        entity_owner=torch.tensor([0, 0, 1]),
        mask=torch.ones(2, 1, dtype=torch.bool),
    )
    two = Embeddings(
        torch.ones(1, 2, 3, dtype=torch.float16),
        entities=torch.zeros(1, 3),
        entity_owner=torch.tensor([0]),
        mask=torch.ones(1, 2, dtype=torch.bool),
    )
    both = concatenate([one, two])
    assert both.vectors.dtype == torch.float32
    assert both.vectors[:, :, 0].tolist() == [[1, 0], [1, 0], [1, 1]]
    assert both.mask is not None
    assert both.mask.tolist() == [[True, False], [True, False], [True, True]]
    assert both.entity_owner is not None
    assert both.entity_owner.tolist() == [0, 0, 1, 2]
    assert both.globals is None


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (1, 3), (2, 4), (0, 4)])
def test_rows_take_their_entities_along(start: int, stop: int) -> None:
    index = torch.tensor([0, 0, 1, 3])  # sample 2 has no entity
    whole = Embeddings(
        torch.arange(4).view(4, 1, 1).float(),
        globals=torch.arange(4).view(4, 1).float(),
        entities=torch.arange(4).view(4, 1).float(),
        entity_owner=index,
        entity_names=torch.arange(4),
    )
    part = rows(whole, slice(start, stop))
    inside = [row for row, sample in enumerate(index.tolist()) if start <= sample < stop]
    assert part.vectors.flatten().tolist() == list(range(start, stop))
    assert part.globals is not None
    assert part.globals.flatten().tolist() == list(range(start, stop))
    assert part.entity_names is not None
    assert part.entity_names.tolist() == inside
    assert part.entity_owner is not None
    assert part.entity_owner.tolist() == [index[row].item() - start for row in inside]
