"""All result files of one evaluated model, with its curves and the ranks in its run files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from manymatch.results.metrics import Metrics, Provenance
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
    """Read `folder/plots/metrics/**/*.tsv`. Curves without a finite value are left out.

    Raises:
        DataError: a file is not a table of steps and values.
    """
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


_COLUMNS = {"query": pa.string(), "item": pa.string(), "rank": pa.int32(), "score": pa.string()}


@dataclass(frozen=True)
class PositiveRanks:
    """The rank (from 1) of each query's first annotated positive among the first `depth` answers;
    None: none of these answers is a positive."""

    depth: int
    ranks: dict[str, int | None]

    def recall(self, k: int) -> float:
        """R@K in percent, for `k` up to `depth`."""
        hits = sum(rank is not None and rank <= k for rank in self.ranks.values())
        return 100 * hits / len(self.ranks)


def read_positive_ranks(path: Path) -> PositiveRanks | None:
    """The ranks in a TREC run file; None if the file is missing or empty.

    Ties count against the model: of answers with equal scores, positives come last. A run file
    holds no judgments. An answer counts as a positive if the caption's id is the image's id with
    '#' and a number. The caller must compare the recalls with the metrics: some data sets have
    other ids.

    Raises:
        DataError: a line is not `QUERY Q0 ITEM RANK SCORE TAG`.
    """
    if not path.is_file() or not path.stat().st_size:
        return None
    try:
        table = arrow_csv.read_csv(
            path,
            arrow_csv.ReadOptions(column_names=["query", "q0", "item", "rank", "score", "tag"]),
            arrow_csv.ParseOptions(delimiter=" ", quote_char=False),
            arrow_csv.ConvertOptions(column_types=_COLUMNS, include_columns=[*_COLUMNS]),
        )
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path}: expected lines 'QUERY Q0 ITEM RANK SCORE TAG': {error}. "
            "Evaluate the model again."
        ) from None
    if table["rank"].null_count:
        raise DataError(f"{path}: a line has no rank. Evaluate the model again.")
    query, item = table["query"], table["item"]
    positive = pc.or_(pc.equal(_image_id(query), item), pc.equal(_image_id(item), query))
    ranks: dict[str, int | None] = dict.fromkeys(pc.unique(query).to_pylist())
    ties = {}
    for row in table.filter(positive).to_pylist():
        if ranks[row["query"]] is None:
            ranks[row["query"]] = row["rank"]
            ties[f"{row['query']} {row['score']}"] = row["rank"]
    keys = pc.binary_join_element_wise(query, table["score"], " ")
    tied = pc.and_(pc.is_in(keys, pa.array(ties, pa.string())), pc.invert(positive))
    for row in table.filter(tied).to_pylist():
        rank = ranks[row["query"]]
        if rank is not None and row["rank"] > ties[f"{row['query']} {row['score']}"]:
            ranks[row["query"]] = rank + 1
    plain = {unquote(key): rank for key, rank in ranks.items()}
    return PositiveRanks(pc.max(table["rank"]).as_py(), plain)


def _image_id(caption_id: pa.ChunkedArray) -> pa.ChunkedArray:
    """The part of an id before the last "#"."""
    return pc.replace_substring_regex(caption_id, "#[^#]*$", "")


Kind = Literal["ensemble", "re-ranked", "re-ranked ensemble"]
Direction = Literal["i2t", "t2i"]
WAYS: dict[Direction, str] = {"i2t": "image → text", "t2i": "text → image"}
"""The directions of retrieval, and how the report calls them."""

_TOLERANCE = 0.1
"""The most percent by which rounding may separate the recall of a run file from the metric."""


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
    def positive_ranks(self) -> Mapping[str, PositiveRanks | None]:
        """The ranks in the run file of each direction. None: the file is not on this machine, or
        its recalls are not those of the metrics, because the data set has other ids."""
        folder, metrics = self.folder, {"i2t": self.metrics.i2t, "t2i": self.metrics.t2i}
        return {
            way: _agreeing(read_positive_ranks(folder / f"{way}.trec") if folder else None, recalls)
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


def _agreeing(ranks: PositiveRanks | None, metrics: Ranks) -> PositiveRanks | None:
    """The ranks, if their recalls are those of the metrics."""
    recalls = {1: metrics.r1, 5: metrics.r5, 10: metrics.r10}
    agree = ranks is not None and all(
        abs(ranks.recall(k) - recall) <= _TOLERANCE
        for k, recall in recalls.items()
        if k <= ranks.depth
    )
    return ranks if agree else None


def read_runs(reports: Path) -> list[Run]:
    """Every evaluated model below `reports`, sorted by data set and then from the best rsum down.

    Raises:
        DataError: there is no result, or a file is malformed or belongs to another path.
    """
    paths = sorted((reports / "results").glob("*/*.json"))
    if not paths:
        raise DataError(
            f"{reports / 'results'}: no results to report. Run 'dvc repro', "
            "or 'manymatch evaluate DATASET PRESET' for a trained model."
        )
    runs = [_read_run(reports, path.parent.name, path.stem) for path in paths]
    return sorted(runs, key=lambda run: (run.dataset, -run.metrics.rsum, run.preset))


def _read_run(reports: Path, dataset: str, preset: str) -> Run:
    folder = reports / "runs" / dataset / preset
    samples, sets = (folder / f"{name}.json" for name in ("samples", "sets"))
    return Run(
        metrics=Metrics.read(reports / "results" / dataset / f"{preset}.json"),
        provenance=Provenance.read(reports / "provenance" / dataset / f"{preset}.json"),
        curves=read_curves(reports / "curves" / dataset / preset),
        samples=Samples.read(samples) if samples.is_file() else None,
        sets=SetDetails.read(sets) if sets.is_file() else None,
        folder=folder,
    )
