"""The samples of an unpacked WebDataset shard: read the usable ones, and say why others are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from manymatch.foreign.images import read_image
from manymatch.foreign.json_file import read_object
from manymatch.foreign.regular_file import read_regular
from manymatch.system.errors import DataError
from manymatch.text.caption_text import caption_fault

IMAGES = ("jpg", "jpeg", "png")
TEXT, METADATA = "txt", "json"
_MAX_BYTES = 2**20
"""The maximum size of a text or JSON file. Usual ones have some hundred bytes."""


class UnusableSample(Exception):
    """The reason why a sample is left out. Samples are counted by reason."""


@dataclass(frozen=True)
class Sample:
    """An image file and its caption, with single spaces."""

    key: str
    image: Path
    caption: str


def is_sample_file(name: str) -> bool:
    """Return whether a member of a shard belongs to a sample."""
    return _suffix(name) in (*IMAGES, TEXT, METADATA)


def key_of(name: str) -> str:
    """Return a member's key: its name before the first dot, as in WebDataset."""
    return name.partition(".")[0]


def _suffix(name: str) -> str:
    return Path(name).name.partition(".")[2].lower()


def sample_files(folder: Path) -> Iterator[tuple[str, dict[str, Path]]]:
    """Yield each key with its files by suffix, in the order of the keys."""
    by_key: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            by_key.setdefault(key_of(path.name), {})[_suffix(path.name)] = path
    yield from sorted(by_key.items())


def read_sample(key: str, files: Mapping[str, Path]) -> Sample:
    """Return the sample of `files`, after decoding its image once as a check.

    The caption is the text of KEY.txt, or without that file the `caption` in KEY.json.

    Raises:
        UnusableSample: a file is missing or damaged, or the image was not downloaded.
    """
    if not key.isprintable() or len(key.split()) != 1:
        raise UnusableSample("a key that is not one printable word")
    image = next((files[suffix] for suffix in IMAGES if suffix in files), None)
    if image is None:
        raise UnusableSample("no image")
    caption = _caption(files)
    if caption_fault(caption):
        raise UnusableSample("a caption that is empty, too long or not clean text")
    try:
        read_image(image)
    except DataError:
        raise UnusableSample("an image that cannot be read") from None
    return Sample(key, image, caption)


def _caption(files: Mapping[str, Path]) -> str:
    for suffix in (TEXT, METADATA):
        if suffix in files and files[suffix].stat().st_size > _MAX_BYTES:
            raise UnusableSample(f"a {suffix} file of more than a million bytes")
    text = None
    if METADATA in files:
        text = _caption_in_metadata(files[METADATA])
    if TEXT in files:
        try:
            text = read_regular(files[TEXT]).decode("utf-8-sig")
        except ValueError:
            raise UnusableSample("a caption that is not UTF-8") from None
    if text is None:
        raise UnusableSample("no caption")
    return " ".join(text.split())


def _caption_in_metadata(path: Path) -> str | None:
    """Return the caption in KEY.json, whose `status` must say that the image was downloaded."""
    try:
        metadata = read_object(path)
    except DataError:
        raise UnusableSample("a damaged json file") from None
    if metadata.get("status", "success") != "success":
        raise UnusableSample("an image that was not downloaded")
    caption = metadata.get("caption")
    return caption if isinstance(caption, str) else None
