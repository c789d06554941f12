"""One image of Flickr8k with its split and captions, as both forms of its files give it."""

from __future__ import annotations

from dataclasses import dataclass

Line = tuple[int, str, str]
"""Number of the caption, its text, where (file:line) it stands."""


@dataclass(frozen=True)
class Image:
    """An image of a split with its captions in the order of their numbers."""

    file: str
    split: str
    captions: tuple[Line, ...]
