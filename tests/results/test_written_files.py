"""Every result file in the repository is read by its class and written again byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from manymatch.results.ablations import Ablation
from manymatch.results.base import Result
from manymatch.results.clusters import Clusters
from manymatch.results.costs import Costs
from manymatch.results.metrics import Headline, Metrics
from manymatch.results.over_seeds import SketchExperiment, SyntheticExperiment
from manymatch.results.provenance import Provenance
from manymatch.results.samples import Samples
from manymatch.results.sets import SetDetails
from manymatch.results.studies import Studies

REPORTS = Path(__file__).parents[2] / "reports"
KINDS: list[type[Result]] = [
    Ablation,
    Clusters,
    Costs,
    Headline,
    Metrics,
    Provenance,
    Samples,
    SetDetails,
    SketchExperiment,
    Studies,
    SyntheticExperiment,
]
FILES = [(kind, path) for kind in KINDS for path in kind.paths(REPORTS)]


@pytest.mark.parametrize(
    ("kind", "path"), FILES, ids=[str(p.relative_to(REPORTS)) for _, p in FILES]
)
def test_a_file_is_written_as_it_was_read(kind: type[Result], path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.relative_to(REPORTS)
    kind.read(path).write(copy)
    assert copy.read_bytes() == path.read_bytes()


def test_every_file_has_a_class() -> None:
    of_machine = {*(REPORTS / "machine").rglob("*.json")}  # a class of `system.machine`
    assert {path for _, path in FILES} == {*REPORTS.rglob("*.json")} - of_machine
