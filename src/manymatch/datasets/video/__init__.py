"""Video clips with captions: the common part of the data sets of videos.

A clip takes the role of an image. There are no image files: features are published, one row for
each clip.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from manymatch.datasets.base import Caption
from manymatch.datasets.fetching.gather import Gatherer, PublishedDataset
from manymatch.datasets.image_files import Line, single_spaced
from manymatch.datasets.image_folder import ImageFolder

VALIDATION_EVERY = 20
"""If no validation clips are given, the clips of every 20th training video are held out."""


@dataclass(frozen=True)
class Clip:
    """A clip of `video` with its captions."""

    id: str
    video: str
    split: str
    captions: Sequence[Line]


class VideoDataset(PublishedDataset):
    """A data set of clips with captions."""

    has_images = False

    def download(self, settings: Any, raw: Path) -> None:
        self.collect(self.gatherer(settings, raw), raw)
        ImageFolder(absent=True).write(raw)

    @abstractmethod
    def collect(self, gatherer: Gatherer, raw: Path) -> None:
        """Put the captions under `raw`."""

    @abstractmethod
    def clips(self, raw: Path) -> Iterable[Clip]:
        """Yield the clips in the order of the files."""

    def captions(self, raw: Path) -> Iterator[Caption]:
        """Yield the rows in the order of the files. The id of caption k is CLIP#k."""
        for clip in _add_validation(list(self.clips(raw))):
            for number, (text, where, _) in enumerate(clip.captions):
                file = f"videos/{clip.id}.mp4"
                caption = single_spaced(text)
                yield Caption(
                    clip.id, f"{clip.id}#{number}", clip.split, caption, file, where=where
                )


def _add_validation(clips: Sequence[Clip]) -> Sequence[Clip]:
    """Return `clips` with a validation split.

    If there is none, whole training videos are held out, so that no validation video is trained on.
    """
    if any(clip.split == "validation" for clip in clips):
        return clips
    videos = list(dict.fromkeys(clip.video for clip in clips if clip.split == "train"))
    held_out = {(video, "train") for video in videos[::VALIDATION_EVERY]}
    return [
        replace(clip, split="validation") if (clip.video, clip.split) in held_out else clip
        for clip in clips
    ]
