"""The first page: what was found on a data set in a few sentences, a card a method, one query under
two methods, and the papers' claims folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from manymatch.reporting.chart import styles
from manymatch.reporting.estimates import verdicts
from manymatch.reporting.page import FRONT, Section, method_address, page_address
from manymatch.reporting.queries import Quote, Rankings
from manymatch.reporting.sections import claims
from manymatch.reporting.sections.experiments import (
    broadest,
    estimate,
    interval_text,
    ranked_points,
)
from manymatch.reporting.sections.methods import method_places, validation_chart
from manymatch.reporting.sections.one_to_many import conclusion
from manymatch.reporting.sections.samples import method_ranking
from manymatch.reporting.table import Block, Card, Cards, Cell, Folded, Heading, Prose
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Experiment
from manymatch.results.runs import Run

_MAX_ANSWERS = 5


def section(results: AllResults) -> list[Block]:
    """Everything that the first page says of a data set; nothing without models and methods."""
    dataset, study = results.datasets[0], broadest(results)
    if not results.runs and study is None:
        return []
    order = _order_of_methods(study, dataset) if study else _order_of_runs(results.runs)
    findings = claims.check(results.current(Experiment), results.claims)
    counts = Counter(verdict for _, verdict, _ in claims.decided(findings))
    paragraphs = [order]
    if study and (text := conclusion(study)):
        href = page_address(dataset, "One to many", "others")
        paragraphs.append([Cell("One to many", href=href), Cell(f": {text}")])
    summary = (
        f"{len(findings)} tests of what the papers claim: {counts['better']} hold, "
        f"{counts['worse']} are contradicted, {counts['not decided']} are not decided"
    )
    if findings:
        href = page_address(dataset, "Experiments", "claims")
        paragraphs.append([Cell("Claims", href=href), Cell(f": {summary}.")])
    blocks = [Prose(paragraphs, large=True), _cards(results, study, dataset)]
    blocks += _two_methods(results.runs)
    return [*blocks, *([Folded(summary, [claims.table(dataset, findings)])] if findings else [])]


def _order_of_methods(study: Experiment, dataset: str) -> list[Cell]:
    """Which method is first in a study, and against which methods the lead is decided."""
    ranked = ranked_points(study)
    best, *others = (claims.best_side([point], claims.QUANTITIES["rsum"]) for point in ranked)
    assert best is not None
    leads = [
        claims.Finding("", study.name, claims.QUANTITIES["rsum"], best, other)
        for other in others
        if other
    ]
    start = [
        Cell(best.label, href=method_address(dataset, best.label)),
        Cell(f" has the highest rsum of the {len(ranked)} methods in "),
        Cell(study.name, href=page_address(dataset, "Experiments", f"experiment-{study.name}")),
        Cell(f", {best.estimate.text()}"),
    ]
    if not leads:
        return [*start, Cell(".")]
    decisions = verdicts([lead.difference for lead in leads])
    close = [
        lead.other.label
        for lead, verdict in zip(leads, decisions, strict=True)
        if verdict == "not decided"
    ]
    second = leads[0]
    text = f": {second.difference.text(1)} against {second.other.label}. "
    if len(study.seeds) == 1:
        return [*start, Cell(f"{text}Each method was trained once, so the order is not decided.")]
    if not close:
        return [*start, Cell(f"{text}The lead is decided against every other method.")]
    against = f"The lead is decided against {len(leads) - len(close)} of the others; "
    return [*start, Cell(f"{text}{against}not against {', '.join(close)}.")]


def _order_of_runs(runs: Sequence[Run]) -> list[Cell]:
    best, *others = runs
    first = Cell(best.preset, href=method_address(best.dataset, best.preset))
    text = f" has the highest rsum of {len(runs)} models, {best.metrics.rsum:.1f}"
    if others:
        lead = best.metrics.rsum - others[0].metrics.rsum
        text += f": {lead:+.1f} against {others[0].preset}. Each was trained once, so the order is "
        return [first, Cell(f"{text}not decided.")]
    return [first, Cell(f"{text}.")]


def _cards(results: AllResults, study: Experiment | None, dataset: str) -> Cards:
    """The methods of the study, best first, then the models that the study lacks."""
    runs, number = {run.preset: run for run in results.runs}, styles(results.runs)
    points = {point.label: point for point in ranked_points(study)} if study else {}
    cards = []
    for name in dict.fromkeys([*points, *method_places(results)]):
        run, point = runs.get(name), points.get(name)
        if run is None and point is None:
            continue
        lines, curve = [], ""
        if run is not None:
            chart = validation_chart([(name, number[name], run.curves)])
            curve = chart.lines[0].path if chart else ""
        value = estimate(point, "rsum") if point else None
        if value is not None and point is not None:
            score, ends = value.text(), interval_text(point)
            lines += [f"95%: {ends}"] if ends else []
            if run is not None:
                # The settings of an experiment leave the seed out.
                made = {**getattr(run.provenance, "resolved", {}), "seed": None}
                same = made == {**getattr(point, "resolved", {}), "seed": None}
                note = "" if same else ", with other settings"
                lines.append(f"this run{note}: {run.metrics.rsum:.1f}")
        else:
            assert run is not None
            score = f"{run.metrics.rsum:.1f}"
        title = Cell(name, href=method_address(dataset, name), style=number.get(name))
        cards.append(Card(title, score, lines, curve))
    seeds = f"mean ± standard deviation of {len(study.seeds)} seeds" if study else "one model each"
    if study and len(study.seeds) == 1:
        seeds = "one seed each"
    source = f" in {study.name}" if study else ""
    drawn = ""
    if runs and study:
        drawn = " This run: the models of params.yaml, each trained once; the curve is their "
        drawn += "validation rsum."
    return Cards(f"rsum of each method{source}, {seeds}.{drawn}", cards)


def _two_methods(runs: Sequence[Run]) -> list[Block]:
    """The sampled caption on which the best model and the last one differ most in true images."""
    single = [run for run in runs if not run.kind and run.samples]
    if len(single) < 2:
        return []
    pair = [single[0], single[-1]]
    asked = [{query.id: query for query in run.samples.captions} for run in pair if run.samples]
    both = [key for key in asked[0] if key in asked[1]]
    if not both:
        return []

    def true(side: int, key: str) -> int:
        return sum(one.mark in ("own", "true") for one in asked[side][key].retrieved)

    key = max(both, key=lambda key: abs(true(0, key) - true(1, key)))
    dataset, names = single[0].dataset, " and ".join(run.preset for run in pair)
    rankings = [
        method_ranking(run, queries[key], _MAX_ANSWERS)
        for run, queries in zip(pair, asked, strict=True)
    ]
    why = [
        Cell(f"Of {len(both)} sampled captions, {names} differ most on this one. "),
        Cell("All queries", href=page_address(dataset, "Queries", "caption-queries")),
    ]
    return [
        Heading("One caption, two methods"),
        Prose([why]),
        Quote(asked[0][key].caption),
        Rankings("Images retrieved by two methods", rankings),
    ]


SECTIONS = [Section(FRONT, "found", 1, "What was found", section)]
