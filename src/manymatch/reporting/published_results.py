"""What the papers print of methods' retrieval: `published_results.csv`, a fact a line.

`metric` is the name that our own metrics files have for the number (`results.numbers`), so that
both stand in one column; `setting` is the gallery (COCO's 1k and 5k) or the ground truth. A paper's
table may have several rows of a method, which `row` keeps apart. `marks`: what the table marks of
ensemble, cross_attention and external_data. Features and encoder are empty where not told.

Values are as printed. Where text versions of the papers lost a mark, it is that of the same row in
another of the papers.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_suffix(".csv")
_PLACE = (
    "paper",
    "section",
    "row",
    "method",
    "venue",
    "features",
    "text_encoder",
    "marks",
    "dataset",
    "setting",
)


@dataclass(frozen=True)
class PublishedResult:
    """A row of a paper's table on one setting of a data set; `values` by metric."""

    values: dict[str, float]
    paper: str
    section: str
    row: str
    method: str
    venue: str
    features: str
    text_encoder: str
    marks: str
    dataset: str
    setting: str


@cache
def published_results() -> tuple[PublishedResult, ...]:
    """All of them, in the file's order."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    with _FILE.open(encoding="utf-8", newline="") as stream:
        for line in csv.DictReader(stream):
            place = tuple(line[key] for key in _PLACE)
            found.setdefault(place, {})[line["metric"]] = float(line["value"])
    return tuple(PublishedResult(values, *place) for place, values in found.items())
