"""The papers' numbers: what the files hold, and which stand beside our results."""

from pathlib import Path

import pytest
from complete_results import recalls, write_provenance
from made_results import written

from manymatch.reporting import published
from manymatch.reporting.published import published_results
from manymatch.reporting.sections import published as section
from manymatch.results.runs import read_runs

ROOT = Path(__file__).parents[2]
CUTS = ("r1", "r5", "r10")
RESULTS = published_results()


def test_recalls_and_their_sum_agree_but_for_the_rows_that_are_printed_so():
    off = [result for result in RESULTS if abs(_difference(result.values)) > 0.31]
    assert len(off) == 9
    assert {result.paper for result in off} == {"MaxMatch", "CORA"}


def _difference(values):
    found = [value for key, value in values.items() if key.rpartition(".")[2] in CUTS]
    printed = [value for key, value in values.items() if key.endswith("rsum")]
    return sum(found) - printed[0] if printed and len(found) == 6 else 0.0


def test_every_experiment_named_is_there_and_has_numbers():
    for name, (paper, place, _) in published.ABLATION_METRICS.items():
        text = (ROOT / "experiments" / f"{name}.yaml").read_text()
        assert published.tables_beside(name), name
        assert paper in text and place.removesuffix(" 3").removesuffix(" 4") in text, name


def write(reports, **change):
    """The comparisons of one more result with this change of its provenance."""
    origin = {"split": "test", "seed": 0, "features": "lite0", "setting": "small-scale", **change}
    write_provenance(reports, origin)
    path = reports / "results" / origin["dataset"] / f"{origin['preset']}.json"
    written(path, recalls(9.0))
    runs = [run for run in read_runs(reports) if run.dataset == origin["dataset"]]
    return section.comparisons(origin["dataset"], runs)


@pytest.mark.parametrize("changed", [{"split": "validation"}, {"images": 21}, {"images": 5001}])
def test_what_is_not_on_the_papers_test_images_stands_beside_none(reports, changed):
    origin = {"dataset": "coco", "preset": "dive", "method": "dive", "captions": 25_010}
    assert len(write(reports, **origin, images=5000)) == 1
    assert write(reports, **origin | {"images": 5000} | changed) == []
