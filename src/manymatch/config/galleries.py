"""How many images the papers' data sets have, by which a part of one is told from the whole."""

from __future__ import annotations

from collections.abc import Mapping

TEST = "test"

IMAGES: dict[str, dict[str, int]] = {
    "coco": {"train": 113_287, TEST: 5_000},
    "flickr30k": {"train": 29_000, TEST: 1_000},
    "flickr8k": {"train": 6_000, TEST: 1_000},
    "cub": {TEST: 1_764 + 2_967},
    "youcook2": {TEST: 3_350},
    "msrvtt": {TEST: 1_000},
    "lsmdc": {TEST: 1_000},
}
"""By data set and split. CUB's test split has 1,764 images of classes that were trained on and all
2,967 of the 50 others; training splits that papers cut differently are left out."""


def is_whole(dataset: str, images: Mapping[str, int]) -> bool:
    """Whether splits of so many images are the papers'; no papers' data set, no whole one."""
    known = IMAGES.get(dataset, {})
    return bool(known) and all(images.get(split) == count for split, count in known.items())


def is_papers_test(dataset: str, split: str, images: int) -> bool:
    """Whether that many images of a split are what the papers' numbers are of."""
    return split == TEST and images == IMAGES.get(dataset, {}).get(TEST)
