"""MSR-VTT (Xu et al. 2016): 10,000 videos with 20 captions each.

The test split is JSFusion's 1,000 videos with one caption each, on which published work reports.
The list of training videos decides which other videos a model is trained on. If no list of
validation videos is given, every 20th training video is held out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from manymatch.datasets.base import SPLITS
from manymatch.datasets.fetching.archives import whole_json
from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.fetching.gather import Gatherer, SourceSettings, Usual
from manymatch.datasets.fetching.sources import Source
from manymatch.datasets.image_files import Line
from manymatch.datasets.rows import csv_rows, list_rows
from manymatch.datasets.video import Clip, VideoDataset
from manymatch.util.errors import DataError
from manymatch.util.json_stream import field

CAPTIONS = "MSRVTT_data.json"
LISTS = {split: f"{split}.csv" for split in SPLITS}
"""Split -> name under the raw folder."""


class MsrvttSettings(SourceSettings):
    """`sources.msrvtt` of params.yaml."""

    captions: Source | None = None
    """`MSRVTT_data.json`, the 20 captions of every training video."""
    train: Source | None = None
    """A CSV file with the column `video_id`, such as `MSRVTT_train.csv`."""
    validation: Source | None = None
    """A CSV file of the validation videos, with the column `video_id`."""
    test: Source | None = None
    """`MSRVTT_JSFUSION_test.csv`, with the columns `video_id` and `sentence`."""


class Msrvtt(VideoDataset):
    settings_model = MsrvttSettings
    usual: ClassVar[Usual] = {
        "captions": (CAPTIONS, "train_val_videodatainfo.json"),
        "train": ("MSRVTT_train.csv", "MSRVTT_train.9k.csv"),
        "validation": (),
        "test": ("MSRVTT_JSFUSION_test.csv",),
    }

    def optional(self, gatherer: Gatherer, settings: MsrvttSettings) -> list[str]:
        return ["validation"]

    def collect(self, gatherer: Gatherer, raw: Path) -> None:
        copy_file(gatherer.one("captions", whole_json("sentences")), raw / CAPTIONS)
        gatherer.copy(LISTS, raw, ["validation"])

    def clips(self, raw: Path) -> Iterator[Clip]:
        """Yield training videos first, in the order of the lists."""
        captions = _captions(raw / CAPTIONS)
        for split in ("train", "validation"):
            path = raw / LISTS[split]
            is_given = split == "train" or path.is_file()
            for where, (video,) in csv_rows(path, ["video_id"]) if is_given else ():
                if video not in captions:
                    raise DataError(f"{where}: no captions of '{video}' in {CAPTIONS}")
                yield Clip(video, video, split, captions[video])
        for where, (video, sentence) in csv_rows(raw / LISTS["test"], ["video_id", "sentence"]):
            yield Clip(video, video, "test", [Line(sentence, where)])


def _captions(path: Path) -> dict[str, list[Line]]:
    """Return the captions of each video."""
    captions: dict[str, list[Line]] = {}
    for _, where, entry in list_rows(path, "sentences"):
        line = Line(field(entry, "caption", str, where), where)
        captions.setdefault(field(entry, "video_id", str, where), []).append(line)
    return captions
