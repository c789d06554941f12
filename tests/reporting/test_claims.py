"""The papers' claims: verdicts as by hand, of points that the ablations really have."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest
from made_results import write_ablation
from plans import plan_of
from report_pages import pages_of, section_of
from scipy import stats

from manymatch.experiments.grid import points
from manymatch.reporting import claims
from manymatch.reporting.estimates import verdicts
from manymatch.results.ablations import Ablation, AblationRun

ROOT = Path(__file__).parents[2]
NAMES = ["vsepp", "vse_infinity", "pvse", "dive", "maxmatch", "msrm", "pcme", "swamp", "cora"]


def methods(reports: Path, rsums: dict[str, list[float]], dataset: str = "scenes") -> None:
    """The table of methods with these rsums, a seed each; 100 for every other method."""
    rsums = {name: [100.0] * 3 for name in NAMES} | rsums
    name, over = f"{dataset}-study", {"preset": NAMES}
    write_ablation(reports, name, over, dataset=dataset, sets=True, rsums=rsums)


def findings(reports: Path, dataset: str = "scenes") -> dict[str, list[claims.Finding]]:
    by_claim: dict[str, list[claims.Finding]] = {}
    for finding in claims.check(dataset, Ablation.read_all(reports)):
        by_claim.setdefault(finding.claim.text, []).append(finding)
    return by_claim


SETS = "Sets over single vectors"


@pytest.mark.parametrize(
    ("rsums", "verdict"),
    [
        ([110.0, 111.0, 113.0], "better"),
        ([98.0, 101.0, 104.0], "not decided"),
        ([100.0, 100.0, 100.0], "not decided"),
        ([90.0, 91.0, 140.0], "not decided"),
        ([95.0, 99.0, 101.0], "not decided"),
        ([89.0, 90.0, 91.5], "worse"),
        ([150.0], "not decided"),
        ([110.0, 111.0], "better"),
    ],
)
def test_the_verdict_is_that_of_scipys_interval(
    tmp_path: Path, rsums: list[float], verdict: str
) -> None:
    single = [99.0, 100.0, 101.0]
    methods(tmp_path, {"msrm": rsums, "pcme": single})
    part = findings(tmp_path)["MSRM over PCME"][0]
    assert verdicts([part.difference]) == [verdict]
    assert part.difference.mean == pytest.approx(statistics.fmean(rsums) - 100)
    if len(rsums) == 1:
        assert part.difference.half_width is None
        return
    if len(rsums) == len(single):
        low, high = stats.ttest_rel(rsums, single).confidence_interval(0.95)
    else:
        low, high = stats.ttest_ind(rsums, single, equal_var=False).confidence_interval(0.95)
    assert part.difference.half_width == pytest.approx((high - low) / 2)
    assert (low > 0, high < 0) == (verdict == "better", verdict == "worse")


def test_the_best_mean_stands_for_a_side(tmp_path: Path) -> None:
    rsums = {"pvse": [90.0, 92.0, 94.0], "dive": [120.0, 121.0, 122.0], "vsepp": [103.0] * 3}
    methods(tmp_path, rsums)
    part = findings(tmp_path)[SETS][0]
    assert (part.better.label, part.other.label) == ("dive", "vsepp")
    assert part.text() == (
        "rsum: dive 121.0 ± 1.0 against vsepp 103.0 ± 0.0 (3 seeds), +18.0 (95% interval 15.5 to "
        "20.5)"
    )


def test_results_on_another_gallery_are_not_compared(tmp_path: Path) -> None:
    methods(tmp_path, {})
    for split, claimed in (("test", True), ("validation", False)):
        write_ablation(tmp_path, "swamp-twin", {"weight": [0.0]}, split=split)
        assert ("SwAMP over its contrastive twin" in findings(tmp_path)) == claimed


def test_a_claim_without_all_its_points_is_left_out(tmp_path: Path) -> None:
    methods(tmp_path, {})
    assert set(findings(tmp_path)) == {
        SETS,
        "DivE over PVSE",
        "MaxMatch over DivE",
        "CORA over VSE-infinity",
        "MSRM over PCME",
        "MaxMatch's sets wider than DivE's",
    }
    others = [name for name in NAMES if name != "pvse"]
    write_ablation(tmp_path, "scenes-study", {"preset": others}, sets=True)
    assert SETS not in findings(tmp_path)
    assert findings(tmp_path, "flickr8k") == {}


def test_a_claim_joins_the_points_of_two_ablations(tmp_path: Path) -> None:
    methods(tmp_path, {"swamp": [110.0, 111.0, 112.0]})
    write_ablation(tmp_path, "swamp-twin", {"weight": [0.0, 1.0]})
    part = findings(tmp_path)["SwAMP over its contrastive twin"]
    assert [(item.better.label, item.other.label) for item in part] == 2 * [("swamp", "weight=0.0")]


def test_maxmatch_is_judged_by_its_papers_claims(tmp_path: Path) -> None:
    """MaxMatch extends DivE (tables 1 and 2), and its similarity smooth-Chamfer (table 3)."""
    methods(tmp_path, {"maxmatch": [110.0, 111.0, 112.0], "dive": [100.0, 101.0, 102.0]})
    labels = {"MaxMatch, all": [110.0, 112.0], "smooth-Chamfer, all": [100.0, 101.0]}
    write_ablation(tmp_path, "maxmatch-losses", {"preset": list(labels)}, rsums=labels)
    found = findings(tmp_path)
    sides = {
        text: (found[text][0].better.label, found[text][0].other.label)
        for text in ("MaxMatch over DivE", "Pair assignment over smooth-Chamfer, in MaxMatch")
    }
    assert list(sides.values()) == [("maxmatch", "dive"), tuple(labels)]


def test_a_quantity_is_the_mean_of_its_metrics(tmp_path: Path) -> None:
    methods(tmp_path, {})
    (table,) = Ablation.read_all(tmp_path)
    run = table.points[0].runs[0]
    both = claims.CLAIMS[0].quantities[1].of(run)
    assert both is not None
    multi = run.metrics.multi
    assert multi is not None
    assert both == statistics.fmean(way.map_at_r for way in (multi.i2t, multi.t2i))
    bare = AblationRun.model_validate({"seed": 0, "metrics": {"rsum": 1.0}})
    assert claims.CLAIMS[0].quantities[1].of(bare) is None


@pytest.mark.parametrize("dataset", ["scenes", "flickr8k"])
@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.text)
def test_claims_are_about_points_that_the_ablations_have(claim: claims.Claim, dataset: str) -> None:
    for side in (claim.better, claim.other):
        plan = plan_of(ROOT / "experiments" / f"{side.ablation.format(dataset=dataset)}.yaml")
        assert set(side.labels) <= {point.label for point in points(plan)}
        assert len(plan.seeds) >= 3


def test_claims_stand_on_the_page_and_below_the_table(reports: Path) -> None:
    methods(reports, {"msrm": [110.0, 111.0, 112.0]})
    methods(reports, {}, dataset="elsewhere")
    pages = pages_of(reports)
    assert pages["index"].count('id="scenes-claims"') == 1
    for name in ("scenes", "elsewhere"):
        assert pages[f"{name}-experiments"].count('id="claims"') == 1
    assert "flickr8k-claims" not in pages["index"]
    section = section_of(pages["scenes-experiments"], "claims")
    assert "msrm 111.0 ± 1.0" in section and '<span class="badge better">' in section
    board = (reports / "leaderboard.md").read_text(encoding="utf-8")
    (line,) = [
        line for line in board.splitlines() if line.startswith("- MSRM over PCME. rsum: msrm 111.0")
    ]
    assert re.search(r"against pcme 100\.0 ± 0\.0 \(3 seeds\), \+11\.0 .*: \*\*better\*\*;", line)
    assert board.count(claims.MEANING) == 1
    assert board.index("| msrm |") < board.index("- MSRM over PCME")
