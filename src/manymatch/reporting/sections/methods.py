"""Every method of a data set: paper, preset, command, results, curves, a sample, and its settings
against the paper's; and the training curves of all methods in one chart."""

import shlex
from collections.abc import Sequence
from typing import Any

import yaml

from manymatch.config.names import method_papers, method_titles
from manymatch.reporting.chart import Chart, Series, line_chart, styles
from manymatch.reporting.estimates import Estimate
from manymatch.reporting.page import Section, page_address
from manymatch.reporting.sections.experiments import ranked_points
from manymatch.reporting.sections.samples import Quote, Rankings, method_ranking
from manymatch.reporting.table import (
    Block,
    Cell,
    Code,
    Column,
    Folded,
    Grid,
    Heading,
    Note,
    Prose,
    Table,
)
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Experiment, ExperimentPoint, value_text
from manymatch.results.metrics import Provenance
from manymatch.results.runs import Curve, Curves, Run

_MAX_CHARTS, _MAX_ANSWERS = 11, 5
"""The most loss terms of one run that are drawn, and answers of the sample."""

_VALIDATION = "validation/rsum"
_TRAINING = "train/"


def section(results: AllResults) -> list[Block]:
    """Every evaluated model and every method of an experiment, each below a heading of its own."""
    blocks: list[Block] = []
    number, runs = styles(results.runs), {run.preset: run for run in results.runs}
    points = {point.label: point for one in results.comparisons[::-1] for point in one.points}
    for name, places in _places(results).items():
        run = runs.get(name)
        made = _made(run.provenance if run else points[name])
        method = run.provenance.method if run else made.get("method", name)
        paper = [named[method] for named in (method_titles(), method_papers()) if method in named]
        commands = [
            _experiment_command(one)
            for one in results.comparisons
            if any(point.label == name for point in one.points)
        ]
        blocks += [
            Heading(name, ", ".join(paper), f"run-{name}", number.get(name)),
            Prose(places),
            Code("\n".join([*([_command(run)] if run else []), *commands])),
        ]
        if run:
            chart = validation_chart([(name, number[name], run.curves)])
            charts = [*([chart] if chart else []), *loss_charts(run.curves, number[name])]
            blocks += [Grid(charts, "small")] if charts else []
            blocks += _sample(run)
        if made:
            blocks += _settings(results, method, made)
    return blocks


def _places(results: AllResults) -> dict[str, list[list[Cell]]]:
    """The evaluated models, then the other methods of experiments, best first: each with a line for
    every ranking that it is part of."""
    board = [(run.preset, f"{run.metrics.rsum:.1f}") for run in results.runs]
    rankings = {"leaderboard": ("Results", "leaderboard", board)}
    runs = {run.preset: run for run in results.runs}
    for experiment in results.comparisons:
        ranked = []
        for point in ranked_points(experiment):
            rsum = Estimate.score_estimate([run.metrics.rsum for run in point.runs]).text()
            run = runs.get(point.label)
            other = run and not same_settings(run, point)
            ranked.append((point.label, f"{rsum}{' with other settings' if other else ''}"))
        rankings[experiment.name] = "Experiments", f"experiment-{experiment.name}", ranked
    places: dict[str, list[list[Cell]]] = {}
    for title, (page, anchor, ranked) in rankings.items():
        href = page_address(results.datasets[0], page, anchor)
        for place, (name, rsum) in enumerate(ranked, start=1):
            text = f": rsum {rsum}, place {place} of {len(ranked)}"
            places.setdefault(name, []).append([Cell(title, href=href), Cell(text)])
    return places


def _command(run: Run) -> str:
    """What made the result."""
    dataset, name = run.dataset, run.preset
    if run.provenance.setting == "external":
        return f"manymatch score {dataset} --as {name}"
    if run.kind:
        verb = "ensemble" if run.kind == "ensemble" else "rerank"
        return f"manymatch {verb} {dataset} {name.removesuffix('+rerank')}"
    warm = "warm_" if getattr(run.provenance, "warm_start_sha256", None) else ""
    return f"dvc repro {warm}evaluate@{dataset}-{name}    # presets/{dataset}/{name}.yaml"


def _experiment_command(one: Experiment) -> str:
    """What made the experiment. An experiment of options alone has no file. It says nothing about
    itself, and its name is the names of its presets."""
    presets = [point.label for point in one.points]
    if one.about or one.name.removesuffix("-options") != "-".join(presets):
        return f"manymatch experiment experiments/{one.name}.yaml --dataset {one.dataset}"
    words = ["manymatch", "experiment", one.dataset, *presets]
    words += ["--seeds", ",".join(map(str, one.seeds))]
    for key, value in getattr(one, "set", {}).items():
        words += ["--set", f"{key}={value_text(value)}"]
    return shlex.join(words)


def _sample(run: Run) -> list[Block]:
    """The first sampled caption with the first pictures."""
    if not run.samples or not run.samples.captions:
        return []
    query = run.samples.captions[0]
    ranking = method_ranking(run, query, _MAX_ANSWERS)
    return [Quote(query.caption), Rankings(f"Images retrieved by {run.preset}", [ranking])]


def _settings(results: AllResults, method: str, made: dict[str, Any]) -> list[Block]:
    """The settings that differ from those of the published preset that is nearest, and all."""
    blocks: list[Block] = []
    records = (run.provenance for run in results.runs if run.provenance.method == method)
    stated = (getattr(record, "defaults", None) for record in records)
    defaults: dict[str, Any] = next(filter(None, stated), {})
    ours = flat_settings({**made, "model": {**defaults, **(made.get("model") or {})}})
    theirs = {
        path: flat_settings(
            preset.model_dump(mode="json") | {"model": {**defaults, **preset.model}}
        )
        for path, preset in results.published.items()
        if preset.method == method and path.rpartition("/")[2].startswith(method)
    }
    if theirs:
        path = max(theirs, key=lambda path: len(ours.items() & theirs[path].items()))
        keys = [key for key in {**ours, **theirs[path]} if key not in ("seed", "setting")]
        rows = [
            [Cell(key), Cell(ours.get(key, "")), Cell(theirs[path].get(key, ""))]
            for key in sorted(keys)
            if ours.get(key) != theirs[path].get(key)
        ]
        columns = [Column(head, numeric=False) for head in ("Setting", "Here", "Paper")]
        table = Table(f"Settings that differ from {path}", columns, rows)
        blocks.append(Folded(f"{len(rows)} settings differ from the paper's ({path})", [table]))
    text = yaml.safe_dump(made, sort_keys=False, allow_unicode=True).strip()
    return [*blocks, Folded("All settings", [Code(text)])]


def _made(record: Provenance | ExperimentPoint) -> dict[str, Any]:
    """All settings of a training; empty where a file lacks them."""
    settings = getattr(record, "resolved", {})
    return settings if isinstance(settings, dict) else {}


def same_settings(run: Run, point: ExperimentPoint) -> bool:
    """Whether the model and the runs of the point have one preset. Experiments set the seed."""
    made = _made(run.provenance), _made(point)
    own, other = (flat_settings({**settings, "seed": 0}) for settings in made)
    return own == other


def flat_settings(value: Any, prefix: str = "") -> dict[str, str]:
    """The settings below dotted keys, as tables write them; those without a value are left out."""
    if not isinstance(value, dict):
        return {} if value in (None, [], ()) else {prefix: value_text(value)}
    flat: dict[str, str] = {}
    for key, part in value.items():
        flat |= flat_settings(part, f"{prefix}.{key}" if prefix else key)
    return flat


def training(results: AllResults) -> list[Block]:
    """The validation rsum of all runs."""
    number = styles(results.runs)
    chart = validation_chart([(run.preset, number[run.preset], run.curves) for run in results.runs])
    if chart is None and results.runs:
        text = "The training curves are not on this machine. 'dvc repro' makes them."
        return [Note(text)]
    return [chart] if chart else []


def validation_chart(curves: Sequence[tuple[str, int, Curves]]) -> Chart | None:
    """The validation rsum of several runs (name, style, curves); None if no run has the curve."""
    series = [
        _series(name, style, curve, f"best {curve.best[1]:.1f} in epoch {curve.best[0] + 1:g}")
        for name, style, run in curves
        if (curve := run.get(_VALIDATION))
    ]
    legend = len(series) > 1
    return line_chart("Validation rsum", series, "epoch", legend=legend) if series else None


def loss_charts(curves: Curves, style: int) -> list[Chart]:
    """A chart for each training loss term of one run, each on its own scale."""
    terms = [curve for name, curve in curves.items() if name.startswith(_TRAINING)]
    return [
        line_chart(
            name,
            [_series(name, style, term, f"{term.points[0][1]:.3g} to {term.last:.3g}")],
            "epoch",
            legend=False,
        )
        for term in terms[:_MAX_CHARTS]
        for name in [term.name.removeprefix(_TRAINING)]
    ]


def _series(name: str, style: int, curve: Curve, summary: str) -> Series:
    """The curve with epochs from 1, as the log counts; dvclive counts steps from 0."""
    points = [(step + 1, value) for step, value in curve.points]
    labels = [f"{value:.4g} in epoch {epoch:g}" for epoch, value in points]
    return Series(name, style, points, summary, labels)


SECTIONS = [
    Section("Methods", "methods", 15, "Methods", section),
    Section("Results", "training", 50, "Training", training),
]
