"""All results below the folder `reports`, read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from manymatch.results.ablations import Ablation
from manymatch.results.clusters import Clusters
from manymatch.results.costs import Costs
from manymatch.results.over_seeds import SketchExperiment, SyntheticExperiment
from manymatch.results.runs import Run, read_runs
from manymatch.results.studies import Studies
from manymatch.results.tuning import Tuning

_OfModel = TypeVar("_OfModel", Studies, Clusters)


@dataclass(frozen=True)
class AllResults:
    """Each list is in the order of the class's `read_all`; `runs` has at least one run.

    `outdated` are the studies and clusters of other models than the evaluated ones of the same
    name. They are not among `studies` and `clusters`.
    """

    runs: list[Run]
    ablations: list[Ablation] = field(default_factory=list)
    tuning: list[Tuning] = field(default_factory=list)
    clusters: list[Clusters] = field(default_factory=list)
    studies: list[Studies] = field(default_factory=list)
    costs: list[Costs] = field(default_factory=list)
    synthetic: list[SyntheticExperiment] = field(default_factory=list)
    sketches: list[SketchExperiment] = field(default_factory=list)
    outdated: list[Studies | Clusters] = field(default_factory=list)

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
        runs = read_runs(reports)
        studies, old_studies = _split_by_model(Studies.read_all(reports), runs)
        clusters, old_clusters = _split_by_model(Clusters.read_all(reports), runs)
        return cls(
            runs=runs,
            ablations=Ablation.read_all(reports),
            tuning=Tuning.read_all(reports),
            clusters=clusters,
            studies=studies,
            costs=Costs.read_all(reports),
            synthetic=SyntheticExperiment.read_all(reports),
            sketches=SketchExperiment.read_all(reports),
            outdated=[*old_studies, *old_clusters],
        )


def _split_by_model(
    results: Sequence[_OfModel], runs: Sequence[Run]
) -> tuple[list[_OfModel], list[_OfModel]]:
    """The results of the evaluated models, and those of other models of the same names."""
    models = {(run.dataset, run.preset): run.provenance.checkpoint_sha256 for run in runs}
    current: list[_OfModel] = []
    outdated: list[_OfModel] = []
    for result in results:
        made_by = result.checkpoint_sha256
        evaluated = models.get((result.dataset, result.preset), made_by)
        (current if evaluated == made_by else outdated).append(result)
    return current, outdated
