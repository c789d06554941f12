"""What true pairs among the negatives cost, and how much of that each method wins back.

`training.negatives: oracle` leaves the true pairs of other images out of a batch's negatives. The
gap of a method with one vector between `oracle` and `batch` is what false negatives cost. A method
closes the share of the gap by which it is better than this method, both with `batch`.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from manymatch.reporting.chart import DotChart, dot_charts
from manymatch.reporting.estimates import VERDICTS, Difference, Queries, resampled, verdicts
from manymatch.reporting.page import Section, method_address
from manymatch.reporting.sections.claims import QUANTITIES, Quantity, Side, best_side
from manymatch.reporting.sections.experiments import line_charts, sizes
from manymatch.reporting.sections.one_to_many import BASELINES
from manymatch.reporting.table import Block, Cell, Column, Folded, Grid, Note, Prose, Table
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Experiment

NEGATIVES, BATCH, ORACLE = "training.negatives", "batch", "oracle"
_SHOWN = [QUANTITIES[name] for name in ("others", "map_at_r", "rsum")]
"""True pairs of other images; all true pairs; the pairs of the data set alone."""

_MOST = 5.0
"""An interval of a share that reaches further than this says nothing."""

Sides = Mapping[str, tuple[Side, Side]]
"""By method the values with the negatives of the batch and with the oracle's."""
Measured = Sequence[tuple[Quantity, Sides]]


def section(results: AllResults) -> list[Block]:
    """All experiments with both kinds of negatives: those on methods as tables, others as lines."""
    blocks: list[Block] = []
    for experiment in results.current(Experiment):
        if NEGATIVES not in experiment.keys:
            continue
        blocks += _of_methods(experiment) or [Grid(line_charts(experiment))]
    return [*blocks, Note(_MEANING)] if blocks else []


def _of_methods(experiment: Experiment) -> list[Block]:
    """What false negatives cost each method; nothing if the experiment varies something else."""
    dataset, known = experiment.dataset, measured(experiment)
    tables = [_table(quantity, dataset, sides) for quantity, sides in known]
    prose = [Prose([[Cell(conclusion(known))]], large=True)] if known else []
    folded = [Folded(one.title, [one]) for one in tables[1:]]
    return [*prose, *tables[:1], *folded, *charts(dataset, known)]


def measured(experiment: Experiment) -> Measured:
    """The quantities with the values of each method; none if the experiment varies something else
    than methods and negatives."""
    if {*experiment.keys} != {"preset", NEGATIVES}:
        return []
    pairs = [(quantity, _sides(experiment, quantity)) for quantity in _SHOWN]
    return [(quantity, sides) for quantity, sides in pairs if sides]


def charts(dataset: str, measured: Measured) -> list[DotChart]:
    """Each method's values with both kinds of negatives, a chart for each quantity."""
    drawn = []
    for quantity, sides in measured:
        rows = [
            (Cell(name, href=method_address(dataset, name)), [side.estimate for side in pair])
            for name, pair in sides.items()
        ]
        legend = ["negatives of the batch", "without true pairs"]
        drawn += dot_charts(quantity.label, rows, quantity.digits, legend)
    return drawn


def markdown(experiment: Experiment) -> str:
    """A caption and a table: what the oracle adds to each method in each quantity, and the shares
    of the first quantity's gaps; empty if the experiment varies something else."""
    known = measured(experiment)
    if not known:
        return ""

    def gained(pair: tuple[Side, Side], quantity: Quantity) -> str:
        return _gain(pair).text(quantity.digits, interval="")

    rows = []
    for name, pair in known[0][1].items():
        texts = [gained(sides[name], one) if name in sides else "" for one, sides in known]
        shares = [closed(name, pair[0], known[0][1], one) for one in BASELINES]
        rows.append([*map(Cell, [name, *texts, *shares])])
    means = [gained(_mean(sides), quantity) for quantity, sides in known]
    rows.append([*map(Cell, ["mean", *means, *("" for _ in BASELINES)])])
    first, *others = (quantity.label.partition(",")[0] for quantity, _ in known)
    heads = ["Method", *(f"{label}, oracle - batch" for label in (first, *others))]
    heads += [f"Share of {one}'s gap in {first}" for one in BASELINES]
    table = Table(experiment.name, [Column(head, numeric=head != "Method") for head in heads], rows)
    caption = f"**{experiment.name}** ({sizes(experiment)}). {experiment.about}"
    note = "Mean of both ways; the mean of the seeds with its 95% interval."
    return "\n\n".join([caption, "\n".join(table.filled_columns().to_markdown()), note])


def _sides(experiment: Experiment, quantity: Quantity) -> Sides:
    """Both sides of each method that has them, from the best with the batch's negatives down."""
    by_settings = {
        (point.settings["preset"], point.settings[NEGATIVES]): point for point in experiment.points
    }
    sides = {}
    for name in dict.fromkeys(name for name, _ in by_settings):
        pair = [best_side([by_settings.get((name, kind))], quantity) for kind in (BATCH, ORACLE)]
        if pair[0] and pair[1]:
            sides[name] = pair[0], pair[1]
    return dict(sorted(sides.items(), key=lambda item: -item[1][0].estimate.mean))


def _gain(pair: tuple[Side, Side]) -> Difference:
    """What the oracle adds to a method."""
    batch, oracle = pair
    return oracle.less(batch)


def conclusion(measured: Measured) -> str:
    """What the methods gain on average without false negatives, and which gain or lose for
    certain."""
    means, decided = [], []
    for quantity, sides in measured:
        means.append(f"{_gain(_mean(sides)).text(quantity.digits)} in {quantity.label}")
        differences = [_gain(pair) for pair in sides.values()]
        decided += [
            f"{name} {difference.mean:+.{quantity.digits}f} in {quantity.label}"
            for name, difference, verdict in zip(
                sides, differences, verdicts(differences), strict=True
            )
            if verdict != "not decided"
        ]
    return (
        f"Without true pairs among the negatives {len(measured[0][1])} methods change on average "
        f"by {'; '.join(means)}. Decided for single methods: {', '.join(decided) or 'none'}."
    )


def _mean(sides: Sides) -> tuple[Side, Side]:
    """The mean over the methods, by seed."""
    batch, oracle = map(_mean_of, zip(*sides.values(), strict=True))
    return batch, oracle


def _mean_of(sides: Sequence[Side]) -> Side:
    seeds, known = sides[0].values, all(side.queries for side in sides)
    queries = {
        seed: Queries(np.mean([side.queries[seed].sums for side in sides], axis=0), first.counts)
        for seed, first in sides[0].queries.items()
        if known
    }
    values = {seed: statistics.fmean(side.values[seed] for side in sides) for seed in seeds}
    return Side("mean", values, queries)


def _table(quantity: Quantity, dataset: str, sides: Sides) -> Table:
    differences = [_gain(pair) for pair in sides.values()]
    rows = [
        [
            Cell(name, href=method_address(dataset, name)),
            *(Cell.number(side.estimate.mean, quantity.digits) for side in pair),
            Cell(difference.text(quantity.digits), difference.mean),
            Cell(badges=(verdict,)),
            *(Cell(closed(name, pair[0], sides, baseline)) for baseline in BASELINES),
        ]
        for (name, pair), difference, verdict in zip(
            sides.items(), differences, verdicts(differences), strict=True
        )
    ]
    columns = [
        Column("Method", numeric=False),
        *(Column(head) for head in ("Batch", "Oracle", "Oracle - batch")),
        Column("The oracle is", numeric=False),
        *(Column(f"Share of {baseline}'s gap that the method closes") for baseline in BASELINES),
    ]
    table = Table(f"{quantity.label}, by negatives", columns, rows, caption=True)
    return table.filled_columns()


def closed(name: str, method: Side, sides: Sides, baseline: str) -> str:
    """The share of the baseline's gap that a method closes: "40% (10% to 80%)"; empty for the
    baseline itself, and if the baseline is missing; in words if no share is known."""
    if baseline not in sides or baseline == name:
        return ""
    plain, oracle = sides[baseline]
    seeds, known = [*method.values], all(side.queries for side in (method, plain, oracle))
    part, whole = (
        [side.values[seed] - plain.values[seed] for seed in seeds] for side in (method, oracle)
    )
    queries = [
        [side.queries[seed].less(plain.queries[seed]) for seed in seeds]
        for side in (method, oracle)
        if known
    ]
    if len(seeds) < 2:
        return "one seed"
    ends = share_interval(part, whole, queries)
    if ends is None:
        return "the gap may be 0"
    gap = statistics.fmean(whole)
    if gap < 0:
        return "no gap"
    if max(map(abs, ends)) > _MOST:
        return "too few seeds"
    return f"{statistics.fmean(part) / gap:.0%} ({ends[0]:.0%} to {ends[1]:.0%})"


def share_interval(
    part: Sequence[float], whole: Sequence[float], queries: Sequence[Sequence[Queries]] = ()
) -> tuple[float, float] | None:
    """The 95% interval of the mean of `part` divided by that of `whole`, paired by seed.

    The interval has all shares s for which `part - s * whole` may have the mean 0 (Fieller, 1954).

    `queries` are what each query adds to each value of `part`, and of `whole`. None for a single
    seed, or if the mean of `whole` may be 0, because any share is then possible.
    """
    seeds = len(part)
    if seeds < 2:
        return None
    values = np.array([part, whole])
    spreads = [np.cov(values) / seeds]
    if queries:
        none = [run.less(run) for run in queries[0]]
        spreads.append(np.cov([resampled(runs, none) for runs in queries]))

    def may_be_zero(*factors: float) -> bool:
        sign = np.array(factors)
        variances = [float(sign @ spread @ sign) for spread in spreads]
        mean = float(sign @ values.mean(1))
        difference = Difference(mean, max(variances), variances[0], seeds)
        return difference.half_width is None or abs(mean) <= difference.half_width

    if may_be_zero(0.0, 1.0):
        return None
    ratio = statistics.fmean(part) / statistics.fmean(whole)
    low, high = (_last(lambda s: may_be_zero(1.0, -s), ratio, step) for step in (-1.0, 1.0))
    return low, high


def _last(holds: Callable[[float], bool], start: float, step: float) -> float:
    """The last value from `start` on for which `holds` is true, to a thousandth."""
    while abs(step) < 1e6 and holds(start + step):
        step *= 2
    inside, outside = start, start + step
    while abs(outside - inside) > 1e-3:
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


_MEANING = (
    "Batch: the captions of all other images of a batch are negatives. Oracle: without those that "
    "are true of the image. The gap is what the oracle adds to a method with one vector. A "
    "method closes the share by which it is better than that method, both with the negatives of "
    "the batch; the 95% interval of the share is Fieller's, and exists only where the gap itself "
    f"differs from 0. {VERDICTS}"
)

SECTIONS = [
    Section(
        "One to many",
        "false-negatives",
        150,
        "What false negatives cost",
        section,
        (Experiment,),
        "False negatives",
        lambda results: list(filter(None, map(markdown, results.current(Experiment)))),
    )
]
