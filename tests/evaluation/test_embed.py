"""Whole splits as embeddings, and runs of them."""

from dataclasses import replace

import pytest
import torch

from manymatch.batch.batch import Batch
from manymatch.batch.padding import padded_rows, padded_sequences
from manymatch.methods.shared.method import Embeddings, Method
from manymatch.model.embed import embed, inference, precision_on
from manymatch.util.errors import DataError


class _Mean(Method):
    """Images: their mean region. Captions: their word ids. Never with gradient, never training."""

    def __init__(self):
        super().__init__(None, None, 2)
        self.scale = torch.nn.Parameter(torch.ones(()))

    def _checked(self, vectors):
        assert not self.training
        assert not torch.is_grad_enabled()
        return Embeddings((self.scale * vectors)[:, None])

    def encode_images(self, batch):
        return self._checked(batch.features.mean(1))

    def encode_texts(self, batch):
        return self._checked(batch.words.float())

    def score(self, images, texts):
        raise NotImplementedError

    def loss(self, images, texts, batch):
        raise NotImplementedError


def _batch(first, captions):
    n, m = len(captions), sum(captions)
    index = torch.arange(n).repeat_interleave(torch.tensor(captions))
    return Batch(
        image_ids=[f"i{first + row}" for row in range(n)],
        caption_ids=[f"i{first + image}#{row}" for row, image in enumerate(index.tolist())],
        image_index=index,
        features=torch.arange(first, first + n).view(n, 1, 1).expand(n, 3, 2).float(),
        region_padding=padded_rows(torch.ones(n, 3, dtype=torch.bool)),
        words=torch.full((m, 2), first),
        word_padding=padded_sequences(torch.full((m,), 2), 2),
    )


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        ("auto", (False, torch.float32)),
        ("32-true", (False, torch.float32)),
        ("bf16-mixed", (True, torch.bfloat16)),
        ("16-mixed", (True, torch.bfloat16)),
    ],
)
def test_a_method_embeds_in_the_precision_of_its_preset(precision, expected):
    method, device = _Mean(), torch.device("cpu")
    method.precision = precision
    with inference(method, device):
        product = torch.ones(2, 2) @ torch.ones(2, 2)
        assert (torch.is_autocast_enabled("cpu"), product.dtype) == expected
    assert embed(method, [_batch(0, [2])], device).images.vectors.dtype == torch.float32


@pytest.mark.parametrize(("has_bfloat16", "automatic"), [(True, "bf16-mixed"), (False, "16-mixed")])
def test_precisions_of_a_gpu(has_bfloat16, automatic, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda emulated: has_bfloat16)
    asked = ["auto", "32-true", "bf16-mixed", "16-mixed"]
    assert [precision_on("cuda", setting) for setting in asked] == [automatic, *asked[1:]]


def test_embeddings_that_are_not_finite_and_empty_splits_are_refused():
    batch = _batch(0, [1, 1])
    features = batch.features.clone()
    features[1, 2, 0] = torch.nan
    with pytest.raises(DataError, match="'i1' is not finite"):
        embed(_Mean(), [replace(batch, features=features)], "cpu")
    with pytest.raises(DataError, match="no images"):
        embed(_Mean(), [], "cpu")
