"""`scenes` as a dataset: its files, its caption table, its exact relevance."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from manymatch.datasets.base import SPLITS, Caption, Relevance
from manymatch.datasets.scenes import truth
from manymatch.datasets.scenes.settings import ScenesSettings
from manymatch.scenes.drawing.picture import save
from manymatch.scenes.forms import Form
from manymatch.scenes.generate import Picture, pair
from manymatch.scenes.processes import mapped
from manymatch.scenes.relevance import Gallery, true_pairs
from manymatch.system.files import storage_errors
from manymatch.system.progress import track

BOXES = pa.schema([("image_id", pa.string()), ("boxes", pa.list_(pa.list_(pa.float32())))])
"""`boxes.parquet`: x1 y1 x2 y2 in 0..1 for each object, in the scene graph's order."""

_PAIRS_A_JOB = 32
_PROCESSES_FROM = 400
"""Images from which further processes are worth their start."""
_CAPTIONS_A_JOB = 5000


class Scenes:
    """Generated pictures of everyday things with exact many-to-many ground truth."""

    def download(self, settings: ScenesSettings, raw: Path) -> None:
        """Draw everything into `raw`: images/, boxes.parquet, scenes.jsonl, captions.jsonl."""
        with storage_errors(raw):
            (raw / "images").mkdir(parents=True, exist_ok=True)
            _write(settings, raw)

    def captions(self, raw: Path) -> Iterator[Caption]:
        splits = {row["image_id"]: row["split"] for row in truth.rows(raw / truth.SCENES)}
        for row in truth.rows(raw / truth.CAPTIONS):
            image = row["image_id"]
            yield Caption(image, row["caption_id"], splits[image], row["text"], _file(image))

    def relevance(self, raw: Path) -> Relevance:
        """All true pairs of validation and of test beyond the own ones, exactly."""
        return Relevance(list(_extra_pairs(raw)), complete=True)


# --- writing --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """Some pairs of a split: drawn, written as pictures, and returned as rows."""

    split: str
    numbers: range
    first: int
    """Number of the split's first image in the dataset."""
    images: int
    """Images in the split: the last pair may be cut."""


def _jobs(settings: ScenesSettings) -> Iterator[_Job]:
    first = 0
    for split in SPLITS:
        images = getattr(settings, split)
        pairs = (images + 1) // 2
        for start in range(0, pairs, _PAIRS_A_JOB):
            numbers = range(start, min(start + _PAIRS_A_JOB, pairs))
            yield _Job(split, numbers, first, images)
        first += images


def _write(settings: ScenesSettings, raw: Path) -> None:
    jobs = list(_jobs(settings))
    total = settings.train + settings.validation + settings.test
    with (
        (raw / truth.SCENES).open("w", encoding="utf-8") as scenes,
        (raw / truth.CAPTIONS).open("w", encoding="utf-8") as captions,
        pq.ParquetWriter(raw / truth.BOXES, BOXES) as boxes,
    ):
        done = mapped(partial(_draw, settings, raw), jobs, total >= _PROCESSES_FROM)
        for rows in track(done, "scenes: drawing", total=len(jobs)):
            boxes.write_table(pa.Table.from_pylist([row["boxes"] for row in rows], BOXES))
            for row in rows:
                print(json.dumps(row["scene"]), file=scenes)
                for caption in row["captions"]:
                    print(json.dumps(caption), file=captions)


def _draw(settings: ScenesSettings, raw: Path, job: _Job) -> list[dict[str, Any]]:
    rows = []
    for number in job.numbers:
        pictures = pair(settings.seed, job.split, number, settings.twins)
        for place, picture in zip((2 * number, 2 * number + 1), pictures, strict=True):
            if place < job.images:
                index = job.first + place
                save(picture.scene, settings.image_size, raw / _file(_name(index)))
                rows.append(_rows(picture, index, job.split))
    return rows


def _rows(picture: Picture, index: int, split: str) -> dict[str, Any]:
    image, scene = _name(index), picture.scene
    twin = _name(index - 1) if picture.twin else None
    return {
        "scene": {"image_id": image, "split": split, **scene.graph(), "twin_of": twin},
        "boxes": {"image_id": image, "boxes": [list(thing.box) for thing in scene.things]},
        "captions": [
            {
                "caption_id": f"{image}#{k}",
                "image_id": image,
                "text": sentence.text,
                "form": sentence.form.to_dict(),
                "graph": sentence.graph.to_dict(),
            }
            for k, sentence in enumerate(picture.captions)
        ],
    }


def _name(index: int) -> str:
    return f"{index:06d}"


def _file(image: str) -> str:
    return f"images/{image}.jpg"


# --- relevance ------------------------------------------------------------------------------


def _extra_pairs(raw: Path) -> Iterator[tuple[str, str]]:
    scenes = list(truth.rows(raw / truth.SCENES))
    captions = list(truth.rows(raw / truth.CAPTIONS))
    for split in ("validation", "test"):
        graphs = [row for row in scenes if row["split"] == split]
        images = [row["image_id"] for row in graphs]
        inside = set(images)
        told = [row for row in captions if row["image_id"] in inside]
        jobs = [told[k : k + _CAPTIONS_A_JOB] for k in range(0, len(told), _CAPTIONS_A_JOB)]
        search = partial(_true_of, graphs)
        found = mapped(search, jobs, len(told) > _CAPTIONS_A_JOB)
        for job, pairs in zip(
            jobs, track(found, f"scenes: truth of {split}", len(jobs)), strict=True
        ):
            for row, number in pairs:
                if images[row] != job[number]["image_id"]:
                    yield images[row], job[number]["caption_id"]


def _true_of(graphs: list[dict[str, Any]], told: list[dict[str, Any]]) -> list[tuple[int, int]]:
    forms = (Form.from_dict(row["form"]) for row in told)
    return list(true_pairs(Gallery(graphs), forms))
