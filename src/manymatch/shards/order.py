"""The order of the images in an epoch, and the process and batch of every image.

The order is that of a shuffle buffer over permuted shards, computed in advance from numbers only.
So the order depends on (seed, epoch) and on the shards, not on the reader: every process and every
worker knows the whole order and fetches only its own part.
"""

import heapq
from collections import deque
from random import Random

import numpy as np

BUFFER_BYTES = 256 * 2**20
"""Size of the shuffle buffer in memory. Smaller splits are shuffled perfectly."""


def shard_order(shards: int, shuffle: tuple[int, int] | None) -> list[int]:
    """The numbers of the shards in reading order; `shuffle` is (seed, epoch)."""
    order = list(range(shards))
    if shuffle is not None:
        Random(f"shards {shuffle}").shuffle(order)
    return order


def image_order(images: int, buffer: int, shuffle: tuple[int, int] | None) -> np.ndarray:
    """(images,) positions in the stream, in the order in which they leave the shuffle buffer.

    The buffer holds `buffer` images. When it is full, every step removes a random image and adds
    the next one.
    """
    if shuffle is None:
        return np.arange(images)
    random = Random(f"images {shuffle}").random
    held = list(range(min(buffer, images)))
    order = np.empty(images, dtype=np.int64)
    for step in range(images):
        slot = int(random() * len(held))
        order[step] = held[slot]
        entering = buffer + step
        held[slot] = entering if entering < images else held[-1]
        if entering >= images:
            held.pop()
    return order


def one_per_class(order: np.ndarray, classes: np.ndarray, whole: int) -> np.ndarray:
    """As many groups of `whole` images from `whole` different classes as `order` has images for, as
    positions, one group after another. No group if there are fewer classes.

    Every group takes the next image in `order` from each of the classes with the most remaining
    images. A class whose images are used up begins again, so that a small class ends no epoch.

    Args:
        order: (images,) positions.
        classes: (images,) class of every position.
    """
    images: dict[int, deque[tuple[int, int]]] = {}
    for rank, position in enumerate(order.tolist()):
        images.setdefault(int(classes[position]), deque()).append((rank, position))
    if len(images) < whole:
        return order[:0]
    left = {number: len(queue) for number, queue in images.items()}
    grouped: list[int] = []
    for _ in range(len(order) // whole):
        for number in heapq.nsmallest(whole, left, key=lambda it: (-left[it], images[it][0])):
            grouped.append(images[number][0][1])
            images[number].rotate(-1)
            left[number] -= 1
    return np.array(grouped, dtype=np.int64)


def batches_of(
    order: np.ndarray, images_per_batch: int, rank: int, world: int, drop_last: bool
) -> list[np.ndarray]:
    """The batches of process `rank` of `world`: its slices of every `world * images_per_batch`.

    A smaller last batch is divided evenly. It is dropped if it has fewer images than there are
    processes, and with `drop_last`, unless it is the only batch.
    """
    whole = images_per_batch * world
    parts = [order[start : start + whole] for start in range(0, len(order), whole)]
    if len(parts[-1]) < (whole if drop_last and len(parts) > 1 else world):
        parts.pop()
    return [np.array_split(part, world)[rank] for part in parts]
