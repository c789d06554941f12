"""Raw samples by their position in a stream of shards: read once, in order, only those wanted."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from manymatch.shards.index import Split
from manymatch.shards.tar import RawSample, raw_samples


def fetch(
    folder: Path,
    split: Split,
    shards: Sequence[int],
    positions: Iterable[int],
    suffixes: AbstractSet[str],
) -> Iterator[tuple[int, RawSample]]:
    """(position, sample) for each of `positions`, ascending, in the shards read one by one.

    Args:
        shards: the numbers of the split's shards in reading order.
        positions: images counted over the shards in that order.
        suffixes: the members to read of each sample.
    """
    wanted = sorted(positions)
    starts = [0, *itertools.accumulate(split.shard_images[shard] for shard in shards)]
    for shard, start, end in zip(shards, starts, starts[1:], strict=False):
        first, last = bisect.bisect_left(wanted, start), bisect.bisect_left(wanted, end)
        here = {position - start for position in wanted[first:last]}
        if here:
            path = folder / split.shards[shard]
            found = raw_samples(path, split.shard_images[shard], here, suffixes)
            yield from ((start + number, sample) for number, sample in found)
