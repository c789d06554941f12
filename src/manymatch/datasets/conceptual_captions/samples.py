"""The samples of an unpacked WebDataset shard: which are usable, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from manymatch.foreign.images import read_image
from manymatch.foreign.json_file import read_object
from manymatch.system.errors import DataError
from manymatch.text.caption_text import caption_fault

PICTURES = ("jpg", "jpeg", "png")
TEXT, FACTS = "txt", "json"
_LONGEST = 2**20
"""Bytes of a text or JSON file that are read; a sample's own have some hundred."""


class Unusable(Exception):
    """A sample is left out, for a reason that is counted."""


@dataclass(frozen=True)
class Sample:
    """A picture and its caption, with single spaces."""

    key: str
    picture: Path
    caption: str


def is_wanted(name: str) -> bool:
    """Whether a member of a shard is read."""
    return _ending(name) in (*PICTURES, TEXT, FACTS)


def key_of(name: str) -> str:
    """A member's key, as WebDataset splits its name: all before the first dot."""
    return name.partition(".")[0]


def _ending(name: str) -> str:
    return Path(name).name.partition(".")[2].lower()


def members(folder: Path) -> Iterator[tuple[str, dict[str, Path]]]:
    """The files of each key, by ending, in the order of the keys."""
    by_key: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            by_key.setdefault(key_of(path.name), {})[_ending(path.name)] = path
    yield from sorted(by_key.items())


def read_sample(key: str, files: Mapping[str, Path]) -> Sample:
    """The sample of `files`, its picture decoded once.

    The caption is that of KEY.txt, or without that file the `caption` in KEY.json.

    Raises:
        Unusable: something is missing or damaged, or the picture was not fetched.
    """
    if not key.isprintable() or len(key.split()) != 1:
        raise Unusable("a key that is no word")
    picture = next((files[ending] for ending in PICTURES if ending in files), None)
    if picture is None:
        raise Unusable("no picture")
    caption = _caption(files)
    if caption_fault(caption):
        raise Unusable("a caption that is empty, too long or not clean text")
    try:
        read_image(picture)
    except DataError:
        raise Unusable("a picture that cannot be read") from None
    return Sample(key, picture, caption)


def _caption(files: Mapping[str, Path]) -> str:
    for ending in (TEXT, FACTS):
        if ending in files and files[ending].stat().st_size > _LONGEST:
            raise Unusable(f"a {ending} file of more than a million bytes")
    text = None
    if FACTS in files:
        text = _caption_of_fetched(files[FACTS])
    if TEXT in files:
        try:
            text = files[TEXT].read_text(encoding="utf-8-sig")
        except ValueError:
            raise Unusable("a caption that is not UTF-8") from None
    if text is None:
        raise Unusable("no caption")
    return " ".join(text.split())


def _caption_of_fetched(path: Path) -> str | None:
    """The caption in KEY.json, whose `status` must say that the picture was fetched."""
    try:
        facts = read_object(path)
    except DataError:
        raise Unusable("a damaged json file") from None
    if facts.get("status", "success") != "success":
        raise Unusable("a picture that was not fetched")
    caption = facts.get("caption")
    return caption if isinstance(caption, str) else None
