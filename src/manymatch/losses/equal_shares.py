"""A test whether samples can use all classes equally, if some classes are impossible for some."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow


def shares_can_be_equal(possible: npt.NDArray[np.bool_]) -> bool:
    """Whether a matrix with the pattern `possible (N, n)` can have row sums of 1 and equal column
    sums.

    The maximum flow from samples to their possible classes is the exact answer. Samples with the
    same possible classes are one node of the network.
    """
    total, n = possible.shape
    _, first, samples = np.unique(
        np.packbits(possible, axis=1), axis=0, return_index=True, return_counts=True
    )
    kind, column = np.nonzero(possible[first])
    kinds, classes = 1 + np.arange(len(first)), 1 + len(first) + np.arange(n)
    source, sink = 0, 1 + len(first) + n
    # The unit is 1 / n of a sample, so that the share N / n of a class is a whole number too.
    supply = samples * n
    start = np.concatenate([np.full_like(kinds, source), kinds[kind], classes])
    end = np.concatenate([kinds, classes[column], np.full_like(classes, sink)])
    most = np.concatenate([supply, supply[kind], np.full(n, total)]).astype(np.int32)
    network = sparse.csr_matrix((most, (start, end)), shape=(sink + 1, sink + 1))
    return bool(maximum_flow(network, source, sink).flow_value == total * n)
