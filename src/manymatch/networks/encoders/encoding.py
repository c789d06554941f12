"""The output of image and text encoders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from manymatch.batch.padding import Padding


@dataclass(frozen=True)
class Encoding:
    """The local features of n samples, their padding, and the global features.

    R is the number of regions, cells or words, W the size of local features, D the size of global
    features. Many methods need no global features: `globals` computes them.
    """

    local: Tensor  # (n, R, W), zero where padded
    padding: Padding  # of (n, R)
    globals: Callable[[], Tensor]  # (n, D)
