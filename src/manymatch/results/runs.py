"""All result files of one evaluated model, with its curves and the ranks of its queries."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyarrow import csv as arrow_csv

from manymatch.results.metrics import Metrics, Provenance
from manymatch.results.ranked import Ranked
from manymatch.results.retrieval import Ranks, Samples
from manymatch.results.sets import SetDetails
from manymatch.util.errors import DataError, first_line
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
    """Read `folder/plots/metrics/**/*.tsv`. Curves without a finite value are left out. A file that
    is not a table of steps and values is a `DataError`."""
    root = folder / "plots" / "metrics"
    curves = [_read_curve(path, root) for path in sorted(root.rglob("*.tsv"))]
    return {curve.name: curve for curve in curves if curve.points}


def _read_curve(path: Path, root: Path) -> Curve:
    name = path.relative_to(root).with_suffix("").as_posix()
    types = {"step": pa.float64(), path.stem: pa.float64()}
    try:
        with open_regular(path) as file:
            if not path.stat().st_size:  # the disk was full
                return Curve(name, ())
            table = arrow_csv.read_csv(
                file,
                parse_options=arrow_csv.ParseOptions(delimiter="\t"),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types, include_columns=[*types], null_values=[]
                ),
            )
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        raise DataError(
            f"{path}: expected the columns 'step' and '{path.stem}' with a number in each: "
            f"{first_line(error)}. Train the model again."
        ) from None
    points = zip(table["step"].to_pylist(), table[path.stem].to_pylist(), strict=True)
    finite = (pair for pair in points if math.isfinite(pair[1]))
    return Curve(name, tuple(finite))


Kind = Literal["ensemble", "re-ranked", "re-ranked ensemble"]
Direction = Literal["i2t", "t2i"]
WAYS: dict[Direction, str] = {"i2t": "image → text", "t2i": "text → image"}
"""The directions of retrieval, and how the report calls them."""

_TOLERANCE = 0.1
"""The most percent by which rounding may separate the recall of a table from the metric."""


@dataclass(frozen=True)
class Run:
    """One preset on one data set. A bare clone has no curves, samples or set details."""

    metrics: Metrics
    provenance: Provenance
    curves: Curves
    samples: Samples | None
    sets: SetDetails | None = None
    folder: Path | None = None
    """The folder of the run files."""

    @cached_property
    def positive_ranks(self) -> Mapping[str, dict[str, int] | None]:
        """For each direction the rank (from 1) of each query's first annotated positive. None: the
        table is not on this machine, or is of another evaluation, whose recalls are not those of
        the metrics."""
        metrics = {"i2t": self.metrics.i2t, "t2i": self.metrics.t2i}
        return {
            way: _positive_ranks(self.folder / f"{way}.parquet", recalls) if self.folder else None
            for way, recalls in metrics.items()
        }

    @property
    def dataset(self) -> str:
        return self.provenance.dataset

    @property
    def preset(self) -> str:
        return self.provenance.preset

    @property
    def kind(self) -> Kind | None:
        """How the ranking was made; None: by a single trained model."""
        if self.provenance.rerank_beta is None:
            return "ensemble" if self.provenance.members else None
        return "re-ranked ensemble" if self.provenance.members else "re-ranked"


def _positive_ranks(path: Path, metrics: Ranks) -> dict[str, int] | None:
    """The ranks in a table of `results.ranked`, if there is one with these recalls."""
    if not path.is_file():
        return None
    table = Ranked(path)
    ranks = dict(zip(table.ids.to_pylist(), table.ranks.tolist(), strict=True))
    recalls = {1: metrics.r1, 5: metrics.r5, 10: metrics.r10}
    agree = (abs(recall_at(ranks, k) - recall) <= _TOLERANCE for k, recall in recalls.items())
    return ranks if ranks and all(agree) else None


def recall_at(ranks: Mapping[str, int], k: int) -> float:
    """R@K in percent."""
    return 100 * sum(rank <= k for rank in ranks.values()) / len(ranks)


def read_runs(reports: Path) -> list[Run]:
    """Every evaluated model below `reports`, sorted by data set and then from the best rsum down; a
    `DataError` if there is none, or if a file is malformed or belongs to another path."""
    paths = sorted((reports / "results").glob("*/*.json"))
    if not paths:
        raise DataError(
            f"{reports / 'results'}: no results to report. Run 'dvc repro', "
            "or 'manymatch evaluate DATASET PRESET' for a trained model."
        )
    runs = []
    for path in paths:
        dataset, preset = path.parent.name, path.stem
        folder = reports / "runs" / dataset / preset
        samples, sets = (folder / f"{name}.json" for name in ("samples", "sets"))
        run = Run(
            metrics=Metrics.read(path),
            provenance=Provenance.read(reports / "provenance" / dataset / f"{preset}.json"),
            curves=read_curves(reports / "curves" / dataset / preset),
            samples=Samples.read(samples) if samples.is_file() else None,
            sets=SetDetails.read(sets) if sets.is_file() else None,
            folder=folder,
        )
        runs.append(run)
    return sorted(runs, key=lambda run: (run.dataset, -run.metrics.rsum, run.preset))
