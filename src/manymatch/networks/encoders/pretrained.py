"""A switch: whether networks load published weights when they are built.

A trained model holds all its weights. To load the model, only the structure of its networks is
needed, and not the files or downloads of the published weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_WANTED = ContextVar("pretrained weights are wanted", default=True)


def are_loaded() -> bool:
    """Whether a network that is built now loads published weights."""
    return _WANTED.get()


@contextmanager
def structure_only() -> Iterator[None]:
    """Networks that are built within the block do not load published weights."""
    before = _WANTED.set(False)
    try:
        yield
    finally:
        _WANTED.reset(before)
