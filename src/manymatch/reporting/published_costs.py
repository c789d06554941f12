"""What the papers say that methods cost: `published_costs.csv`, a fact a line.

A value is in multiply-adds (of one similarity), in multiples of VSE∞'s (`relative`: of similarity
and retrieval of ten), or in seconds: `step` of training, `test` and of it `ranking`, and of a text
query `parse`, `encode`, `search` and all (`query`), the last two over galleries of a size or a
range of sizes. Hardware is empty where the paper names none.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Place = tuple[str, str, str, str, str]
_FILE = Path(__file__).with_suffix(".csv")


@dataclass(frozen=True)
class Fact:
    """A value, and the numbers of images (smallest, largest) that it is of, where it is of some."""

    measure: str
    value: float
    galleries: tuple[int, int] | None


@dataclass(frozen=True)
class Published:
    """What one place of a paper says about a method on some data."""

    paper: str
    section: str
    method: str
    data: str
    hardware: str
    facts: list[Fact]


def published() -> list[Published]:
    """All of them, in the file's order."""
    found: dict[Place, list[Fact]] = {}
    for place, fact in _lines():
        found.setdefault(place, []).append(fact)
    return [Published(*place, facts) for place, facts in found.items()]


def _lines() -> Iterator[tuple[Place, Fact]]:
    with _FILE.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            smallest, largest = row["smallest_gallery"], row["largest_gallery"]
            galleries = (int(smallest), int(largest)) if smallest else None
            place = row["paper"], row["section"], row["method"], row["data"], row["hardware"]
            yield place, Fact(row["measure"], float(row["value"]), galleries)
