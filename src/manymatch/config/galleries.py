"""The numbers of images of the papers' data sets, which distinguish a part from the whole."""

from collections.abc import Mapping

TEST = "test"

IMAGES: dict[str, dict[str, int]] = {
    "coco": {"train": 113_287, TEST: 5_000},
    "flickr30k": {"train": 29_000, TEST: 1_000},
    "flickr8k": {"train": 6_000, TEST: 1_000},
    "cub": {TEST: 1_754 + 2_967},
    "youcook2": {TEST: 3_350},
    "msrvtt": {TEST: 1_000},
    "lsmdc": {TEST: 1_000},
}
"""Number of images by data set and split. CUB's test split has 1,754 images of training classes and
all 2,967 images of the other 50 classes: PCME's list has 1,764 names, ten of which are of these 50
classes. Training splits that differ between papers are left out."""

TRAINING_CAPTIONS = {"coco": 566_435, "flickr30k": 145_000, "flickr8k": 30_000}
"""Number of captions of the training split by data set, in Karpathy's splits; COCO's with
`restval`."""


def is_whole(dataset: str, images: Mapping[str, int]) -> bool:
    """Whether splits with these numbers of images are the papers' whole splits; False for a data
    set without papers."""
    known = IMAGES.get(dataset, {})
    return bool(known) and all(images.get(split) == count for split, count in known.items())


def is_papers_test(dataset: str, split: str, images: int) -> bool:
    """Whether a split with this number of images is the test split of the papers' numbers."""
    return split == TEST and images == IMAGES.get(dataset, {}).get(TEST)
