"""LSMDC (Rohrbach et al. 2017): clips of films with their audio descriptions for the blind.

The annotations are given out after a form (https://sites.google.com/site/describingmovies/). The
files end in .csv, but are tab-separated and have no header: the clip, four times, the sentence. The
test split is the challenge's 1,000 public clips. If no validation clips are given, the clips of
every 20th film are held out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from manymatch.datasets.base import SPLITS
from manymatch.datasets.fetching.gather import Gatherer, SourceSettings, Usual
from manymatch.datasets.fetching.sources import Source
from manymatch.datasets.image_files import Line
from manymatch.datasets.rows import tab_rows
from manymatch.datasets.video import Clip, VideoDataset

_FILES = {split: f"{split}.csv" for split in SPLITS}
"""Split -> name under the raw folder."""
_COLUMNS = 6
_TIMES = re.compile(r"_\d\d\.\d\d\.\d\d\.\d\d\d-\d\d\.\d\d\.\d\d\.\d\d\d$")
_ADVICE = (
    "fill in the form that https://sites.google.com/site/describingmovies/ links to, and set it to "
    "the file that you receive"
)


class LsmdcSettings(SourceSettings):
    """`sources.lsmdc` of params.yaml."""

    train: Source | None = None
    """`LSMDC16_annos_training.csv`."""
    validation: Source | None = None
    """`LSMDC16_annos_val.csv`; use it only with features of these clips."""
    test: Source | None = None
    """`LSMDC16_challenge_1000_publictect.csv`."""


class Lsmdc(VideoDataset):
    settings_model = LsmdcSettings
    usual: ClassVar[Usual] = {
        "train": ("LSMDC16_annos_training.csv",),
        "validation": (),
        "test": ("LSMDC16_challenge_1000_publictect.csv",),
    }
    advice: ClassVar[dict[str, str]] = dict.fromkeys(usual, _ADVICE)

    def optional(self, gatherer: Gatherer, settings: LsmdcSettings) -> list[str]:
        return ["validation"]

    def collect(self, gatherer: Gatherer, raw: Path) -> None:
        gatherer.copy(_FILES, raw, ["validation"])

    def clips(self, raw: Path) -> Iterator[Clip]:
        """Yield training clips first, in the order of the files."""
        for split in SPLITS:
            path = raw / _FILES[split]
            if split != "validation" or path.is_file():
                yield from _clips(path, split)


def _clips(path: Path, split: str) -> Iterator[Clip]:
    """Yield each clip once, with all its sentences."""
    lines: dict[str, list[Line]] = {}
    for where, (clip, *_, sentence) in tab_rows(path, _COLUMNS):
        lines.setdefault(clip, []).append(Line(sentence, where))
    for clip, sentences in lines.items():
        yield Clip(clip, _TIMES.sub("", clip), split, sentences)
