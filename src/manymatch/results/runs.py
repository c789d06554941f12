"""All result files of one evaluated model together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from manymatch.results.curves import Curves, read_curves
from manymatch.results.metrics import Metrics
from manymatch.results.provenance import Provenance
from manymatch.results.rankings import PositiveRanks, read_positive_ranks
from manymatch.results.retrieval import Ranks
from manymatch.results.samples import Samples
from manymatch.results.sets import SetDetails
from manymatch.util.errors import DataError

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
    samples, sets = folder / "samples.json", folder / "sets.json"
    return Run(
        metrics=Metrics.read(reports / "results" / dataset / f"{preset}.json"),
        provenance=Provenance.read(reports / "provenance" / dataset / f"{preset}.json"),
        curves=read_curves(reports / "curves" / dataset / preset),
        samples=Samples.read(samples) if samples.is_file() else None,
        sets=SetDetails.read(sets) if sets.is_file() else None,
        folder=folder,
    )
