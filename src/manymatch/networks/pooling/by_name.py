"""The poolings that a preset may name."""

from __future__ import annotations

from typing import Literal

from torch import nn

from manymatch.networks.pooling.gpo import GPO
from manymatch.networks.pooling.masked import MaxPooling, MeanPooling

PoolingName = Literal["mean", "max", "gpo"]
_POOLINGS: dict[PoolingName, type[nn.Module]] = {"mean": MeanPooling, "max": MaxPooling, "gpo": GPO}


def pooling(name: PoolingName) -> nn.Module:
    """A fresh module `(local (n, R, D), mask (n, R) or None) -> (n, 1, D)`."""
    return _POOLINGS[name]()
