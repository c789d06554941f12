"""Pixels are features of width 3 that stay bytes until a network reads them."""

import numpy as np
import torch
from tiny_data import make_data, paint

from manymatch.batch.vocabulary import Vocabulary
from manymatch.features.store import FeatureStore
from manymatch.shards.read import batches, read_index, samples


def test_pixels_pass_through_as_bytes(tmp_path):
    data = make_data(tmp_path)
    paint(data, 16)
    data.write_shards()
    index = read_index(data.shards)
    assert (index.dtype, index.width, index.max_regions) == ("uint8", 3, 256)
    assert index.sample_bytes == 3 * 256
    with FeatureStore(data.store) as store:
        expected, _, _ = store.read(range(5))
    vocabulary = Vocabulary.load(data.vocabulary)
    batch = next(iter(batches(data.shards, "train", vocabulary, 5)))
    assert batch.features.dtype == torch.uint8 and batch.region_mask.all()
    np.testing.assert_array_equal(batch.features.numpy(), expected)
    stored = next(samples(data.shards, "train"))
    assert stored.features.dtype == np.uint8
