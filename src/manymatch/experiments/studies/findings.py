"""What a study finds, as its file holds it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """`rows` of as many cells as there are `columns`; numbers as they are to be shown."""

    title: str
    columns: list[str]
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Findings:
    """`about` says in a sentence or two what was done; `samples` are a few cases to look at, whose
    keys are the study's own."""

    title: str
    about: str
    tables: list[Table]
    samples: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def shown(value: float) -> float:
    """A metric as tables show it."""
    return round(value, 2)
