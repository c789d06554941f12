"""CUB-200-2011 (Wah et al. 2011): 11,788 photographs of 200 kinds of birds, with the ten captions
of each by Reed et al. 2016, in the class splits of PCME.

An image's id is its file's stem, a caption's id IMAGE#k; the label is the class's number, 1 to 200.
The test split holds the images of the 50 unseen classes and the seen test images of the 150
others: a test image belongs to an unseen class where no image that trains or validates has its
label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from manymatch.datasets.base import SPLITS, Caption, Relevance
from manymatch.datasets.cub.fetch import TEXT, fetch
from manymatch.datasets.cub.settings import CubSettings
from manymatch.datasets.cub.splits import class_number, read_splits
from manymatch.datasets.image_files import Pictures
from manymatch.foreign.text_lines import numbered_lines
from manymatch.system.progress import say

_LOST = re.compile("\ufffd+")


class Cub:
    """The dataset `cub`; see `manymatch.datasets.base.Dataset`."""

    name = "cub"

    def download(self, settings: CubSettings, raw: Path) -> None:
        """Put the texts under `raw`, and the images or a note of where they are."""
        fetch(settings, raw, self.name)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """The rows by split, class and image."""
        pictures = Pictures(raw, lambda name: name)
        for split, number, path in _images(raw):
            file = pictures.file(f"{path.stem}.jpg")
            if file is None:
                continue
            for order, (line, text) in enumerate(numbered_lines(path)):
                yield Caption(
                    image_id=path.stem,
                    caption_id=f"{path.stem}#{order}",
                    split=split,
                    caption=_repaired(text),
                    file=file,
                    labels=(number,),
                    where=f"{path}:{line}",
                )
        pictures.tell_left_out()

    def relevance(self, raw: Path) -> Relevance | None:
        """None: R-Precision takes the class labels."""
        return None


def _repaired(text: str) -> str:
    """Some published captions have U+FFFD, the sign for a lost byte, in place of every space."""
    return _LOST.sub(" ", text).strip()


def _images(raw: Path) -> list[tuple[str, int, Path]]:
    """Split, class and caption file of the images that are in a split."""
    splits, images, places = read_splits(raw), [], Counter[int]()
    unused = 0
    for path in sorted((raw / TEXT).glob("*/*.txt")):
        number = class_number(path.parent.name, str(path))
        split = splits.of(number, path.stem, places[number])
        places[number] += split in ("train", "validation")
        if split is None:
            unused += 1
        else:
            images.append((split, number, path))
    if unused:
        say(f"cub: left out {unused} images of classes that are in no list")
    return sorted(images, key=lambda image: SPLITS.index(image[0]))
