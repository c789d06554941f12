"""What every image and text encoder gives."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Encoding(NamedTuple):
    """Local features of n samples, which of them are real, and one global feature of each.

    R is the number of regions, cells or words, W the size of local features, D of global ones.
    """

    local: Tensor  # (n, R, W), zero where padded
    mask: Tensor  # (n, R)
    globals: Tensor  # (n, D)
