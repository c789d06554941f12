"""Flickr8k (Hodosh, Young and Hockenmaier 2013): 8,000 photographs with five captions each, and
people's judgments of which captions also fit other images of the test split. A pair is positive if
the mean of three experts' scores (from 1, unrelated, to 4, describes the image) is at least 3, or
if at least half of the crowd workers said yes.

An image's id is the stem of its file name. A caption's id is `FILE.jpg#k`, as in the judgments.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import ClassVar

from manymatch.datasets.base import SPLITS, Caption, Relevance
from manymatch.datasets.fetching.archives import whole_archive
from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.fetching.gather import Gatherer, PublishedDataset, SourceSettings, Usual
from manymatch.datasets.fetching.sources import Source
from manymatch.datasets.image_files import (
    IMAGES,
    Image,
    Line,
    caption_rows,
    copy_images,
    unpack_images,
)
from manymatch.datasets.karpathy import read_karpathy
from manymatch.datasets.rows import tab_rows
from manymatch.util.errors import DataError
from manymatch.util.json_stream import begins_with
from manymatch.util.progress import say
from manymatch.util.text_lines import numbered_lines

KARPATHY = "dataset_flickr8k.json"
TOKENS = "Flickr8k.token.txt"
LISTS = {
    "train": "Flickr_8k.trainImages.txt",
    "validation": "Flickr_8k.devImages.txt",
    "test": "Flickr_8k.testImages.txt",
}
EXPERT = "ExpertAnnotations.txt"
CROWD = "CrowdFlowerAnnotations.txt"
_JUDGMENTS = {"expert": EXPERT, "crowd": CROWD}
_LISTS = {f"{split}_list": file for split, file in LISTS.items()}
"""Setting -> name under the raw folder."""
_INTEGER = re.compile("[0-9]{1,9}")


class Flickr8kSettings(SourceSettings):
    """`sources.flickr8k` of params.yaml. The judgments are optional."""

    images: Source | None = None
    """An archive (tar, tar.gz, zip) or a folder."""
    captions: Source | None = None
    """`Flickr8k.token.txt`, which needs the three lists, or Karpathy's `dataset_flickr8k.json`."""
    train_list: Source | None = None
    validation_list: Source | None = None
    test_list: Source | None = None
    expert: Source | None = None
    crowd: Source | None = None


class Flickr8k(PublishedDataset):
    settings_model = Flickr8kSettings
    may_lack = (*_JUDGMENTS, *_LISTS)
    advice: ClassVar[dict[str, str]] = dict.fromkeys(
        ("images", "captions"),
        "set this key to the path of the files, or 'folder' to a folder with all files",
    )
    usual: ClassVar[Usual] = {
        "images": (
            "images_224.tar",
            "Flickr8k_Dataset.zip",
            "Flicker8k_Dataset",  # the publishers' spelling
            "Flickr8k_Dataset",
            "Images",
            IMAGES,
        ),
        "captions": (TOKENS, KARPATHY),
        **{key: (file,) for key, file in (_LISTS | _JUDGMENTS).items()},
    }

    def has_all(self, path: Path) -> bool:
        """Whether the splits are known: the token file needs the lists in its folder."""
        lists = LISTS.values()
        return path.name != TOKENS or all((path.parent / file).exists() for file in lists)

    def collect(self, gatherer: Gatherer, settings: Flickr8kSettings, raw: Path) -> None:
        """Put the images under `raw/images` and the text files beside them.

        The small text files come first, so that a fault in them is reported before the long
        download.
        """
        captions = gatherer.one("captions")
        # `copy_file` says what is wrong with another path.
        is_json = captions.is_file() and begins_with(captions, b"{")
        copy_file(captions, raw / (KARPATHY if is_json else TOKENS))
        if not is_json:
            gatherer.copy(_LISTS, raw)
        gatherer.copy(_JUDGMENTS, raw, optional=_JUDGMENTS)
        images = gatherer.one("images", whole_archive)
        # Images of a folder are copied, not linked: DVC's cache, which takes in `raw`, removes the
        # right to write from its files, and the user's own files must not change.
        (copy_images if images.is_dir() else unpack_images)(images, raw / IMAGES)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """Yield the 40,000 captions ordered by split, file and number.

        In this order both forms of the files give the same table.
        """
        karpathy = raw / KARPATHY
        images = list(read_karpathy(karpathy)) if karpathy.exists() else _read_tokens(raw)
        images.sort(key=lambda image: (SPLITS.index(image.split), image.file))
        return caption_rows(raw, images, clean=str.strip)

    def relevance(self, raw: Path) -> Relevance | None:
        """Return the pairs of the test split, beyond own captions, that people judged.

        A pair is true if the experts or the crowd say so. Pairs outside the test split are left out
        and counted.
        """
        rules = {EXPERT: _experts_agree, CROWD: _crowd_agrees}
        judged: set[tuple[str, str, str]] = set()
        refused: set[tuple[str, str, str]] = set()
        for name in filter(lambda name: (raw / name).exists(), rules):
            for where, (image, caption_id, *votes) in tab_rows(raw / name, 5):
                pair = (image, caption_id, caption_id.rpartition("#")[0])
                (judged if rules[name](votes, where) else refused).add(pair)
        if not any((raw / name).exists() for name in rules):
            return None
        if (raw / KARPATHY).exists():
            test = {one.file for one in read_karpathy(raw / KARPATHY) if one.split == "test"}
        else:
            test = {file for file, (split, _) in _splits(raw).items() if split == "test"}
        inside = {pair for pair in judged if {pair[0], pair[2]} <= test}
        if len(inside) < len(judged):
            say(f"judgments: left out {len(judged) - len(inside)} pairs outside the test split")
        refused = {pair for pair in refused - judged if {pair[0], pair[2]} <= test}
        pairs, false = (
            [(PurePosixPath(file).stem, text) for file, text, own in sorted(kind) if file != own]
            for kind in (inside, refused)
        )
        return Relevance(pairs, complete=False, judged_false=false)


def _experts_agree(votes: list[str], where: str) -> bool:
    scores = [_integer(vote, where) for vote in votes]
    if not all(1 <= score <= 4 for score in scores):
        raise DataError(f"{where}: expected scores from 1 to 4, found {' '.join(votes)}")
    return sum(scores) >= 3 * len(scores)


def _crowd_agrees(votes: list[str], where: str) -> bool:
    """Compare the counts, because the fraction in the file is rounded."""
    yes, no = _integer(votes[1], where), _integer(votes[2], where)
    if yes + no == 0:
        raise DataError(f"{where}: a pair without a vote")
    return 2 * yes >= yes + no


def _integer(text: str, where: str) -> int:
    if not _INTEGER.fullmatch(text.strip()):
        raise DataError(f"{where}: expected a whole number, found {text!a:.60}")
    return int(text)


def _read_tokens(raw: Path) -> list[Image]:
    """Return the images of the three lists with their captions in the order of their numbers.

    Captions of images in no list are left out and counted: the published token file has captions
    for 91 images without a split and for a file (`...jpg.1`) that does not exist.
    """
    captions: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for where, (key, caption) in tab_rows(raw / TOKENS, 2):
        file, hash_sign, order = key.rpartition("#")
        if not (file and hash_sign and _INTEGER.fullmatch(order)):
            raise DataError(f"{where}: expected FILE#NUMBER before the tab, found {key!a:.60}")
        captions[file].append((int(order), caption, where))
    splits, images = _splits(raw), []
    for file, (split, where) in splits.items():
        if file not in captions:
            raise DataError(f"{where}: image {file} has no caption in {TOKENS}")
        lines = [Line(text, at, f"{file}#{number}") for number, text, at in sorted(captions[file])]
        images.append(Image(file, split, lines))
    if unused := captions.keys() - splits.keys():
        count = sum(len(captions[file]) for file in unused)
        say(f"{TOKENS}: left out {count} captions of {len(unused)} images that are in no split")
    return images


def _splits(raw: Path) -> dict[str, tuple[str, str]]:
    """Return the split of each file, and the position (file:line) in its list."""
    splits: dict[str, tuple[str, str]] = {}
    for split, name in LISTS.items():
        for number, text in numbered_lines(raw / name):
            file, where = text.strip(), f"{raw / name}:{number}"
            if file in splits:
                raise DataError(f"{where}: image {file} is listed already, in {splits[file][1]}")
            splits[file] = split, where
    return splits
