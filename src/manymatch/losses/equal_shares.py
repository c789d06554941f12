"""Whether samples can use all classes equally, where some classes are impossible for some."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow


def shares_can_be_equal(possible: npt.NDArray[np.bool_]) -> bool:
    """Whether some matrix of `possible (N, n)`'s pattern has rows that sum to 1 and equal columns.

    The most that can flow from samples through their possible classes says it exactly. Samples
    with the same possible classes flow as one, of which there are often few.
    """
    total, n = possible.shape
    _, first, samples = np.unique(
        np.packbits(possible, axis=1), axis=0, return_index=True, return_counts=True
    )
    kind, column = np.nonzero(possible[first])
    kinds, classes = 1 + np.arange(len(first)), 1 + len(first) + np.arange(n)
    source, sink = 0, 1 + len(first) + n
    # In units of 1 / n of a sample, so that a class's share N / n is a whole number too.
    supply = samples * n
    start = np.concatenate([np.full_like(kinds, source), kinds[kind], classes])
    end = np.concatenate([kinds, classes[column], np.full_like(classes, sink)])
    most = np.concatenate([supply, supply[kind], np.full(n, total)]).astype(np.int32)
    network = sparse.csr_matrix((most, (start, end)), shape=(sink + 1, sink + 1))
    return bool(maximum_flow(network, source, sink).flow_value == total * n)
