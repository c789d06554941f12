"""All results below the folder `reports`, read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from manymatch.results.ablations import Ablation
from manymatch.results.clusters import Clusters
from manymatch.results.costs import Costs
from manymatch.results.over_seeds import SketchExperiment, SyntheticExperiment
from manymatch.results.runs import Run, read_runs
from manymatch.results.studies import Studies
from manymatch.results.tuning import Tuning


@dataclass(frozen=True)
class AllResults:
    """Each list is in the order of the class's `read_all`; `runs` has at least one run."""

    runs: list[Run]
    ablations: list[Ablation] = field(default_factory=list)
    tuning: list[Tuning] = field(default_factory=list)
    clusters: list[Clusters] = field(default_factory=list)
    studies: list[Studies] = field(default_factory=list)
    costs: list[Costs] = field(default_factory=list)
    synthetic: list[SyntheticExperiment] = field(default_factory=list)
    sketches: list[SketchExperiment] = field(default_factory=list)

    @property
    def judged(self) -> bool:
        """Whether a run has metrics of positives beyond the pairs."""
        return any(run.metrics.multi for run in self.runs)

    @classmethod
    def read(cls, reports: Path) -> AllResults:
        """Read every result file.

        Raises:
            DataError: there is no run, or a file is malformed; one line with the file and the key.
        """
        return cls(
            runs=read_runs(reports),
            ablations=Ablation.read_all(reports),
            tuning=Tuning.read_all(reports),
            clusters=Clusters.read_all(reports),
            studies=Studies.read_all(reports),
            costs=Costs.read_all(reports),
            synthetic=SyntheticExperiment.read_all(reports),
            sketches=SketchExperiment.read_all(reports),
        )
