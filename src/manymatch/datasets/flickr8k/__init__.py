"""Flickr8k (Hodosh, Young and Hockenmaier 2013): 8,000 photographs with five captions each, and
people's judgments of which captions also fit other images of the test split.

An image's id is the stem of its file name. A caption's id is `FILE.jpg#k`, as in the judgments.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pydantic import model_validator

from manymatch.datasets.base import SPLITS, Caption, Dataset, Relevance
from manymatch.datasets.flickr8k import judgments, tokens
from manymatch.datasets.image_files import Image, Line, caption_rows, copy_images, unpack_images
from manymatch.datasets.image_folder import IMAGES
from manymatch.datasets.karpathy import read_karpathy
from manymatch.datasets.source_settings import SourceSettings
from manymatch.fetching.completeness import whole_archive
from manymatch.fetching.copying import copy_file, copy_named
from manymatch.fetching.gather import Gatherer, Usual
from manymatch.fetching.sources import Source
from manymatch.system.errors import ConfigError

KARPATHY = "dataset_flickr8k.json"
_JUDGMENTS = {"expert": judgments.EXPERT, "crowd": judgments.CROWD}
_LISTS = {f"{split}_list": file for split, file in tokens.LISTS.items()}
"""Setting -> name under the raw folder."""

USUAL: Usual = {
    "images": (
        "images_224.tar",
        "Flickr8k_Dataset.zip",
        "Flicker8k_Dataset",
        "Flickr8k_Dataset",
        "Images",
        IMAGES,
    ),
    "captions": (tokens.TOKENS, KARPATHY),
    **{key: (file,) for key, file in (_LISTS | _JUDGMENTS).items()},
}
"""The usual names of the files. "Flicker8k" is the publishers' spelling."""


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

    @model_validator(mode="after")
    def _has_sources(self) -> Flickr8kSettings:
        # A ValueError would be wrapped by pydantic; this message is complete.
        if self.folder is None and None in (self.images, self.captions):
            raise ConfigError(
                "params.yaml: sources.flickr8k: no source of images or captions. Set 'folder' to a "
                "folder with the dataset's files, or set 'images' and 'captions'"
            )
        return self


class Flickr8k(Dataset):
    settings_model = Flickr8kSettings

    def download(self, settings: Flickr8kSettings, raw: Path) -> None:
        """Put the images under `raw/images` and the text files beside them.

        The small text files come first, so that a fault in them is reported before the long
        download.
        """
        gatherer = settings.gatherer("flickr8k", raw, USUAL, has_all=_has_splits)
        _copy_captions(gatherer, raw)
        copy_named(gatherer, _JUDGMENTS, raw, optional=_JUDGMENTS)
        images = gatherer.one("images", check=whole_archive)
        # Images of a folder are copied, not linked: DVC's cache, which takes in `raw`, removes the
        # right to write from its files, and the user's own files must not change.
        (copy_images if images.is_dir() else unpack_images)(images, raw / IMAGES)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """Yield the 40,000 captions ordered by split, file and number.

        In this order both forms of the files give the same table.
        """
        images = sorted(_images(raw), key=lambda image: (SPLITS.index(image.split), image.file))
        return caption_rows(raw, images, clean=str.strip)

    def relevance(self, raw: Path) -> Relevance | None:
        """Return the positives of the test split, beyond own captions, that people judged true."""
        if not judgments.present(raw):
            return None
        pairs = judgments.true_pairs(raw, _test_files(raw))
        image_pairs = [(PurePosixPath(file).stem, caption_id) for file, caption_id in pairs]
        return Relevance(image_pairs, complete=False)


def _has_splits(path: Path) -> bool:
    """Return whether the splits are known: the token file needs the lists in its folder."""
    lists = tokens.LISTS.values()
    return path.name != tokens.TOKENS or all((path.parent / file).exists() for file in lists)


def _copy_captions(gatherer: Gatherer, raw: Path) -> None:
    captions = gatherer.one("captions")
    if _is_json(captions):
        copy_file(captions, raw / KARPATHY)
        return
    copy_file(captions, raw / tokens.TOKENS)
    copy_named(gatherer, _LISTS, raw)


def _is_json(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def _images(raw: Path) -> list[Image]:
    """Return the images from whichever form of the captions is under `raw`."""
    if not (raw / KARPATHY).exists():
        return tokens.read_images(raw)
    return [
        Image(entry.file, entry.split, [Line(line.text, line.where) for line in entry.sentences])
        for entry in read_karpathy(raw / KARPATHY)
    ]


def _test_files(raw: Path) -> set[str]:
    if not (raw / KARPATHY).exists():
        return tokens.test_files(raw)
    return {entry.file for entry in read_karpathy(raw / KARPATHY) if entry.split == "test"}
