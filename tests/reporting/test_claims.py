"""The papers' claims: verdicts as by hand, and a wrong claim is one line."""

import statistics

import pytest
from made_results import write_experiment
from plans import plan_of
from scipy import stats

from manymatch.reporting.estimates import verdicts
from manymatch.reporting.sections.claims import check
from manymatch.results.experiments import Claim, Experiment, read_claims
from manymatch.util.errors import ConfigError


@pytest.mark.parametrize(
    ("rsums", "verdict"),
    [
        ([110.0, 111.0, 113.0], "better"),
        ([98.0, 101.0, 104.0], "not decided"),
        ([89.0, 90.0, 91.5], "worse"),
        ([150.0], "not decided"),
        ([110.0, 112.0], "better"),
    ],
)
def test_the_verdict_is_that_of_scipys_interval(tmp_path, rsums, verdict):
    single = [99.0, 100.0, 101.0][: len(rsums)]
    write_experiment(tmp_path, "what", {"preset": ["a", "b"]}, rsums={"a": rsums, "b": single})
    claim = Claim.model_validate({"better": "a", "other": "b", "metrics": ["rsum"]})
    (part,) = check(Experiment.read_all(tmp_path), {"what": {"A claim": claim}})
    assert verdicts([part.difference]) == [verdict]
    assert part.difference.mean == pytest.approx(statistics.fmean(rsums) - statistics.fmean(single))
    if len(rsums) == 1:
        assert part.difference.half_width is None
        return
    low, high = stats.ttest_rel(rsums, single).confidence_interval(0.95)
    assert part.difference.half_width == pytest.approx((high - low) / 2)
    assert (low > 0, high < 0) == (verdict == "better", verdict == "worse")


WRONG = [
    ("{better: dives, other: cora}", ("'dives'", "'dive'")),
    ("{better: dive, other: [cora, coras]}", ("'coras'", "'cora'")),
    ("{better: dive, other: cora, metrics: [rsums]}", ("'rsums'", "'rsum'")),
    ("{better: dive, against: cora}", ("other",)),
    ("{better: [], other: cora}", ("better",)),
    ("dive over cora", ("claims.A",)),
]


@pytest.mark.parametrize(("claim", "words"), WRONG)
def test_a_wrong_claim_is_one_line_when_the_experiment_runs_and_in_the_report(
    claim, words, tmp_path
):
    path = tmp_path / "experiments" / "what.yaml"
    path.parent.mkdir()
    path.write_text(f"over: {{preset: [dive, cora]}}\nclaims: {{A: {claim}}}\n")
    for wrong in (plan_of, lambda path: read_claims(path.parent, {"what": ["dive", "cora"]})):
        with pytest.raises(ConfigError) as fault:
            wrong(path)
        message = str(fault.value)
        assert message.startswith(f"{path}: ") and "\n" not in message
        assert all(word in message for word in words)


def test_every_claim_of_the_project_has_its_points_and_three_seeds(root):
    plans = [plan_of(path) for path in (root / "experiments").glob("*.yaml")]
    claimed = [plan for plan in plans if getattr(plan, "claims", None)]
    assert claimed and all(len(plan.seeds) >= 3 for plan in claimed)
