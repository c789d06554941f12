"""The output of image and text encoders."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from manymatch.shards.padding import Padding


class Encoding(NamedTuple):
    """The local features of n samples, their padding, and the global features.

    R is the number of regions, cells or words, W the size of local features, D the size of global
    features.
    """

    local: Tensor  # (n, R, W), zero where padded
    padding: Padding  # of (n, R)
    globals: Tensor  # (n, D)
