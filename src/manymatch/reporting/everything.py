"""All results under a folder, read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from manymatch.reporting.ablations import Ablation, read_ablations
from manymatch.reporting.clusters import Clusters, read_clusters
from manymatch.reporting.costs import Costs, read_all_costs
from manymatch.reporting.results import Run, read_runs
from manymatch.reporting.sketches import SketchResults, read_all_sketches
from manymatch.reporting.study_results import Studied, read_studies
from manymatch.reporting.synthetic import Experiment, read_experiments


@dataclass(frozen=True)
class Everything:
    """`runs` are sorted by data set and then as the leaderboard shows them; there is at least one.

    All but the `experiments` and `sketches` are of data sets of images and captions.
    """

    runs: list[Run]
    ablations: list[Ablation] = field(default_factory=list)
    clusters: list[Clusters] = field(default_factory=list)
    studies: list[Studied] = field(default_factory=list)
    costs: list[Costs] = field(default_factory=list)
    experiments: list[Experiment] = field(default_factory=list)
    sketches: list[SketchResults] = field(default_factory=list)

    @classmethod
    def read(cls, reports: Path) -> Everything:
        """Raises `DataError` (one line, with the file) without a run, or of a malformed result."""
        return cls(
            read_runs(reports),
            read_ablations(reports),
            read_clusters(reports),
            read_studies(reports),
            read_all_costs(reports),
            read_experiments(reports),
            read_all_sketches(reports),
        )
