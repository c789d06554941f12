"""All result files of one evaluated model together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from manymatch.results.curves import Curves, read_curves
from manymatch.results.metrics import Metrics
from manymatch.results.provenance import Provenance
from manymatch.results.samples import Samples
from manymatch.results.sets import SetDetails
from manymatch.system.errors import DataError

Kind = Literal["ensemble", "re-ranked", "re-ranked ensemble"]


@dataclass(frozen=True)
class Run:
    """One preset on one data set. A bare clone has no curves, samples or set details."""

    metrics: Metrics
    provenance: Provenance
    curves: Curves
    samples: Samples | None
    sets: SetDetails | None = None

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


def read_runs(reports: Path) -> list[Run]:
    """Every evaluated model below `reports`, sorted by data set and then from the best rsum down.

    Raises:
        DataError: there is no result, or a file is malformed or belongs to another path.
    """
    paths = sorted((reports / "results").glob("*/*.json"))
    if not paths:
        raise DataError(
            f"{reports / 'metrics'}: no results to report. Run 'dvc repro', "
            "or 'manymatch evaluate DATASET PRESET' for a trained model."
        )
    runs = [_read_run(reports, path.parent.name, path.stem) for path in paths]
    return sorted(runs, key=lambda run: (run.dataset, -run.metrics.rsum, run.preset))


def _read_run(reports: Path, dataset: str, preset: str) -> Run:
    samples, sets = (
        reports / "runs" / dataset / preset / name for name in ("samples.json", "sets.json")
    )
    return Run(
        metrics=Metrics.read(reports / "results" / dataset / f"{preset}.json"),
        provenance=Provenance.read(reports / "provenance" / dataset / f"{preset}.json"),
        curves=read_curves(reports / "curves" / dataset / preset),
        samples=Samples.read(samples) if samples.is_file() else None,
        sets=SetDetails.read(sets) if sets.is_file() else None,
    )
