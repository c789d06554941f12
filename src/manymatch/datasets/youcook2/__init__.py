"""YouCook2 (Zhou et al. 2018): clips of cooking videos, each with the sentence of its step.

A clip's id is VIDEO_k. The test split is the published validation split of 3,350 clips, on which
the field reports, since captions of the real one are kept secret; every twentieth training video
validates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from manymatch.datasets.base import Caption, Relevance
from manymatch.datasets.clips import Clip, rows
from manymatch.datasets.youcook2.fetch import ANNOTATIONS, LISTS, fetch
from manymatch.datasets.youcook2.settings import Youcook2Settings
from manymatch.foreign.json_file import read_object
from manymatch.system.errors import DataError

_SPLITS = {"training": "train", "validation": "test"}


class Youcook2:
    """The dataset `youcook2`; see `manymatch.datasets.base.Dataset`."""

    name = "youcook2"

    def download(self, settings: Youcook2Settings, raw: Path) -> None:
        """Put the captions under `raw`."""
        fetch(settings, raw, self.name)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """The rows in the files' order."""
        annotated = (raw / ANNOTATIONS).is_file()
        return rows(_annotated(raw / ANNOTATIONS) if annotated else _listed(raw))

    def relevance(self, raw: Path) -> Relevance | None:
        """None: nobody judged further pairs."""
        return None


def _listed(raw: Path) -> Iterator[Clip]:
    for split, file in LISTS.items():
        path = raw / file
        for number, (clip, caption) in enumerate(read_object(path)["clips"]):
            video = clip.rpartition("_")[0]
            yield Clip(clip, video, split, ((caption, f"{path}: clip {number}"),))


def _annotated(path: Path) -> Iterator[Clip]:
    videos = read_object(path).get("database")
    if not isinstance(videos, Mapping):
        raise DataError(f"{path}: expected an object 'database' of videos")
    for video, entry in videos.items():
        try:
            yield from _clips(video, entry, path)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: video '{video}': not as expected ({error!r})") from None


def _clips(video: str, entry: Mapping[str, Any], path: Path) -> Iterator[Clip]:
    split = _SPLITS.get(entry["subset"])
    if split is None:
        return
    for step in entry["annotations"]:
        clip = f"{video}_{step['id']}"
        yield Clip(clip, video, split, ((str(step["sentence"]), f"{path}: clip '{clip}'"),))
