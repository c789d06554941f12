"""The report page: what the templates get to see, and one file of HTML that needs no other."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import yaml
from markupsafe import Markup

from manymatch.reporting import (
    ablation_charts,
    ablations,
    charts,
    claims,
    clusters,
    comparison,
    cost_charts,
    heats,
    leaderboard,
    published_ablations,
    queries,
    sets,
    sketches,
    studies,
    synthetic,
)
from manymatch.results.ablations import Ablation
from manymatch.results.all_results import AllResults
from manymatch.results.runs import Run

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class RunView:
    """A run with its line style, its anchor on the page, and the charts of its loss terms."""

    run: Run
    anchor: str
    style: int
    losses: list[charts.Chart]


@dataclass(frozen=True)
class Bars:
    """One direction's recalls: for each K the value of each run."""

    title: str
    groups: list[tuple[str, list[tuple[RunView, float]]]]


@dataclass(frozen=True)
class AblationView:
    """An ablation with its table and its charts: of lines, or else of dots."""

    ablation: Ablation
    anchor: str
    sizes: str
    table: ablations.Table
    lines: list[charts.Chart]
    dots: list[ablation_charts.Dots]
    published: list[published_ablations.PublishedAblation]
    """What a paper prints of the same question."""
    heats: list[tuple[str, list[heats.Heat]]]
    """Of sets: which elements meet, at each point by its first seed."""


@dataclass(frozen=True)
class AblationsView:
    """A data set of which there are ablations and nothing else."""

    name: str
    anchor: str
    ablations: list[AblationView]
    claims: list[claims.Checked]


@dataclass(frozen=True)
class DatasetView:
    """All that the page says about one data set."""

    name: str
    anchor: str
    sizes: str
    judged: bool
    """Whether there is ground truth beyond the pairs."""
    terms: list[tuple[str, str]]
    """What the settings and kinds of these runs mean."""
    runs: list[RunView]
    boards: list[tuple[leaderboard.Table, list[RunView]]]
    """A table a setting, and its runs."""
    bars: list[Bars]
    published: list[comparison.Comparison]
    """Beside the papers' numbers, where they have any."""
    of_methods: list[AblationView]
    """Whole methods over several seeds."""
    claims: list[claims.Checked]
    """What the papers claim, and whether it holds."""
    ablations: list[AblationView]
    validation: charts.Chart | None
    images: list[queries.ImagePanel]
    captions: list[queries.CaptionPanel]
    sets: sets.SetsView | None
    studies: list[studies.StudyView]
    clusters: list[clusters.ClustersView]
    costs: cost_charts.CostsView | None
    provenance: list[tuple[str, list[str]]]


def render(results: AllResults) -> str:
    """The page of all that was found; of data sets without a run the ablations alone."""
    thumbnails = queries.Thumbnails()
    datasets = [
        _dataset(name, runs, results, thumbnails)
        for name, runs in leaderboard.by_dataset(results.runs)
    ]
    others = _ablations_only(results.ablations, {view.name for view in datasets})
    script = (_TEMPLATES / "script.js").read_text(encoding="utf-8")
    style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    template = _environment().get_template("page.html")
    # Both are our own package's files, and the only text that enters the page unescaped.
    return template.render(
        datasets=datasets,
        others=others,
        experiments={
            "Synthetic pairs": [synthetic.view(each) for each in results.synthetic],
            "Sketches to images": [sketches.view(each) for each in results.sketches],
        },
        thumbnails=thumbnails.numbers,
        style=Markup(style),
        script=Markup(script),
        script_hash=_hash(script),
        claims_meaning=claims.MEANING,
    )


def _environment() -> jinja2.Environment:
    """Everything is escaped: captions and names are other people's text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["preset"] = _preset
    return environment


def _hash(script: str) -> str:
    """For the page's content security policy: this script may run, and no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _dataset(
    name: str, runs: list[Run], results: AllResults, thumbnails: queries.Thumbnails
) -> DatasetView:
    anchor = _anchor(name)
    tried = [each for each in results.ablations if each.dataset == name]
    views = [_run(anchor, run, position) for position, run in enumerate(runs)]
    curves = [(view.run.preset, view.style, view.run.curves) for view in views]
    return DatasetView(
        name=name,
        anchor=anchor,
        sizes=leaderboard.sizes(runs),
        judged=any(run.metrics.multi for run in runs),
        terms=[*leaderboard.settings(runs), *leaderboard.kinds(runs)],
        runs=views,
        boards=[
            (table, [view for view in views if view.run in table.runs])
            for table in leaderboard.tables(runs)
        ],
        bars=_bars(views),
        published=comparison.comparisons(name, runs),
        of_methods=[_ablation(anchor, each) for each in tried if each.of_methods],
        ablations=[_ablation(anchor, each) for each in tried if not each.of_methods],
        claims=claims.check(name, tried),
        validation=charts.validation_chart(curves),
        images=queries.image_panels(runs, thumbnails),
        captions=queries.caption_panels(runs, thumbnails),
        sets=sets.view([(view.run, view.style) for view in views], thumbnails),
        studies=studies.views(results.studies, name, thumbnails),
        clusters=clusters.views(results.clusters, name, thumbnails),
        costs=cost_charts.view(results.costs, name),
        provenance=_provenance(runs),
    )


def _run(dataset: str, run: Run, position: int) -> RunView:
    style = position % charts.STYLES
    anchor = f"{dataset}--{_anchor(run.preset)}"
    return RunView(run, anchor, style, charts.loss_charts(run.curves, style))


def _ablations_only(tried: Sequence[Ablation], known: set[str]) -> list[AblationsView]:
    by_name: dict[str, list[AblationView]] = {}
    for each in tried:
        if each.dataset not in known:
            view = _ablation(_anchor(each.dataset), each)
            by_name.setdefault(each.dataset, []).append(view)
    return [
        AblationsView(name, _anchor(name), views, claims.check(name, tried))
        for name, views in by_name.items()
    ]


def _ablation(dataset: str, ablation: Ablation) -> AblationView:
    table = ablations.table(ablation)
    lines = ablation_charts.line_charts(ablation)
    return AblationView(
        ablation=ablation,
        anchor=f"{dataset}-ablation-{_anchor(ablation.name)}",
        sizes=ablations.sizes(ablation),
        table=table,
        lines=lines,
        published=published_ablations.beside(ablation.name),
        dots=[] if lines else ablation_charts.dot_charts(table.points, ablation.keys),
        heats=[
            (point.label, heats.pair_heats(pairs))
            for point in table.points
            if (pairs := point.runs[0].pairs) is not None
        ],
    )


def _anchor(name: str) -> str:
    """For the address of a part of the page. An ensemble `a+b` is not a preset `a-b`."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name.replace("+", " and "))


def _bars(views: list[RunView]) -> list[Bars]:
    ways = {"Image → text": "i2t", "Text → image": "t2i"}
    return [
        Bars(title, [(f"R@{k}", _values(views, f"{way}.r{k}")) for k in (1, 5, 10)])
        for title, way in ways.items()
    ]


def _values(views: list[RunView], key: str) -> list[tuple[RunView, float]]:
    return [(view, view.run.metrics.numbers()[key]) for view in views]


_LABELS = {
    "method": "Method",
    "features": "Features",
    "setting": "Setting",
    "split": "Split",
    "images": "Images",
    "captions": "Captions",
    "seed": "Seed",
    "parameters": "Parameters",
    "checkpoint_sha256": "Checkpoint (SHA-256)",
    "data_sha256": "Data (SHA-256)",
    "code_sha256": "Code (SHA-256)",
    "version": "ManyMatch version",
    "members": "Members",
    "rerank_beta": "Re-ranking, beta",
}
_SHOWN_ELSEWHERE = {"dataset", "preset", "resolved"}


def _provenance(runs: list[Run]) -> list[tuple[str, list[str]]]:
    """Rows of the provenance table: a label, and the value of each run."""
    found = [run.provenance.model_dump() for run in runs]
    keys = dict.fromkeys(_LABELS) | dict.fromkeys(key for row in found for key in row)
    return [
        (_LABELS.get(key, key), [_value(key, row.get(key)) for row in found])
        for key in keys
        if key not in _SHOWN_ELSEWHERE and any(row.get(key) not in (None, ()) for row in found)
    ]


def _value(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if key == "members":
        return ", ".join(f"{each['preset']} (seed {each['seed']})" for each in value) or "-"
    return f"{value:,}" if isinstance(value, int | float) and key != "seed" else str(value)


def _preset(provenance: Any) -> str | None:
    """The preset of a result as YAML text, if its provenance has one."""
    preset = getattr(provenance, "resolved", None)
    if preset is None or isinstance(preset, str):
        return preset
    return yaml.safe_dump(preset, sort_keys=False, allow_unicode=True).strip()
