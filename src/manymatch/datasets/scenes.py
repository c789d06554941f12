"""The dataset `scenes`: generated images with exact many-to-many ground truth.

`manymatch.scenes` generates scenes, images and captions. This module writes them as the dataset's
files and reads the files back.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from os import cpu_count
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import pyarrow as pa
from pydantic import Field

from manymatch.config.strict import Strict
from manymatch.datasets.base import SPLITS, Caption, Dataset, Relevance
from manymatch.scenes.drawing.image import save
from manymatch.scenes.forms import Form, Gallery, true_pairs
from manymatch.scenes.twins import CaptionedScene, pair
from manymatch.util.errors import DataError, first_line
from manymatch.util.files import storage_errors
from manymatch.util.json_stream import field
from manymatch.util.parquet_file import table_writer
from manymatch.util.processes import process_pool
from manymatch.util.progress import track
from manymatch.util.text_lines import numbered_lines

SCENES, CAPTIONS, BOXES = "scenes.jsonl", "captions.jsonl", "boxes.parquet"

BOX_SCHEMA = pa.schema([("image_id", pa.string()), ("boxes", pa.list_(pa.list_(pa.float32())))])
"""`boxes.parquet`: x1 y1 x2 y2 in 0..1 of each object, in the order of the scene graph."""

_PAIRS_PER_JOB = 32
_MIN_IMAGES_FOR_PROCESSES = 400
"""From this number of images on, worker processes are worth their start."""
_CAPTIONS_PER_JOB = 5000

Images = Annotated[int, Field(ge=0, le=1_000_000)]
NeededImages = Annotated[int, Field(ge=1, le=1_000_000)]
Row = dict[str, Any]
Job = TypeVar("Job")
Result = TypeVar("Result")


class ScenesSettings(Strict):
    """`sources.scenes` of params.yaml, and every other source of this kind.

    Image i of a split depends on `seed`, `twins` and `image_size`, not on the numbers of images.
    """

    kind: Literal["scenes"] = "scenes"
    seed: Annotated[int, Field(ge=0)] = 0
    train: NeededImages = 1200
    validation: NeededImages = 300
    test: Images = 300
    image_size: Annotated[int, Field(ge=32, le=1024)] = 224
    """Width and height in pixels."""
    twins: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    """Share of the images that come in pairs that differ in one binding."""


class Scenes(Dataset):
    """Generated images of everyday things with exact many-to-many ground truth."""

    settings_model = ScenesSettings

    def download(self, settings: ScenesSettings, raw: Path) -> None:
        """Write images/, boxes.parquet, scenes.jsonl and captions.jsonl to `raw`."""
        with storage_errors(raw):
            (raw / "images").mkdir(parents=True, exist_ok=True)
            _write(settings, raw)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """Yield the captions in the order of their images."""
        splits: dict[str, str] = {}
        for where, row in read_rows(raw / SCENES, "image_id", "split"):
            if splits.setdefault(row["image_id"], row["split"]) != row["split"]:
                raise DataError(f"{where}: {row['image_id']} is in two splits. {_remedy(raw)}")
        for where, row in read_rows(raw / CAPTIONS, "image_id", "caption_id", "text"):
            image_id = row["image_id"]
            if image_id not in splits:
                raise DataError(f"{where}: no image {image_id!a:.60} in {SCENES}. {_remedy(raw)}")
            file = _file(image_id)
            split, text = splits[image_id], row["text"]
            yield Caption(image_id, row["caption_id"], split, text, file, where=where)

    def relevance(self, raw: Path) -> Relevance:
        """Return all positives of each split beyond own captions, exactly."""
        return Relevance(list(_extra_pairs(raw)), complete=True)


def read_rows(path: Path, *keys: str) -> Iterator[tuple[str, Row]]:
    """Yield the position (file:line) and the object of each line of a JSON-lines file.

    Raises:
        DataError: the file is missing, or a line is not a JSON object with texts under `keys`.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file. {_remedy(path.parent)}")
    for number, line in numbered_lines(path):
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            fault = first_line(error)
            raise DataError(f"{where}: not JSON: {fault}. {_remedy(path.parent)}") from None
        for key in keys:
            field(row, key, str, where)
        yield where, row


def _remedy(raw: Path) -> str:
    return f"Run `manymatch download {raw.name}` again"


def _mapped(
    function: Callable[[Job], Result], jobs: Iterable[Job], parallel: bool
) -> Iterator[Result]:
    """Yield the results in the order of `jobs`, from one process per core if `parallel`."""
    if not parallel:
        yield from map(function, jobs)
        return
    with process_pool(cpu_count() or 1, "scenes") as pool:
        yield from pool.map(function, jobs)


# --- writing --------------------------------------------------------------------------------


_Job = tuple[str, range, int, int]
"""Consecutive pairs of a split, which are drawn, saved and returned as rows together: the split,
the numbers of the pairs, the number of the split's first image in the dataset, and the number of
images in the split. The last pair may lack its second image."""


def _jobs(settings: ScenesSettings) -> Iterator[_Job]:
    first = 0
    for split in SPLITS:
        images = getattr(settings, split)
        for start in range(0, pairs := (images + 1) // 2, _PAIRS_PER_JOB):
            yield split, range(start, min(start + _PAIRS_PER_JOB, pairs)), first, images
        first += images


def _write(settings: ScenesSettings, raw: Path) -> None:
    jobs = list(_jobs(settings))
    total = settings.train + settings.validation + settings.test
    with (
        (raw / SCENES).open("w", encoding="utf-8") as scenes,
        (raw / CAPTIONS).open("w", encoding="utf-8") as captions,
        table_writer(raw / BOXES, BOX_SCHEMA) as boxes,
    ):
        parallel = total >= _MIN_IMAGES_FOR_PROCESSES
        drawn = _mapped(partial(_draw, settings, raw), jobs, parallel)
        for rows in track(drawn, "scenes: drawing (groups of images)", total=len(jobs)):
            boxes.write_table(pa.Table.from_pylist([row["boxes"] for row in rows], BOX_SCHEMA))
            for row in rows:
                print(json.dumps(row["scene"]), file=scenes)
                for caption in row["captions"]:
                    print(json.dumps(caption), file=captions)


def _draw(settings: ScenesSettings, raw: Path, job: _Job) -> list[Row]:
    split, numbers, first, images = job
    rows = []
    for number in numbers:
        scenes = pair(settings.seed, split, number, settings.twins)
        for position, captioned in zip((2 * number, 2 * number + 1), scenes, strict=True):
            if position < images:
                index = first + position
                save(captioned.scene, settings.image_size, raw / _file(_name(index)))
                rows.append(_rows(captioned, index, split))
    return rows


def _rows(captioned: CaptionedScene, index: int, split: str) -> Row:
    image_id, scene = _name(index), captioned.scene
    twin = _name(index - 1) if captioned.twin else None
    return {
        "scene": {"image_id": image_id, "split": split, **scene.graph(), "twin_of": twin},
        "boxes": {"image_id": image_id, "boxes": [list(thing.box) for thing in scene.things]},
        "captions": [
            {
                "caption_id": f"{image_id}#{k}",
                "image_id": image_id,
                "text": sentence.text,
                "form": sentence.form.to_dict(),
                "graph": sentence.graph.to_dict(),
            }
            for k, sentence in enumerate(captioned.captions)
        ],
    }


def _name(index: int) -> str:
    return f"{index:06d}"


def _file(image_id: str) -> str:
    return f"images/{image_id}.jpg"


# --- relevance ------------------------------------------------------------------------------


def _extra_pairs(raw: Path) -> Iterator[tuple[str, str]]:
    scenes = [row for _, row in read_rows(raw / SCENES, "image_id", "split")]
    captions = [row for _, row in read_rows(raw / CAPTIONS, "image_id", "caption_id")]
    for split in SPLITS:
        graphs = [row for row in scenes if row["split"] == split]
        images = [row["image_id"] for row in graphs]
        inside = set(images)
        split_rows = [row for row in captions if row["image_id"] in inside]
        starts = range(0, len(split_rows), _CAPTIONS_PER_JOB)
        jobs = [split_rows[start : start + _CAPTIONS_PER_JOB] for start in starts]
        results = _mapped(partial(_true_pairs, raw, graphs), jobs, len(jobs) > 1)
        tracked = track(results, f"scenes: truth of {split} (groups of captions)", len(jobs))
        for job, pairs in zip(jobs, tracked, strict=True):
            for row, number in pairs:
                if images[row] != job[number]["image_id"]:
                    yield images[row], job[number]["caption_id"]


def _true_pairs(raw: Path, graphs: list[Row], captions: list[Row]) -> list[tuple[int, int]]:
    try:
        forms = (Form.from_dict(row["form"]) for row in captions)
        return list(true_pairs(Gallery(graphs), forms))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__} {first_line(error)}"
        raise DataError(
            f"{raw}: a damaged scene graph or form in {SCENES} or {CAPTIONS} ({reason}). "
            f"{_remedy(raw)}"
        ) from None
