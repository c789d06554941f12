"""What the papers claim of their methods, and whether the results confirm the claims."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from manymatch.reporting.blocks import Note, View, gallery
from manymatch.reporting.estimates import (
    TRAINED_TITLE,
    VERDICTS,
    Difference,
    Estimate,
    Queries,
    Verdict,
    verdicts,
)
from manymatch.reporting.table import Cell, Column, Table
from manymatch.results.ablations import Ablation, AblationPoint, AblationRun
from manymatch.results.all_results import AllResults

METHODS = "{dataset}-study"
"""The experiment that compares whole methods on a data set."""

REGIONS = "scenes-regions-study"

MEANING = (
    f"{VERDICTS} Where a side has several methods or settings, the one with the best mean stands "
    "for the side."
)


@dataclass(frozen=True)
class Quantity:
    """A number of a run, more is better: the mean of the metrics `keys` (`Record.numbers`)."""

    label: str
    keys: tuple[str, ...]
    digits: int = 1

    def of(self, run: AblationRun) -> float | None:
        """The number; None if the run lacks one of the metrics."""
        numbers = run.metrics.numbers()
        if not all(key in numbers for key in self.keys):
            return None
        return statistics.fmean(numbers[key] for key in self.keys)

    def queries_of(self, run: AblationRun) -> Queries | None:
        """What each query adds to the number; None if the run does not hold these values."""
        return Queries.rsum_queries(run.hits) if run.hits and self.keys == ("rsum",) else None


_RETRIEVAL = (
    Quantity("rsum", ("rsum",)),
    Quantity("mAP@R, mean of both ways", ("multi.i2t.map_at_r", "multi.t2i.map_at_r"), digits=2),
)
_VARIANCE = tuple(
    Quantity(f"log circular variance, {shown}", (f"sets.{side}.log_circular_variance",), digits=2)
    for side, shown in (("images", "images"), ("texts", "captions"))
)


Points = Mapping[tuple[str, str], AblationPoint]
"""Points by the names of experiment and point."""


@dataclass(frozen=True)
class Side:
    """Points of one experiment, by their labels."""

    ablation: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """The claim that `better` exceeds `other` in each of the `quantities`."""

    text: str
    better: Side
    other: Side
    quantities: tuple[Quantity, ...] = _RETRIEVAL


def _baseline_claim(method: str, baseline: str) -> Claim:
    """The claim of a method over the method that its paper extends."""
    sides = [Side(METHODS, (name.lower().replace("-", "_"),)) for name in (method, baseline)]
    return Claim(f"{method} over {baseline}", sides[0], sides[1])


CLAIMS = [
    Claim(
        "Sets over single vectors",
        Side(METHODS, ("pvse", "dive", "maxmatch")),
        Side(METHODS, ("vsepp", "vse_infinity")),
    ),
    _baseline_claim("DivE", "PVSE"),
    _baseline_claim("MaxMatch", "DivE"),
    _baseline_claim("CORA", "VSE-infinity"),
    _baseline_claim("MSRM", "PCME"),
    *(
        Claim(
            f"{method} over VSE-infinity, on regions",
            Side(REGIONS, (f"{method.lower()}_regions",)),
            Side(REGIONS, ("vse_infinity_regions",)),
        )
        for method in ("MaxMatch", "CORA")
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
        "Pair assignment over smooth-Chamfer, in MaxMatch",
        Side("maxmatch-losses", ("MaxMatch, all",)),
        Side("maxmatch-losses", ("smooth-Chamfer, all",)),
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
        Side("swamp-twin", ("weight=0.0",)),
    ),
    Claim(
        "CORA's three losses over one",
        Side("cora-losses", ("L_HARD + L_CON + L_SPEC",)),
        Side("cora-losses", ("L_HARD", "L_CON")),
    ),
]


@dataclass(frozen=True)
class Result:
    """The point that stands for one side, and its values and queries by seed."""

    label: str
    values: dict[int, float]
    queries: dict[int, Queries]

    @property
    def estimate(self) -> Estimate:
        return Estimate.score_estimate([*self.values.values()])


@dataclass(frozen=True)
class Finding:
    """A claim in one quantity."""

    claim: Claim
    quantity: Quantity
    better: Result
    other: Result

    @cached_property
    def difference(self) -> Difference:
        sides = self.better, self.other
        known = all(side.queries.keys() == side.values.keys() for side in sides)
        queries = (self.better.queries, self.other.queries) if known else None
        return Difference.of(self.better.values, self.other.values, queries)

    @property
    def seeds(self) -> str:
        """The number of seeds of both sides: "3 seeds"."""
        counts = {len(self.better.values), len(self.other.values)}
        return f"{' and '.join(map(str, sorted(counts)))} {'seed' if counts == {1} else 'seeds'}"

    def text(self) -> str:
        """The numbers: "rsum: dive 260.1 ± 1.2 against vsepp 251.0 ± 2.0 (3 seeds), +9.1 (95%
        interval 5.0 to 13.2)"."""
        better, other = map(self.side_text, (self.better, self.other))
        difference = self.difference.text(self.quantity.digits)
        return f"{self.quantity.label}: {better} against {other} ({self.seeds}), {difference}"

    def side_text(self, side: Result) -> str:
        digits, estimate = self.quantity.digits, side.estimate
        without = estimate.trained_text(digits)
        note = f" ({TRAINED_TITLE} {without})" if without else ""
        return f"{side.label} {estimate.text(digits)}{note}"


def check(dataset: str, ablations: Sequence[Ablation]) -> list[Finding]:
    """A finding for each claim and quantity about which the results on one data set say something.

    Only results that ranked the same split with as many images and captions are compared.
    """
    points: dict[str, dict[tuple[str, str], AblationPoint]] = {}
    for ablation in ablations:
        if ablation.dataset == dataset:
            alike = points.setdefault(gallery(ablation), {})
            alike |= {(ablation.name, point.label): point for point in ablation.points}
    findings = []
    for claim in CLAIMS:
        for quantity, known in itertools.product(claim.quantities, points.values()):
            better, other = (
                _best(side, dataset, quantity, known) for side in (claim.better, claim.other)
            )
            if better and other:
                findings.append(Finding(claim, quantity, better, other))
    return findings


def _best(side: Side, dataset: str, quantity: Quantity, points: Points) -> Result | None:
    """The best point of a side. None unless all points of the side are known: the best of some is
    not the best of all."""
    name = side.ablation.format(dataset=dataset)
    results = [_result(points.get((name, label)), quantity) for label in side.labels]
    known = [result for result in results if result is not None]
    if len(known) < len(results):
        return None
    return max(known, key=lambda result: result.estimate.mean)


def _result(point: AblationPoint | None, quantity: Quantity) -> Result | None:
    runs = point.runs if point else []
    values = {run.seed: value for run in runs if (value := quantity.of(run)) is not None}
    queries = {
        run.seed: queries for run in runs if (queries := quantity.queries_of(run)) is not None
    }
    return Result(point.label, values, queries) if point and values else None


def table(dataset: str, findings: Sequence[Finding]) -> Table:
    """One row for each finding."""
    heads = (
        *("Claim", "In", "Claimed better", "Against", "Difference", "Effect size"),
        *("Verdict", "Seeds that would decide"),
    )
    return Table(
        f"Do the papers' claims hold on {dataset}?",
        [Column(head, numeric=False) for head in heads],
        [
            [
                Cell(finding.claim.text),
                Cell(finding.quantity.label),
                *map(Cell, map(finding.side_text, (finding.better, finding.other))),
                Cell(finding.difference.text(finding.quantity.digits)),
                Cell.number(finding.difference.effect),
                Cell(badges=(verdict,)),
                Cell(seeds),
            ]
            for finding, verdict, seeds in _decided(findings)
        ],
    )


def _decided(findings: Sequence[Finding]) -> Iterator[tuple[Finding, Verdict, str]]:
    """Each finding with the verdict and, if that is open, the number of seeds that would decide
    (empty: a side has a single seed, whose spread nobody knows)."""
    differences = [finding.difference for finding in findings]
    decisions = verdicts(differences)
    comparisons = decisions.count("not decided")  # Holm's divisor of the next to be decided
    for finding, verdict in zip(findings, decisions, strict=True):
        seeds = ""
        if verdict == "not decided" and finding.difference.variance is not None:
            number = finding.difference.seeds_to_decide(comparisons)
            seeds = "no number up to 100" if number is None else str(number)
        yield finding, verdict, seeds


def to_markdown(ablations: Sequence[Ablation]) -> list[str]:
    """A list for each data set with a line for each claim, then what the verdicts mean; nothing if
    the results say nothing about a claim."""
    datasets = sorted({ablation.dataset for ablation in ablations})
    lists = [_list(name, findings) for name in datasets if (findings := check(name, ablations))]
    return [*lists, f"{MEANING}\n"] if lists else []


def _list(dataset: str, findings: Sequence[Finding]) -> str:
    verdicts: dict[str, list[str]] = {}
    for finding, verdict, seeds in _decided(findings):
        sentence = f"{finding.text()}: **{verdict}**"
        if seeds:
            sentence += f" (seeds that would decide: {seeds})"
        verdicts.setdefault(finding.claim.text, []).append(sentence)
    lines = [f"- {claim}. {'; '.join(texts)}." for claim, texts in verdicts.items()]
    return "\n".join([f"**{dataset}**: do the papers' claims hold here?", "", *lines]) + "\n"


def section(results: AllResults) -> View | None:
    if not results.ablations:
        return None
    dataset = results.ablations[0].dataset
    findings = check(dataset, results.ablations)
    note = Note(f"{MEANING} Mean ± standard deviation over the seeds.")
    blocks = [table(dataset, findings), note]
    return View("Do the papers' claims hold here?", "Claims", blocks) if findings else None
