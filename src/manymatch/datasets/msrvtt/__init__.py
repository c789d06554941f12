"""MSR-VTT (Xu et al. 2016): 10,000 videos with 20 captions each.

The test split is JSFusion's 1,000 videos with one caption of each, on which the field reports.
The list of training videos decides on which others a model is trained; without one of videos that
validate, every twentieth of them does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manymatch.datasets.base import SPLITS, Caption, Relevance
from manymatch.datasets.clips import Clip, Line, read_csv, rows, without_pictures
from manymatch.datasets.msrvtt.settings import MsrvttSettings
from manymatch.fetching.completeness import whole_json
from manymatch.fetching.copying import copy_file, copy_named
from manymatch.fetching.gather import Gatherer, Usual
from manymatch.foreign.json_file import read_object
from manymatch.system.errors import DataError

CAPTIONS = "MSRVTT_data.json"
LISTS = {split: f"{split}.csv" for split in SPLITS}
"""Split -> name under the raw folder."""
_OPTIONAL = "validation"
USUAL: Usual = {
    "captions": (CAPTIONS, "train_val_videodatainfo.json"),
    "train": ("MSRVTT_train.csv", "MSRVTT_train.9k.csv"),
    "test": ("MSRVTT_JSFUSION_test.csv",),
}


class Msrvtt:
    """The dataset `msrvtt`; see `manymatch.datasets.base.Dataset`."""

    name = "msrvtt"

    def download(self, settings: MsrvttSettings, raw: Path) -> None:
        """Put the captions and lists under `raw`."""
        given = {key: getattr(settings, key) for key in ("captions", *LISTS)}
        gatherer = Gatherer(self.name, raw, settings.folder, USUAL, given)
        copy_file(gatherer.one("captions", check=whole_json("sentences")), raw / CAPTIONS)
        copy_named(gatherer, LISTS, raw, [_OPTIONAL])
        without_pictures(raw)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """The rows, training videos first, in the lists' order."""
        return rows(_clips(raw))

    def relevance(self, raw: Path) -> Relevance | None:
        """None: nobody judged further pairs."""
        return None


def _clips(raw: Path) -> Iterator[Clip]:
    lines = _sentences(raw / CAPTIONS)
    for split in ("train", "validation"):
        path = raw / LISTS[split]
        for where, (video,) in read_csv(path, ["video_id"]) if path.is_file() else ():
            if video not in lines:
                raise DataError(f"{where}: no captions of '{video}' in {CAPTIONS}")
            yield Clip(video, video, split, tuple(lines[video]))
    for where, (video, sentence) in read_csv(raw / LISTS["test"], ["video_id", "sentence"]):
        yield Clip(video, video, "test", ((sentence, where),))


def _sentences(path: Path) -> dict[str, list[Line]]:
    """The captions of each video."""
    entries = read_object(path).get("sentences")
    if not isinstance(entries, list):
        raise DataError(f"{path}: expected a list 'sentences'")
    lines: dict[str, list[Line]] = {}
    for number, entry in enumerate(entries):
        where = f"{path}: sentence {number}"
        try:
            lines.setdefault(entry["video_id"], []).append((str(entry["caption"]), where))
        except (KeyError, TypeError) as error:
            raise DataError(f"{where}: without video_id and caption ({error!r})") from None
    return lines
