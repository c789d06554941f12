"""COCO's files of captions, and Karpathy's JSON files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from manymatch.datasets.coco.annotations import read_captions
from manymatch.datasets.karpathy import read_karpathy
from manymatch.datasets.own.record import Record, split_of_path
from manymatch.foreign.json_stream import elements


def is_karpathy(path: Path) -> bool:
    """Return whether the images of a JSON file have sentences, as in Karpathy's files."""
    images = elements(path, ("images",))
    first = next(images, None)
    return first is not None and isinstance(first[2], dict) and "sentences" in first[2]


def read_karpathy_files(paths: Sequence[Path]) -> Iterator[Record]:
    """Yield the images in the order of the files."""
    for path in paths:
        for image in read_karpathy(path):
            texts = [line.text for line in image.captions]
            yield Record(image.file, texts, image.captions[0].where, image.split)


def read_coco_files(paths: Sequence[Path]) -> Iterator[Record]:
    """Yield the images with captions. A file such as `captions_val2017.json` is of one split."""
    for path in paths:
        captions, names = read_captions([path])
        lines = defaultdict(list)
        for image, line in captions.values():
            lines[image].append(line)
        for image, of_image in lines.items():
            name, texts = names.get(image, f"{image:012}.jpg"), [line.text for line in of_image]
            yield Record(name, texts, of_image[0].where, path_split=split_of_path(path.name))
