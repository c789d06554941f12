"""The first page: what was found on a data set in a few sentences, a card a method, one query under
two methods, and the papers' claims folded."""

from collections import Counter
from collections.abc import Sequence

from manymatch.reporting.chart import styles
from manymatch.reporting.estimates import Estimate, verdicts
from manymatch.reporting.page import FRONT, Section, gallery, method_address, page_address
from manymatch.reporting.sections import claims
from manymatch.reporting.sections.experiments import interval_text, ranked_points, sizes
from manymatch.reporting.sections.methods import same_settings, validation_chart
from manymatch.reporting.sections.one_to_many import conclusion
from manymatch.reporting.sections.samples import Quote, Rankings, method_ranking
from manymatch.reporting.table import Block, Card, Cards, Cell, Folded, Heading, Prose
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Experiment
from manymatch.results.runs import Run

_MAX_ANSWERS = 5


def section(results: AllResults) -> list[Block]:
    """Everything that the first page says of a data set; nothing without models and methods."""
    study = results.broadest
    if not results.runs and study is None:
        return []
    dataset = results.datasets[0]
    # Numbers of other galleries or settings are not comparable: the largest group stands here.
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in results.runs:
        kind = gallery(run.provenance), run.provenance.setting
        groups.setdefault(kind, []).append(run)
    if study:
        runs = groups.get((gallery(study), study.setting), [])
    else:
        runs = max(groups.values(), key=len)
    paragraphs = [_order_of_methods(study) if study else _order_of_runs(runs)]
    if study and (text := conclusion(study)):
        href = page_address(dataset, "One to many", "others")
        paragraphs.append([Cell("One to many", href=href), Cell(f": {text[0].lower()}{text[1:]}")])
    folded = []
    if findings := claims.check(results.current(Experiment), results.claims):
        counts = Counter(verdict for _, verdict, _ in claims.decided(findings))
        summary = (
            f"{len(findings)} tests of the papers' claims. As claimed: {counts['better']}, the "
            f"other way: {counts['worse']}, not decided: {counts['not decided']}."
        )
        href = page_address(dataset, "Experiments", "claims")
        paragraphs.append([Cell("Claims", href=href), Cell(f": {summary}")])
        folded = [Folded("The claims one by one", claims.blocks(dataset, findings))]
    cards = _cards(results.runs, runs, study, dataset)
    return [Prose(paragraphs, large=True), cards, *_two_methods(runs), *folded]


def _order_of_methods(study: Experiment) -> list[Cell]:
    """Which method is first in a study, and against which methods the lead is decided."""
    rsum = claims.QUANTITIES["rsum"]
    sides = [claims.best_side([point], rsum) for point in ranked_points(study)]
    best, *others = [side for side in sides if side]
    href = page_address(study.dataset, "Experiments", f"experiment-{study.name}")
    name = Cell(best.label, href=method_address(study.dataset, best.label))
    place = Cell(study.name, href=href)
    if not others:
        rsum_text = f", with an rsum of {best.estimate.text()}."
        return [name, Cell(" is the only method in "), place, Cell(rsum_text)]
    leads = [best.less(other) for other in others]
    decisions = zip(others, verdicts(leads), strict=True)
    close = [other.label for other, verdict in decisions if verdict == "not decided"]
    lead = f": {leads[0].text(1)} against {others[0].label}"
    decided = f"The lead is decided against {len(leads) - len(close)} of the others"
    decided += f", not against {', '.join(close)}" if close else ""
    if len(study.seeds) == 1:
        decided = "Each method was trained once, so the order is not decided"
    return [
        name,
        Cell(f" has the highest rsum of the {len(sides)} methods in "),
        place,
        Cell(f", {best.estimate.text()}{lead}. {decided}."),
    ]


def _order_of_runs(runs: Sequence[Run]) -> list[Cell]:
    best, *others = runs
    text = f" has an rsum of {best.metrics.rsum:.1f}"
    if others:
        lead = f"{best.metrics.rsum - others[0].metrics.rsum:+.1f} against {others[0].preset}"
        text += f", the highest of {len(runs)} models: {lead}. Each was trained once, so the order"
        text += " is not decided"
    return [Cell(best.preset, href=method_address(best.dataset, best.preset)), Cell(f"{text}.")]


def _cards(
    models: Sequence[Run], comparable: Sequence[Run], study: Experiment | None, dataset: str
) -> Cards:
    """The methods of the study, best first, then the models that the study lacks. A card of a model
    that is not `comparable` says why."""
    runs, number = {run.preset: run for run in models}, styles(models)
    points = {point.label: point for point in ranked_points(study)} if study else {}
    beside, cards = {run.preset for run in comparable}, []
    for name in dict.fromkeys([*points, *runs]):
        run, lines, curve = runs.get(name), [], ""
        score = f"{run.metrics.rsum:.1f}" if run else ""
        if run and (chart := validation_chart([(name, number[name], run.curves)])):
            curve = chart.lines[0].path
        if point := points.get(name):
            if run and name in beside:
                note = "" if same_settings(run, point) else ", with other settings"
                lines.append(f"this run{note}: {score}")
            score = Estimate.score_estimate([one.metrics.rsum for one in point.runs]).text()
            if ends := interval_text(point):
                lines.insert(0, f"95%: {ends}")
        elif run and name not in beside:
            lines.append(f"{run.provenance.setting}, {gallery(run.provenance)}")
        title = Cell(name, href=method_address(dataset, name), style=number.get(name))
        cards.append(Card(title, score, lines, curve))
    what = sizes(study) if study else gallery(comparable[0].provenance)
    drawn = " This run: the models of params.yaml, each trained once, with the validation rsum."
    return Cards(f"rsum on {what}.{drawn if comparable and study else ''}", cards)


def _two_methods(runs: Sequence[Run]) -> list[Block]:
    """The sampled caption on which the best model and the last one differ most in true images."""
    single = [run for run in runs if not run.kind]
    sampled = [
        (run, {query.id: query for query in run.samples.captions})
        for run in (single[:1] + single[1:][-1:])
        if run.samples
    ]
    both = [key for key in sampled[0][1] if key in sampled[-1][1]] if len(sampled) > 1 else []
    if not both:
        return []

    def difference(key: str) -> int:
        first, last = (
            sum(one.mark in ("own", "true") for one in queries[key].retrieved)
            for _, queries in sampled
        )
        return abs(first - last)

    key = max(both, key=difference)
    names = " and ".join(run.preset for run, _ in sampled)
    dataset = runs[0].dataset
    more = Cell("More queries", href=page_address(dataset, "Queries", "caption-queries"))
    every = Cell(f"; 'manymatch explore {dataset}' shows every query of the split.")
    why = f"Of {len(both)} sampled captions, {names} differ most on this one. "
    rankings = [method_ranking(run, queries[key], _MAX_ANSWERS) for run, queries in sampled]
    return [
        Heading("One caption, two methods"),
        Prose([[Cell(why), more, every]]),
        Quote(sampled[0][1][key].caption),
        Rankings("Images retrieved by two methods", rankings),
    ]


SECTIONS = [Section(FRONT, "found", 1, "What was found", section)]
