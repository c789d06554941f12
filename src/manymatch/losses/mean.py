"""The mean at the end of losses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

from torch import Tensor


def mean(terms: Tensor) -> Tensor:
    """The mean of all `terms`; 0, as a part of the graph, if there are no terms."""
    return terms.mean() if terms.numel() else terms.sum()


def sum_of_means(terms: Tensor, sides: Sequence[Tensor]) -> Tensor:
    """The sum over `sides`, such as images and captions, of the mean of the terms of a side.

    `terms` has a row for each row of all sides: one operation on both takes a GPU less time than
    two.
    """
    return reduce(add, map(mean, terms.split([len(side) for side in sides])))
