"""LSMDC (Rohrbach et al. 2017): clips of films with what is told of them to the blind.

Annotations are given out after a form (https://sites.google.com/site/describingmovies/). Their
files end in .csv but are tab-separated, without a head: the clip, four times, the sentence. The
test split is the challenge's 1,000 public clips. Where no clips are named that validate, those of
every twentieth film do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from manymatch.datasets.base import SPLITS, Caption, Relevance
from manymatch.datasets.clips import Clip, Line, rows, without_pictures
from manymatch.datasets.lsmdc.settings import LsmdcSettings
from manymatch.fetching.copying import copy_named
from manymatch.fetching.gather import Gatherer, Usual
from manymatch.foreign.text_lines import columns, numbered_lines

USUAL: Usual = {
    "train": ("LSMDC16_annos_training.csv",),
    "validation": (),
    "test": ("LSMDC16_challenge_1000_publictect.csv",),
}
_FILES = {split: f"{split}.csv" for split in SPLITS}
"""Split -> name under the raw folder."""
_OPTIONAL = "validation"
_COLUMNS = 6
_TIMES = re.compile(r"_\d\d\.\d\d\.\d\d\.\d\d\d-\d\d\.\d\d\.\d\d\.\d\d\d$")


class Lsmdc:
    """The dataset `lsmdc`; see `manymatch.datasets.base.Dataset`."""

    name = "lsmdc"

    def download(self, settings: LsmdcSettings, raw: Path) -> None:
        """Put the annotations under `raw`."""
        given = {key: getattr(settings, key) for key in SPLITS}
        gatherer = Gatherer(self.name, raw, settings.folder, USUAL, given)
        advice = (
            "fill in the form that https://sites.google.com/site/describingmovies/ links to, and "
            "set it to the file that you are given"
        )
        copy_named(gatherer, _FILES, raw, [_OPTIONAL], advice)
        without_pictures(raw)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """The rows, training clips first, in the files' order."""
        return rows(clip for split in SPLITS for clip in _clips(raw / _FILES[split], split))

    def relevance(self, raw: Path) -> Relevance | None:
        """None: nobody judged further pairs."""
        return None


def _clips(path: Path, split: str) -> Iterator[Clip]:
    """A clip that has several sentences comes once."""
    lines: dict[str, list[Line]] = {}
    for number, text in numbered_lines(path) if path.is_file() else ():
        where = f"{path}:{number}"
        clip, *_, sentence = columns(text, _COLUMNS, where)
        lines.setdefault(clip, []).append((sentence, where))
    for clip, sentences in lines.items():
        yield Clip(clip, _TIMES.sub("", clip), split, tuple(sentences))
