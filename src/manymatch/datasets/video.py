"""Data sets of video clips with captions: YouCook2, MSR-VTT and LSMDC.

A clip takes the role of an image. There are no image files: features are published, one row for
each clip.
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from manymatch.datasets.base import SPLITS, Caption
from manymatch.datasets.fetching.archives import whole_json
from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.fetching.gather import Gatherer, PublishedDataset, SourceSettings, Usual
from manymatch.datasets.fetching.sources import Source
from manymatch.datasets.image_files import ImageFolder, Line, single_spaced
from manymatch.datasets.rows import csv_rows, list_rows, tab_rows
from manymatch.util.errors import DataError
from manymatch.util.files import write_json
from manymatch.util.json_file import read_object
from manymatch.util.json_stream import field
from manymatch.util.pickles import read_pickle

_FILES = {split: f"{split}.csv" for split in SPLITS}
"""Split -> name under the raw folder, for MSR-VTT and LSMDC."""
_VALIDATION_EVERY = 20


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
        super().download(settings, raw)
        ImageFolder(absent=True).write(raw)

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
    """Return `clips` with a validation split. If there is none, every 20th training video is held
    out whole, so that no validation video is trained on."""
    if any(clip.split == "validation" for clip in clips):
        return clips
    videos = list(dict.fromkeys(clip.video for clip in clips if clip.split == "train"))
    held_out = {(video, "train") for video in videos[::_VALIDATION_EVERY]}
    return [
        replace(clip, split="validation") if (clip.video, clip.split) in held_out else clip
        for clip in clips
    ]


# --- YouCook2 (Zhou et al. 2018): clips of cooking videos, each with a sentence for its step ------

_ANNOTATIONS = "youcookii_annotations_trainval.json"
_PICKLED = {"train": "train.json", "test": "test.json"}
"""Split -> file under the raw folder with the texts of HowTo100M's pickle:
{"clips": [[ID, CAPTION], ...]}."""
_SPLITS = {"training": "train", "validation": "test"}
_YOUCOOK2 = (
    "set annotations to youcookii_annotations_trainval.json, or train and test to HowTo100M's "
    "youcook_train.pkl and youcook_val.pkl (docs/datasets.md says where to get these files)"
)


class Youcook2Settings(SourceSettings):
    """`sources.youcook2` of params.yaml: `annotations`, or both `train` and `test`."""

    annotations: Source | None = None
    """`youcookii_annotations_trainval.json`, the data set's own file."""
    train: Source | None = None
    """HowTo100M's `youcook_train.pkl`, which also holds features."""
    test: Source | None = None
    """HowTo100M's `youcook_val.pkl`."""


class Youcook2(VideoDataset):
    """A clip's id is VIDEO_k.

    The test split is the published validation split of 3,350 clips, on which published work
    reports, because the captions of the real test split are secret.
    """

    settings_model = Youcook2Settings
    usual: ClassVar[Usual] = {
        "annotations": (_ANNOTATIONS, f"annotations/{_ANNOTATIONS}"),
        "train": ("youcook_train.pkl",),
        "test": ("youcook_val.pkl",),
    }
    advice: ClassVar[dict[str, str]] = {"annotations": _YOUCOOK2}

    def optional(self, gatherer: Gatherer, settings: Youcook2Settings) -> list[str]:
        return ["annotations"] if _has_lists(gatherer) else ["train", "test"]

    def collect(self, gatherer: Gatherer, settings: Youcook2Settings, raw: Path) -> None:
        if _has_lists(gatherer):
            for split, file in _PICKLED.items():
                write_json(raw / file, {"clips": _pickled_captions(gatherer.one(split))})
        else:
            copy_file(gatherer.one("annotations", whole_json()), raw / _ANNOTATIONS)

    def clips(self, raw: Path) -> Iterator[Clip]:
        if (raw / _ANNOTATIONS).is_file():
            yield from _annotated(raw / _ANNOTATIONS)
            return
        for split, file in _PICKLED.items():
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


# --- MSR-VTT (Xu et al. 2016): 10,000 videos with 20 captions each --------------------------------

_CAPTIONS = "MSRVTT_data.json"


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
    """The test split is JSFusion's 1,000 videos with one caption each, on which published work
    reports. The list of training videos decides which other videos a model is trained on.
    """

    settings_model = MsrvttSettings
    may_lack = ("validation",)
    usual: ClassVar[Usual] = {
        "captions": (_CAPTIONS, "train_val_videodatainfo.json"),
        "train": ("MSRVTT_train.csv", "MSRVTT_train.9k.csv"),
        "validation": (),
        "test": ("MSRVTT_JSFUSION_test.csv",),
    }

    def collect(self, gatherer: Gatherer, settings: MsrvttSettings, raw: Path) -> None:
        copy_file(gatherer.one("captions", whole_json("sentences")), raw / _CAPTIONS)
        gatherer.copy(_FILES, raw, self.may_lack)

    def clips(self, raw: Path) -> Iterator[Clip]:
        """Yield training videos first, in the order of the lists."""
        captions: dict[str, list[Line]] = {}
        for _, where, entry in list_rows(raw / _CAPTIONS, "sentences"):
            line = Line(field(entry, "caption", str, where), where)
            captions.setdefault(field(entry, "video_id", str, where), []).append(line)
        for split in ("train", "validation"):
            path = raw / _FILES[split]
            is_given = split == "train" or path.is_file()
            for where, video in csv_rows(path, "video_id") if is_given else ():
                if video not in captions:
                    raise DataError(f"{where}: no captions of '{video}' in {_CAPTIONS}")
                yield Clip(video, video, split, captions[video])
        for where, video, sentence in csv_rows(raw / _FILES["test"], "video_id", "sentence"):
            yield Clip(video, video, "test", [Line(sentence, where)])


# --- LSMDC (Rohrbach et al. 2017): clips of films with their descriptions for the blind -----------

_TIMES = re.compile(r"_\d\d\.\d\d\.\d\d\.\d\d\d-\d\d\.\d\d\.\d\d\.\d\d\d$")
_LSMDC = (
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
    """The annotations are given out after a form.

    The files end in .csv, but are tab-separated and have no header: the clip, four times, the
    sentence. The test split is the challenge's 1,000 public clips.
    """

    settings_model = LsmdcSettings
    may_lack = ("validation",)
    usual: ClassVar[Usual] = {
        "train": ("LSMDC16_annos_training.csv",),
        "validation": (),
        "test": ("LSMDC16_challenge_1000_publictect.csv",),
    }
    advice: ClassVar[dict[str, str]] = dict.fromkeys(usual, _LSMDC)

    def collect(self, gatherer: Gatherer, settings: LsmdcSettings, raw: Path) -> None:
        gatherer.copy(_FILES, raw, self.may_lack)

    def clips(self, raw: Path) -> Iterator[Clip]:
        """Yield training clips first, in the order of the files, each once with all sentences."""
        for split in SPLITS:
            path, lines = raw / _FILES[split], dict[str, list[Line]]()
            if split == "validation" and not path.is_file():
                continue
            for where, (clip, *_, sentence) in tab_rows(path, 6):
                lines.setdefault(clip, []).append(Line(sentence, where))
            for clip, sentences in lines.items():
                yield Clip(clip, _TIMES.sub("", clip), split, sentences)
