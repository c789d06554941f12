"""What true pairs among the negatives cost, and how much of that each method wins back.

`training.negatives: oracle` leaves the true pairs of other images out of a batch's negatives. The
gap of a method with one vector between `oracle` and `batch` is what false negatives cost. A method
closes the share of the gap by which it is better than this method, both with `batch`.
"""

from __future__ import annotations

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
_SHOWN = [QUANTITIES[name] for name in ("rsum", "map_at_r", "others")]

Sides = Mapping[str, tuple[Side, Side]]
"""By method the values with the negatives of the batch and with the oracle's."""


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
    if {*experiment.keys} != {"preset", NEGATIVES}:
        return []
    measured = [(quantity, _sides(experiment, quantity)) for quantity in _SHOWN]
    tables = [_table(quantity, experiment.dataset, sides) for quantity, sides in measured if sides]
    words = [sentence for quantity, sides in measured if (sentence := conclusion(quantity, sides))]
    return [
        Prose([[Cell(" ".join(words))]], large=True),
        *tables[:1],
        *(Folded(one.title, [one]) for one in tables[1:]),
        *charts(experiment),
    ]


def charts(experiment: Experiment) -> list[DotChart]:
    """Each method's rsum with both kinds of negatives; nothing if the experiment lacks one."""
    if {*experiment.keys} != {"preset", NEGATIVES}:
        return []
    rows = [
        (
            Cell(name, href=method_address(experiment.dataset, name)),
            [side.estimate for side in pair],
        )
        for name, pair in _sides(experiment, _SHOWN[0]).items()
    ]
    return dot_charts("rsum", rows, legend=["negatives of the batch", "without true pairs"])


def markdown(experiment: Experiment) -> str:
    """A caption and the table of rsum; empty if the experiment lacks one."""
    if not charts(experiment):
        return ""
    quantity = _SHOWN[0]
    rows = _table(quantity, experiment.dataset, _sides(experiment, quantity)).to_markdown()
    caption = f"**{experiment.name}** ({sizes(experiment)}). {experiment.about}"
    return "\n\n".join([caption, "\n".join(rows)])


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
    known = all(side.queries.keys() == side.values.keys() for side in pair)
    queries = (oracle.queries, batch.queries) if known else None
    return Difference.of(oracle.values, batch.values, queries)


def conclusion(quantity: Quantity, sides: Sides) -> str:
    """What false negatives cost one vector, and which methods they cost something for certain."""
    baseline = next((name for name in BASELINES if name in sides), None)
    if baseline is None:
        return ""
    differences = [_gain(pair) for pair in sides.values()]
    decided = dict(zip(sides, verdicts(differences), strict=True))
    gaining = [name for name, verdict in decided.items() if verdict == "better"]
    others = f"{', '.join(gaining)} gain for certain" if gaining else "no gain is decided"
    return (
        f"Without true pairs among the negatives {baseline} gains "
        f"{_gain(sides[baseline]).text(quantity.digits)} of {quantity.label}; of "
        f"{len(sides)} methods {others}."
    )


def _table(quantity: Quantity, dataset: str, sides: Sides) -> Table:
    baseline = next((name for name in BASELINES if name in sides), None)
    differences = [_gain(pair) for pair in sides.values()]
    rows = [
        [
            Cell(name, href=method_address(dataset, name)),
            *(Cell.number(side.estimate.mean, quantity.digits) for side in pair),
            Cell(difference.text(quantity.digits), difference.mean),
            Cell(badges=(verdict,)),
            Cell("" if baseline in (None, name) else closed(pair[0], sides[baseline])),
        ]
        for (name, pair), difference, verdict in zip(
            sides.items(), differences, verdicts(differences), strict=True
        )
    ]
    heads = [Column(head) for head in ("Batch", "Oracle", "Oracle - batch")]
    share = Column(f"Share of {baseline}'s gap that the method closes")
    columns = [Column("Method", numeric=False), *heads, Column("The oracle is", numeric=False)]
    return Table(f"{quantity.label}, by negatives", [*columns, share], rows, caption=True)


def closed(method: Side, baseline: tuple[Side, Side]) -> str:
    """The share of the baseline's gap that a method closes: "40% (10% to 80%)"."""
    plain, oracle = baseline
    sides = method, plain, oracle
    seeds = [seed for seed in method.values if all(seed in side.values for side in sides)]
    part, whole = (
        {seed: side.values[seed] - plain.values[seed] for seed in seeds}
        for side in (method, oracle)
    )
    known = all(seed in side.queries for side in sides for seed in seeds)
    queries: Sequence[Sequence[Queries]] = [
        [side.queries[seed].less(plain.queries[seed]) for seed in seeds]
        for side in (method, oracle)
        if known
    ]
    ends = share_interval([*part.values()], [*whole.values()], queries) if seeds else None
    if ends is None:
        return "the gap is not decided"
    share = statistics.fmean(part.values()) / statistics.fmean(whole.values())
    return f"{share:.0%} ({ends[0]:.0%} to {ends[1]:.0%})"


def share_interval(
    part: Sequence[float], whole: Sequence[float], queries: Sequence[Sequence[Queries]] = ()
) -> tuple[float, float] | None:
    """The 95% interval of the mean of `part` divided by that of `whole`, paired by seed.

    The interval has all shares s for which `part - s * whole` may have the mean 0 (Fieller, 1954).

    Args:
        queries: what each query adds to each value of `part`, and of `whole`.

    Returns:
        The ends; None for a single seed, or if the mean of `whole` may be 0, because any share is
        then possible.
    """
    seeds = len(part)
    if seeds < 2:
        return None
    values = np.array([part, whole])
    spreads = [np.cov(values) / seeds]
    if queries:
        none = [run.less(run) for run in queries[0]]
        spreads.append(np.cov([resampled(runs, none, paired=True) for runs in queries]))

    def may_be_zero(*factors: float) -> bool:
        sign = np.array(factors)
        variances = [float(sign @ spread @ sign) for spread in spreads]
        mean = float(sign @ values.mean(1))
        difference = Difference(mean, max(variances), variances[0], seeds - 1.0)
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
    "are true of the image. The gap is what the oracle adds to the method with one vector. A "
    "method closes the share by which it is better than this method, both with the negatives of "
    "the batch; the 95% interval of the share is Fieller's, and exists only where the gap itself "
    f"is decided. {VERDICTS}"
)

SECTIONS = [
    Section(
        "One to many",
        "false-negatives",
        150,
        "What false negatives cost",
        section,
        (Experiment,),
        link="False negatives",
        markdown=lambda results: list(filter(None, map(markdown, results.current(Experiment)))),
    )
]
