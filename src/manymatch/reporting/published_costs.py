"""What the papers say about costs: `published_costs.csv`, one value for each line.

A value is in multiply-adds (of one similarity), in multiples of VSE∞'s (`relative`: of similarity
and retrieval of ten items), or in seconds: `step` of training, `test` and its part `ranking`, and
of a text query `parse`, `encode`, `search` and their sum `query`. The last two have the numbers of
images for which the value holds. Hardware is empty if the paper names none.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_suffix(".csv")
_PLACE = ("paper", "section", "method", "data", "hardware")


@dataclass(frozen=True)
class Fact:
    """A value, and the smallest and largest number of images for which the value holds."""

    measure: str
    value: float
    galleries: tuple[int, int] | None


@dataclass(frozen=True)
class Published:
    """What one section of a paper says about a method on some data."""

    paper: str
    section: str
    method: str
    data: str
    hardware: str
    facts: list[Fact]


def published() -> list[Published]:
    """All published costs, in the order of the file."""
    costs: dict[tuple[str, ...], Published] = {}
    with _FILE.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            place = {name: row[name] for name in _PLACE}
            smallest, largest = row["smallest_gallery"], row["largest_gallery"]
            galleries = (int(smallest), int(largest)) if smallest else None
            fact = Fact(row["measure"], float(row["value"]), galleries)
            cost = costs.setdefault(tuple(place.values()), Published(facts=[], **place))
            cost.facts.append(fact)
    return list(costs.values())
