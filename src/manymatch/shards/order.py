"""In which order an epoch visits the images, and which process and batch each falls to.

The order is that of a shuffle buffer over permuted shards, but computed beforehand on numbers
alone. So it depends on (seed, epoch) and on the shards, never on who reads: every process and
worker knows the whole order and fetches only its own part of it.
"""

from __future__ import annotations

import heapq
from collections import deque
from random import Random

import numpy as np

BUFFER_BYTES = 256 * 2**20
"""What the shuffle buffer may hold in memory; splits below this size are shuffled perfectly."""


def shard_order(shards: int, shuffle: tuple[int, int] | None) -> list[int]:
    """The shards' numbers in the order they are read; `shuffle` is (seed, epoch)."""
    order = list(range(shards))
    if shuffle is not None:
        Random(f"shards {shuffle}").shuffle(order)
    return order


def image_order(images: int, buffer: int, shuffle: tuple[int, int] | None) -> np.ndarray:
    """(images,) positions in the read stream, in the order they leave a buffer of that many.

    The buffer fills, then each step emits a random one of its images and takes in the next.
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
    """`order` in groups of `whole` images of as many classes, as many groups as can be made.

    Each group takes from the classes with the most images left, of each the next one in `order`,
    so that how many groups there are does not depend on `order`.

    Args:
        classes: (images,) of each position.
    """
    left: dict[int, deque[tuple[int, int]]] = {}
    for rank, position in enumerate(order.tolist()):
        left.setdefault(int(classes[position]), deque()).append((rank, position))
    chosen: list[int] = []
    while len(left) >= whole:
        for number in heapq.nsmallest(whole, left, key=lambda it: (-len(left[it]), left[it][0])):
            chosen.append(left[number].popleft()[1])
            if not left[number]:
                del left[number]
    return np.array(chosen, dtype=np.int64)


def batches_of(
    order: np.ndarray, images_per_batch: int, rank: int, world: int, drop_last: bool
) -> list[np.ndarray]:
    """The batches of process `rank` of `world`: its slices of each `world * images_per_batch`.

    A smaller last batch is shared out evenly, or dropped with `drop_last` unless it is the only
    one; it is also dropped if it has fewer images than there are processes.
    """
    whole = images_per_batch * world
    parts = [order[start : start + whole] for start in range(0, len(order), whole)]
    if len(parts[-1]) < (whole if drop_last and len(parts) > 1 else world):
        parts.pop()
    return [np.array_split(part, world)[rank] for part in parts]
