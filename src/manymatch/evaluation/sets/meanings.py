"""Do the elements of an image's set stand for different meanings of the image?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from torch import Tensor

from manymatch.results.sets import Meanings
from manymatch.shards.sample import Sample


def meanings(samples: Iterable[Sample], winner: Tensor) -> Meanings | None:
    """Compare what two captions of an image speak of with the image elements that they match best.

    Two captions have a common object if their scene graphs have a common name. "By chance" is the
    mean over all permutations of the scene graphs among the captions of each image. The mean is
    exact, because every pair of an image's captions is then as likely as another.

    Args:
        samples: all images of the split, in table order.
        winner: `(m,)` image element of each caption's best pair (`ElementPairs.winner`).

    Returns:
        None if all pairs of captions of an image have a common object, or none has.
    """
    elements = iter(winner.tolist())
    totals = np.zeros(5)
    for sample in samples:
        captions = [(next(elements), set(caption.graph.names)) for caption in sample.captions]
        same = np.array([a == b for (a, _), (b, _) in combinations(captions, 2)])
        common = np.array([bool(a & b) for (_, a), (_, b) in combinations(captions, 2)])
        if len(same):
            expected = same.sum() * common.mean()
            totals += len(same), same.sum(), common.sum(), (same & common).sum(), expected
    pairs, same_pairs, common_pairs, both, both_by_chance = totals.tolist()
    if not 0 < common_pairs < pairs:
        return None
    others = pairs - common_pairs
    return Meanings(
        together=100 * both / common_pairs,
        together_by_chance=100 * both_by_chance / common_pairs,
        apart=100 - 100 * (same_pairs - both) / others,
        apart_by_chance=100 - 100 * (same_pairs - both_by_chance) / others,
    )
