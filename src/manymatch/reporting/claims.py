"""What the papers claim of their methods, and whether it holds in the results that are here."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from manymatch.reporting.ablations import Spread
from manymatch.reporting.estimates import VERDICTS, Difference
from manymatch.results.ablations import Ablation, AblationPoint, AblationRun

METHODS = "{dataset}-methods"
"""The ablation that compares whole methods on a data set."""

MEANING = (
    f"{VERDICTS} Where a side has several methods or settings, the one with the best mean stands "
    "for the side."
)


@dataclass(frozen=True)
class Quantity:
    """A number of a run, more is better: the mean of the metrics `keys` (as in
    `results.numbers`)."""

    label: str
    keys: tuple[str, ...]
    digits: int = 1

    def of(self, run: AblationRun) -> float | None:
        """None if the run lacks one of them."""
        found = run.metrics.numbers()
        if not all(key in found for key in self.keys):
            return None
        return statistics.fmean(found[key] for key in self.keys)


_RETRIEVAL = (
    Quantity("rsum", ("rsum",)),
    Quantity("mAP@R, mean of both ways", ("multi.i2t.map_at_r", "multi.t2i.map_at_r"), digits=2),
)
_VARIANCE = tuple(
    Quantity(f"log circular variance, {shown}", (f"sets.{side}.log_circular_variance",), digits=2)
    for side, shown in (("images", "images"), ("texts", "captions"))
)


@dataclass(frozen=True)
class Side:
    """Points of one ablation, by their labels."""

    ablation: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """That `better` exceeds `other` in each of the `quantities`."""

    text: str
    better: Side
    other: Side
    quantities: tuple[Quantity, ...] = _RETRIEVAL


CLAIMS = [
    Claim(
        "Sets over single vectors",
        Side(METHODS, ("pvse", "dive", "maxmatch")),
        Side(METHODS, ("vsepp", "vse_infinity")),
    ),
    Claim(
        "Smooth-Chamfer over MIL, in DivE",
        Side("dive-similarity", ("smooth-Chamfer, slot attention",)),
        Side("dive-similarity", ("MIL, slot attention",)),
    ),
    Claim(
        "Smooth-Chamfer over MP, in DivE",
        Side("dive-similarity", ("smooth-Chamfer, slot attention",)),
        Side("dive-similarity", ("MP, slot attention",)),
    ),
    Claim(
        "MaxMatch's sets wider than DivE's",
        Side(METHODS, ("maxmatch",)),
        Side(METHODS, ("dive",)),
        _VARIANCE,
    ),
    Claim(
        "SwAMP over its contrastive twin",
        Side(METHODS, ("swamp",)),
        Side("swamp-weight", ("weight=0.0",)),
    ),
    Claim("MSRM over PCME", Side(METHODS, ("msrm",)), Side(METHODS, ("pcme",))),
    Claim(
        "CORA's three losses over one",
        Side("cora-losses", ("L_HARD + L_CON + L_SPEC",)),
        Side("cora-losses", ("L_HARD", "L_CON")),
    ),
]


@dataclass(frozen=True)
class Result:
    """The point that stands for one side, and its values by seed."""

    label: str
    values: dict[int, float]

    @property
    def spread(self) -> Spread:
        return Spread.of([*self.values.values()])


@dataclass(frozen=True)
class Finding:
    """A claim in one quantity."""

    quantity: Quantity
    better: Result
    other: Result

    @property
    def difference(self) -> Difference:
        return Difference.of(self.better.values, self.other.values)

    def text(self) -> str:
        """The numbers: "rsum: dive 260.1 ± 1.2 against vsepp 251.0 ± 2.0 (3 seeds), +9.1 (95%
        interval 5.0 to 13.2)"."""
        counts = {len(self.better.values), len(self.other.values)}
        seeds = " and ".join(map(str, sorted(counts)))
        return (
            f"{self.quantity.label}: {self._side(self.better)} against {self._side(self.other)} "
            f"({seeds} {'seed' if counts == {1} else 'seeds'}), "
            f"{self.difference.text(self.quantity.digits)}"
        )

    def _side(self, side: Result) -> str:
        return f"{side.label} {side.spread.text(self.quantity.digits)}"


@dataclass(frozen=True)
class Checked:
    """A claim and what the results say of it, a finding a quantity."""

    claim: Claim
    findings: list[Finding]


def check(dataset: str, tried: Sequence[Ablation]) -> list[Checked]:
    """The claims about which the ablations on one data set say something."""
    points = {
        (each.name, point.label): point
        for each in tried
        if each.dataset == dataset
        for point in each.points
    }
    checked = [Checked(claim, _findings(dataset, claim, points)) for claim in CLAIMS]
    return [each for each in checked if each.findings]


Points = dict[tuple[str, str], AblationPoint]


def _findings(dataset: str, claim: Claim, points: Points) -> list[Finding]:
    found = []
    for quantity in claim.quantities:
        better = _best(dataset, claim.better, quantity, points)
        other = _best(dataset, claim.other, quantity, points)
        if better and other:
            found.append(Finding(quantity, better, other))
    return found


def _best(dataset: str, side: Side, quantity: Quantity, points: Points) -> Result | None:
    """None unless every point of the side is there: the best of some is not the best of all."""
    name = side.ablation.format(dataset=dataset)
    results = [
        _result(points[name, label], quantity) for label in side.labels if (name, label) in points
    ]
    whole = [result for result in results if result is not None]
    if len(whole) < len(side.labels):
        return None
    return max(whole, key=lambda result: result.spread.mean)


def _result(point: AblationPoint, quantity: Quantity) -> Result | None:
    values = {run.seed: value for run in point.runs if (value := quantity.of(run)) is not None}
    return Result(point.label, values) if values else None


def to_markdown(tried: Sequence[Ablation]) -> list[str]:
    """A list a data set, a line a claim, and what the verdicts mean; nothing without a claim."""
    names = sorted({each.dataset for each in tried})
    lists = [_list(name, checked) for name in names if (checked := check(name, tried))]
    return [*lists, f"{MEANING}\n"] if lists else []


def _list(dataset: str, checked: Sequence[Checked]) -> str:
    lines = [f"- {each.claim.text}. {'; '.join(map(_judged, each.findings))}." for each in checked]
    return "\n".join([f"**{dataset}**: do the papers' claims hold here?", "", *lines]) + "\n"


def _judged(finding: Finding) -> str:
    return f"{finding.text()}: **{finding.difference.verdict}**"
