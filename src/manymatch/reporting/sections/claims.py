"""What the papers claim of their methods, and whether the results confirm the claims."""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from manymatch.reporting.estimates import (
    TRAINED_TITLE,
    VERDICTS,
    Difference,
    Estimate,
    Queries,
    Verdict,
    verdicts,
)
from manymatch.reporting.page import Section, page_address
from manymatch.reporting.table import Block, Cell, Column, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Claims, Experiment, ExperimentPoint, ExperimentRun, Metric

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

    def of(self, run: ExperimentRun) -> float | None:
        """The number; None if the run lacks one of the metrics."""
        numbers = run.metrics.numbers()
        if not all(key in numbers for key in self.keys):
            return None
        return statistics.fmean(numbers[key] for key in self.keys)

    def queries_of(self, run: ExperimentRun) -> Queries | None:
        """What each query adds to the number; None if the run does not hold these values."""
        return Queries.rsum_queries(run.hits) if run.hits and self.keys == ("rsum",) else None


QUANTITIES: dict[Metric, Quantity] = {
    "rsum": Quantity("rsum", ("rsum",)),
    "map_at_r": Quantity(
        "mAP@R, mean of both ways", ("multi.i2t.map_at_r", "multi.t2i.map_at_r"), digits=2
    ),
    "others": Quantity(
        "R-P of others, mean of both ways", ("multi.i2t.others", "multi.t2i.others"), digits=2
    ),
    "image_variance": Quantity(
        "log circular variance, images", ("sets.images.log_circular_variance",), digits=2
    ),
    "caption_variance": Quantity(
        "log circular variance, captions", ("sets.texts.log_circular_variance",), digits=2
    ),
}
"""The metrics that a claim can name."""


@dataclass(frozen=True)
class Side:
    """The point that stands for one side, and its values and queries by seed."""

    label: str
    values: dict[int, float]
    queries: dict[int, Queries]

    @property
    def estimate(self) -> Estimate:
        return Estimate.score_estimate(self.values.values())

    def less(self, other: "Side") -> Difference:
        """By how much this side exceeds the other. The queries count if both sides know them."""
        queries = (self.queries, other.queries) if self.queries and other.queries else None
        return Difference.of(self.values, other.values, queries)


@dataclass(frozen=True)
class Finding:
    """A claim in one quantity, by the points of an experiment."""

    claim: str
    experiment: str
    quantity: Quantity
    better: Side
    other: Side

    @cached_property
    def difference(self) -> Difference:
        return self.better.less(self.other)

    def text(self) -> str:
        """The numbers: "rsum: dive 260.1 ± 1.2 against vsepp 251.0 ± 2.0 (3 seeds), +9.1 (95%
        interval 5.0 to 13.2)"."""
        better, other = map(self.side_text, (self.better, self.other))
        count = len(self.better.values)
        seeds = "1 seed" if count == 1 else f"{count} seeds"
        difference = self.difference.text(self.quantity.digits)
        return f"{self.quantity.label}: {better} against {other} ({seeds}), {difference}"

    def side_text(self, side: Side) -> str:
        digits, estimate = self.quantity.digits, side.estimate
        without = estimate.trained_text(digits)
        note = f" ({TRAINED_TITLE} {without})" if without else ""
        return f"{side.label} {estimate.text(digits)}{note}"


def check(experiments: Iterable[Experiment], claims: Mapping[str, Claims]) -> list[Finding]:
    """A finding for each claim and metric about which an experiment on the data set says something.
    `claims` are those of each experiment, by name."""
    findings = []
    for experiment in experiments:
        points = {point.label: point for point in experiment.points}
        for text, claim in claims.get(experiment.name, {}).items():
            for quantity in map(QUANTITIES.__getitem__, claim.metrics):
                better, other = (
                    best_side([points.get(label) for label in labels], quantity)
                    for labels in (claim.better, claim.other)
                )
                if better and other:
                    findings.append(Finding(text, experiment.name, quantity, better, other))
    return findings


def best_side(points: Sequence[ExperimentPoint | None], quantity: Quantity) -> Side | None:
    """The best point of a side. None unless all points of the side are known: the best of some is
    not the best of all."""
    sides = []
    for point in points:
        runs = point.runs if point else []
        values = {run.seed: value for run in runs if (value := quantity.of(run)) is not None}
        if point is None or not values:
            return None
        known = {run.seed: quantity.queries_of(run) for run in runs}
        queries = {seed: value for seed, value in known.items() if value is not None}
        sides.append(Side(point.label, values, queries))
    return max(sides, key=lambda side: side.estimate.mean)


def table(dataset: str, findings: Sequence[Finding]) -> Table:
    """One row for each finding."""
    heads = (
        *("Claim", "Verdict", "In", "Difference", "Claimed better", "Against"),
        *("Effect size", "Seeds that would decide"),
    )
    return Table(
        f"Do the papers' claims hold on {dataset}?",
        [Column(head, numeric=False) for head in heads],
        [
            [
                Cell(
                    finding.claim,
                    href=page_address(dataset, "Experiments", f"experiment-{finding.experiment}"),
                ),
                Cell(badges=(verdict,)),
                Cell(finding.quantity.label),
                Cell(finding.difference.text(finding.quantity.digits)),
                *map(Cell, map(finding.side_text, (finding.better, finding.other))),
                Cell.number(finding.difference.effect),
                Cell(seeds),
            ]
            for finding, verdict, seeds in decided(findings)
        ],
    )


def decided(findings: Sequence[Finding]) -> Iterator[tuple[Finding, Verdict, str]]:
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


def to_markdown(results: AllResults) -> list[str]:
    """A list for each data set with a line for each claim, then what the verdicts mean; nothing if
    the results say nothing about a claim."""
    lists = []
    for dataset in sorted(results.datasets):
        own = results.on_dataset(dataset)
        claims: dict[str, list[str]] = {}
        for finding, verdict, seeds in decided(check(own.current(Experiment), own.claims)):
            note = f" (seeds that would decide: {seeds})" if seeds else ""
            sentence = f"{finding.text()}: **{verdict}**{note}"
            claims.setdefault(finding.claim, []).append(sentence)
        lines = [f"- {claim}. {'; '.join(texts)}.\n" for claim, texts in claims.items()]
        if lines:
            head = f"**{dataset}**: do the papers' claims hold here?\n\n"
            lists.append("".join([head, *lines]))
    return [*lists, f"{MEANING}\n"] if lists else []


def section(results: AllResults) -> list[Block]:
    experiments = results.current(Experiment)
    findings = check(experiments, results.claims)
    return blocks(experiments[0].dataset, findings) if findings else []


def blocks(dataset: str, findings: Sequence[Finding]) -> list[Block]:
    """The table, and what its verdicts mean."""
    note = Note(f"{MEANING} Mean ± standard deviation over the seeds.")
    return [table(dataset, findings), note]


_MOST_PAIRS = 6


def differences(experiment: Experiment) -> list[Block]:
    """The differences in rsum of all pairs of points or, if there are many, of the best point and
    each other, with verdicts."""
    points = sorted(
        experiment.points, key=lambda point: -statistics.fmean(r.metrics.rsum for r in point.runs)
    )
    pairs = list(combinations(points, 2))
    if len(pairs) > _MOST_PAIRS:
        pairs = [(points[0], point) for point in points[1:]]
    if not pairs:
        return []
    if len(experiment.seeds) < 2:
        return [Note("One seed has no interval. More seeds have one: --seeds 0,1,2")]
    known = [rsum_difference(*pair) for pair in pairs]
    rows = [
        [
            Cell(f"{one.label} - {other.label}"),
            Cell(f"{difference.mean:+.1f}"),
            Cell("{:.1f} to {:.1f}".format(*difference.interval) if difference.interval else ""),
            Cell(verdict),
        ]
        for (one, other), difference, verdict in zip(pairs, known, verdicts(known), strict=True)
    ]
    heads = [Column("Difference", numeric=False), Column("rsum"), Column("95% interval")]
    return [Table("Differences", [*heads, Column("The first is", numeric=False)], rows)]


def rsum_difference(one: ExperimentPoint, other: ExperimentPoint) -> Difference:
    """The difference in rsum of two points, over their seeds and, if known, their hits."""
    first, second = (best_side([point], QUANTITIES["rsum"]) for point in (one, other))
    assert first and second  # each run has an rsum
    return first.less(second)


_TITLE, _KINDS = "Do the papers' claims hold here?", (Experiment,)
SECTIONS = [Section("Experiments", "claims", 70, _TITLE, section, _KINDS, "Claims", to_markdown)]
