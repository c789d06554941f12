"""Clips of videos with their captions: what the datasets of video and text have in common.

A clip stands in an image's place. There are no pictures: features are published, one row a clip.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from manymatch.datasets.base import Caption
from manymatch.datasets.image_folder import Place
from manymatch.foreign.text_lines import numbered_lines
from manymatch.system.errors import DataError

EVERY = 20
"""Where nothing says which clips validate, those of every so-manieth training video do."""
Line = tuple[str, str]
"""A caption, and where it stands."""


@dataclass(frozen=True)
class Clip:
    """A clip of `video` and its captions."""

    id: str
    video: str
    split: str
    captions: tuple[Line, ...]


def rows(clips: Iterable[Clip]) -> Iterator[Caption]:
    """The rows of the caption table; a caption's id is CLIP#k."""
    for clip in with_validation(list(clips)):
        for number, (text, where) in enumerate(clip.captions):
            plain = " ".join(text.split())
            file = f"videos/{clip.id}.mp4"
            yield Caption(clip.id, f"{clip.id}#{number}", clip.split, plain, file, where=where)


def with_validation(clips: Sequence[Clip]) -> Sequence[Clip]:
    """`clips`, of which some validate: whole videos, so that none is seen in training."""
    if any(clip.split == "validation" for clip in clips):
        return clips
    videos = dict.fromkeys(clip.video for clip in clips if clip.split == "train")
    held = {(video, "train") for video in list(videos)[::EVERY]}
    return [
        replace(clip, split="validation") if (clip.video, clip.split) in held else clip
        for clip in clips
    ]


def without_pictures(raw: Path) -> None:
    """Note in `raw` that the dataset has none."""
    Place(absent=True).write(raw)


def read_csv(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The named columns of a CSV file with a head, row by row, and where each row stands."""
    lines = numbered_lines(path)
    _, first = next(lines, (1, ""))
    head = _fields(first, f"{path}:1")
    missing = [name for name in columns if name not in head]
    if missing:
        raise DataError(f"{path}:1: no column '{missing[0]}' (there are: {', '.join(head)})")
    places = [head.index(name) for name in columns]
    for number, line in lines:
        fields = _fields(line, f"{path}:{number}")
        if len(fields) != len(head):
            raise DataError(f"{path}:{number}: {len(fields)} fields under a head of {len(head)}")
        yield f"{path}:{number}", [fields[place] for place in places]


def _fields(line: str, where: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error as error:
        raise DataError(f"{where}: not a line of CSV ({error})") from None
