"""Whether networks load published weights when they are built.

A trained model holds all its weights: to load it, only the structure is needed, and neither a
file nor the network from which training once took the published ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_WANTED = ContextVar("pretrained weights are wanted", default=True)


def wanted() -> bool:
    """Whether a network that is built now is to load published weights."""
    return _WANTED.get()


@contextmanager
def structure_only() -> Iterator[None]:
    """Within the block networks are built without them."""
    before = _WANTED.set(False)
    try:
        yield
    finally:
        _WANTED.reset(before)
