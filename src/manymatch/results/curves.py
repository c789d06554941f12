"""Training curves as dvclive writes them: one tab-separated file for each logged value."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from manymatch.util.errors import DataError
from manymatch.util.regular_file import open_regular


@dataclass(frozen=True)
class Curve:
    """A logged value over the steps, e.g. `validation/rsum`. All values are finite."""

    name: str
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float:
        return self.points[-1][1]

    @property
    def best(self) -> tuple[float, float]:
        """Step and value of the first highest point."""
        return max(self.points, key=lambda point: point[1])


Curves = dict[str, Curve]
"""Curves by name. The dictionary is empty if the run's curves are not on this machine."""


def read_curves(folder: Path) -> Curves:
    """Read `folder/plots/metrics/**/*.tsv`. Curves without a finite value are left out.

    Raises:
        DataError: a file is not a table of steps and values.
    """
    root = folder / "plots" / "metrics"
    curves = [_read_curve(path, root) for path in sorted(root.rglob("*.tsv"))]
    return {curve.name: curve for curve in curves if curve.points}


def _read_curve(path: Path, root: Path) -> Curve:
    name = path.relative_to(root).with_suffix("").as_posix()
    points = []
    try:
        with open_regular(path) as file, TextIOWrapper(file, "utf-8", newline="") as stream:
            reader = csv.DictReader(stream, delimiter="\t")
            for row in reader:
                points.append(_point(row, path, reader.line_num))
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"{path}: not a table that dvclive wrote. Train the model again.") from None
    return Curve(name, tuple((step, value) for step, value in points if math.isfinite(value)))


def _point(row: dict[str, str], path: Path, line: int) -> tuple[float, float]:
    try:
        return float(row["step"]), float(row[path.stem])
    except (KeyError, TypeError, ValueError):
        raise DataError(
            f"{path}:{line}: expected the columns 'step' and '{path.stem}' with a number in each. "
            "Train the model again."
        ) from None
