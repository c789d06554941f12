"""Karpathy's form of Flickr8k."""

from __future__ import annotations

from pathlib import Path

from manymatch.datasets.flickr8k.image import Image
from manymatch.datasets.flickr8k.names import KARPATHY
from manymatch.datasets.karpathy import read_karpathy


def read(raw: Path) -> list[Image]:
    """The images of the JSON file; a sentence's place in its list is the caption's number."""
    return [
        Image(
            entry.file,
            entry.split,
            tuple((k, line.text, line.where) for k, line in enumerate(entry.sentences)),
        )
        for entry in read_karpathy(raw / KARPATHY)
    ]


def test_files(raw: Path) -> set[str]:
    """The images of the test split."""
    return {image.file for image in read(raw) if image.split == "test"}
