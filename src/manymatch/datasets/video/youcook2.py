"""YouCook2 (Zhou et al. 2018): clips of cooking videos, each with a sentence for its step.

A clip's id is VIDEO_k. The test split is the published validation split of 3,350 clips, on which
published work reports, because the captions of the real test split are secret. Every 20th training
video is held out for validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from manymatch.datasets.fetching.archives import whole_json
from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.fetching.gather import Gatherer, SourceSettings, Usual
from manymatch.datasets.fetching.sources import Source
from manymatch.datasets.image_files import Line
from manymatch.datasets.video import Clip, VideoDataset
from manymatch.util.errors import DataError
from manymatch.util.files import write_json
from manymatch.util.json_file import read_object
from manymatch.util.json_stream import field
from manymatch.util.pickles import read_pickle

ANNOTATIONS = "youcookii_annotations_trainval.json"
LISTS = {"train": "train.json", "test": "test.json"}
"""Split -> file under the raw folder with the texts of HowTo100M's pickle:
{"clips": [[ID, CAPTION], ...]}."""
_SPLITS = {"training": "train", "validation": "test"}

_ADVICE = (
    "set annotations to youcookii_annotations_trainval.json, or train and test to HowTo100M's "
    "youcook_train.pkl and youcook_val.pkl (docs/datasets.md says where to get these files)"
)


class Youcook2Settings(SourceSettings):
    """`sources.youcook2` of params.yaml: `annotations`, or both `train` and `test`."""

    annotations: Source | None = None
    """`youcookii_annotations_trainval.json`, the dataset's own file."""
    train: Source | None = None
    """HowTo100M's `youcook_train.pkl`, which also holds features."""
    test: Source | None = None
    """HowTo100M's `youcook_val.pkl`."""


class Youcook2(VideoDataset):
    settings_model = Youcook2Settings
    usual: ClassVar[Usual] = {
        "annotations": (ANNOTATIONS, f"annotations/{ANNOTATIONS}"),
        "train": ("youcook_train.pkl",),
        "test": ("youcook_val.pkl",),
    }
    advice: ClassVar[dict[str, str]] = {"annotations": _ADVICE}

    def optional(self, gatherer: Gatherer, settings: Youcook2Settings) -> list[str]:
        return ["annotations"] if _has_lists(gatherer) else ["train", "test"]

    def collect(self, gatherer: Gatherer, raw: Path) -> None:
        if _has_lists(gatherer):
            for split, file in LISTS.items():
                write_json(raw / file, {"clips": _pickled_captions(gatherer.one(split))})
        else:
            copy_file(gatherer.one("annotations", whole_json()), raw / ANNOTATIONS)

    def clips(self, raw: Path) -> Iterator[Clip]:
        if (raw / ANNOTATIONS).is_file():
            yield from _annotated(raw / ANNOTATIONS)
            return
        for split, file in LISTS.items():
            path = raw / file
            for number, entry in enumerate(field(read_object(path), "clips", list, str(path))):
                where = f"{path}: clip {number}"
                clip, caption = _id_and_caption(entry, where)
                yield Clip(clip, clip.rpartition("_")[0], split, [Line(caption, where)])


def _has_lists(gatherer: Gatherer) -> bool:
    return gatherer.has("train") and gatherer.has("test")


def _pickled_captions(path: Path) -> list[list[str]]:
    """Return [id, caption] of every clip in HowTo100M's pickle."""
    entries = read_pickle(path)
    if not isinstance(entries, list):
        raise DataError(f"{path}: expected a list of clips")
    captions = []
    for number, entry in enumerate(entries):
        values = [entry.get(key) for key in ("id", "caption")] if isinstance(entry, Mapping) else []
        captions.append(_id_and_caption(values, f"{path}: clip {number}"))
    return captions


def _id_and_caption(values: Any, where: str) -> list[str]:
    texts = [text for text in values if isinstance(text, str)] if isinstance(values, list) else []
    if len(texts) != 2 or len(values) != 2:
        raise DataError(f"{where}: without an id and a caption. Use HowTo100M's file")
    return texts


def _annotated(path: Path) -> Iterator[Clip]:
    for video, entry in field(read_object(path), "database", dict, str(path)).items():
        where = f"{path}: video '{video}'"
        split = _SPLITS.get(field(entry, "subset", str, where))
        if split is None:
            continue
        for step in field(entry, "annotations", list, where):
            clip = f"{video}_{field(step, 'id', int, where)}"
            line_where = f"{path}: clip '{clip}'"
            sentence = field(step, "sentence", str, line_where)
            yield Clip(clip, video, split, [Line(sentence, line_where)])
