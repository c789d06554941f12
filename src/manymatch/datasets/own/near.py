"""Pictures that are nearly the same: resized, compressed again, or twice in the folder.

A picture's signature is a perceptual hash, the signs of its 64 lowest frequencies against their
median (Zauner 2010), and its colours on a grid. The hash finds candidates, the colours decide:
pictures with little structure have equal hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from manymatch.util.images import read_small

_SIDE = 16
_LOW = 8
"""Frequencies in each direction, and cells of the grid of colours."""
_BITS = 6
"""Near-duplicates differ in at most this number of the 64 bits. One of 8 bytes is then equal."""
_LEVELS = 6.0
"""Near-duplicates' colours differ by at most this mean, of 255 levels."""
_PAIRS = 2**17
"""Pairs in memory, or as many as pictures."""
_POSITIONS = np.arange(_SIDE) + 0.5
_COSINES = np.cos(np.pi / _SIDE * np.outer(np.arange(_LOW), _POSITIONS))

Signature = tuple[int, bytes]
"""The 64 bits of the hash, and (8, 8, 3) colours."""


def signature(picture: Path | bytes) -> Signature:
    """Return the signature of a picture, which is decoded completely as a check.

    Raises:
        DataError: the picture cannot be decoded, or has fewer than 16 rows or columns.
    """
    small = read_small(picture, _SIDE)
    # Rounded: the frequencies of a plain picture are zeros up to errors of rounding.
    low = np.rint(_COSINES @ small.mean(axis=2) @ _COSINES.T).ravel()
    bits = np.packbits(low > np.median(low[1:]))
    colours = small.reshape(_LOW, 2, _LOW, 2, 3).mean(axis=(1, 3)).astype(np.uint8)
    return int.from_bytes(bits.tobytes(), "big"), colours.tobytes()


def duplicate_groups(signatures: list[Signature]) -> NDArray[np.int32]:
    """Return a number for each picture. Near-duplicates, also over several steps, have the same."""
    distinct = sorted(set(signatures))
    position = {one: number for number, one in enumerate(distinct)}
    hashes = np.array([one for one, _ in distinct], np.uint64)
    colours = np.frombuffer(b"".join(one for _, one in distinct), np.uint8)
    colours = colours.reshape(len(distinct), -1)
    groups = np.arange(len(distinct), dtype=np.int32)
    waiting: list[NDArray[np.intp]] = []
    count = 0
    for shift in range(0, 64, 8):  # near-duplicates have one of these bytes in common
        part = (hashes >> np.uint64(shift)) & np.uint64(255)
        order = np.argsort(part, kind="stable")
        for bucket in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
            for pairs in _duplicate_pairs(bucket, hashes, colours):
                waiting.append(pairs)
                count += len(pairs)
                if count > max(_PAIRS, len(distinct)):
                    groups, waiting, count = _joined(groups, waiting), [], 0
    return _joined(groups, waiting)[[position[one] for one in signatures]]


def _joined(groups: NDArray[np.int32], pairs: list[NDArray[np.intp]]) -> NDArray[np.int32]:
    """Return the groups after those of the two pictures of each pair become one."""
    ends = groups[np.concatenate([np.zeros((0, 2), np.intp), *pairs])].T
    graph = coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(len(groups), len(groups)))
    _, joined = connected_components(graph, directed=False)
    return joined[groups]


def _duplicate_pairs(
    bucket: NDArray[np.intp], hashes: NDArray[np.uint64], colours: NDArray[np.uint8]
) -> Iterator[NDArray[np.intp]]:
    """Yield the near-duplicates (n, 2) within a bucket, in blocks of rows."""
    rows = max(1, _PAIRS // max(1, len(bucket)))
    for start in range(0, len(bucket) - 1, rows):
        block, rest = bucket[start : start + rows], bucket[start:]
        near = np.bitwise_count(hashes[block][:, None] ^ hashes[rest]) <= _BITS
        first, second = np.nonzero(np.triu(near, 1))
        pairs = np.stack([block[first], rest[second]], axis=1)
        ours, theirs = colours[pairs[:, 0]].astype(np.int16), colours[pairs[:, 1]]
        yield pairs[np.abs(ours - theirs).mean(axis=1) <= _LEVELS]
