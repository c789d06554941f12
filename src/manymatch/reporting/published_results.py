"""The retrieval results that the papers print: `published_results.csv`, one value for each line.

`metric` is the name of the number in our own result files (`Record.numbers`), so that both stand
in one column. `setting` is the gallery (COCO's 1k and 5k) or the ground truth. `row` keeps several
rows of one method in a table apart. `marks` are what the table marks of ensemble, cross_attention
and external_data. Features and encoder are empty if the paper does not name them.

Values are as printed. Where a text version of a paper lost a mark, the mark is taken from the same
row in another paper.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_suffix(".csv")


@dataclass(frozen=True)
class PublishedResult:
    """A row of a paper's table on one setting of a data set; `values` by metric."""

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
    values: dict[str, float]


@cache
def published_results() -> tuple[PublishedResult, ...]:
    """All published results, in the order of the file."""
    names = [field.name for field in fields(PublishedResult) if field.name != "values"]
    results: dict[tuple[str, ...], PublishedResult] = {}
    with _FILE.open(encoding="utf-8", newline="") as stream:
        for line in csv.DictReader(stream):
            place = {name: line[name] for name in names}
            result = results.setdefault(tuple(place.values()), PublishedResult(values={}, **place))
            result.values[line["metric"]] = float(line["value"])
    return tuple(results.values())
