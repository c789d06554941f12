"""The epoch's order and its division among processes."""

import numpy as np
import pytest

from manymatch.shards.order import batches_of, image_order, one_per_class, shard_order


@pytest.mark.parametrize("buffer", [1, 3, 40, 1000])
def test_every_image_once_and_no_more_is_held_than_the_buffer(buffer):
    """Position p may be emitted only once p has entered: at step p - buffer + 1 or later."""
    order = image_order(100, buffer, (0, 0)).tolist()
    assert sorted(order) == list(range(100))
    assert all(position - step < buffer for step, position in enumerate(order))


def test_order_depends_on_seed_and_epoch_alone():
    first = image_order(50, 20, (1, 0)).tolist()
    assert image_order(50, 20, (1, 0)).tolist() == first
    assert image_order(50, 20, (1, 1)).tolist() != first
    assert image_order(50, 20, (2, 0)).tolist() != first
    assert len({tuple(shard_order(6, (0, epoch))) for epoch in range(20)}) > 10


def test_full_buffer_shuffles_uniformly():
    places = np.array([np.argsort(image_order(20, 20, (0, epoch)))[0] for epoch in range(2000)])
    counts = np.bincount(places, minlength=20)
    assert counts.min() > 60  # 100 expected, standard deviation 10
    assert counts.max() < 140


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_together_are_one_process_with_a_larger_batch(world, drop_last):
    order = image_order(55, 55, (3, 1))
    ranks = [batches_of(order, 4, rank, world, drop_last) for rank in range(world)]
    alone = batches_of(order, 4 * world, 0, 1, drop_last)
    assert {len(batches) for batches in ranks} == {len(alone)}
    for parts, whole in zip(zip(*ranks, strict=True), alone, strict=True):
        assert np.concatenate(parts).tolist() == whole.tolist()
        assert all(len(part) for part in parts)


def test_drop_last_keeps_an_only_batch():
    order = np.arange(5)
    assert [len(part) for part in batches_of(order, 4, 0, 1, True)] == [4]
    assert [len(part) for part in batches_of(order, 4, 0, 1, False)] == [4, 1]
    assert [len(part) for part in batches_of(order, 8, 0, 1, True)] == [5]


@pytest.mark.parametrize(
    ("sizes", "whole"),
    [((3, 3, 3), 2), ((9, 2, 2, 2, 1), 3), ((5, 5), 2), ((9, 1), 2), ((2, 2, 2), 4)],
)
def test_groups_of_one_image_a_class(sizes, whole):
    """No image comes again before all images of its class, and no class but those that are
    smaller than the number of groups."""
    classes = np.repeat(np.arange(len(sizes)), sizes)
    count = sum(sizes) // whole if len(sizes) >= whole else 0
    seen = set()
    for epoch in range(30):
        order = image_order(len(classes), 100, (0, epoch))
        groups = one_per_class(order, classes, whole).reshape(-1, whole)
        assert len(groups) == count
        assert all(len(set(classes[group])) == whole for group in groups)
        uses = np.bincount(groups.flatten(), minlength=len(classes))
        for number, size in enumerate(sizes):
            assert np.ptp(uses[classes == number]) <= 1
            assert size < count or uses[classes == number].max(initial=0) <= 1
        seen |= set(groups.flatten().tolist())
    everyone = set(range(len(classes))) if count else set()
    assert seen == everyone, "an image that is left out comes in another epoch"
