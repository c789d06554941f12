"""The pages of the report: which sections stand on which page, and the HTML of a page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from manymatch.reporting import claims, costs, leaderboard, over_seeds
from manymatch.reporting.blocks import Block, View, gallery
from manymatch.reporting.sections import (
    ablations,
    clusters,
    elements,
    one_to_many,
    provenance,
    published,
    ranks,
    samples,
    sets,
    studies,
    training,
    tuning,
)
from manymatch.results.all_results import AllResults

_TEMPLATES = Path(__file__).parent / "templates"

Sections = dict[str, Callable[[AllResults], View | None]]
"""Functions that make sections of the given results, by the anchors of the sections; None: the
results have nothing to show."""


class Part(NamedTuple):
    """A page of each data set; the sections get the results on this data set alone."""

    title: str
    sections: Sections


PARTS = [
    Part(
        "Results",
        {
            "leaderboard": leaderboard.section,
            "recall-curve": ranks.recall_curve,
            "published": published.section,
            "methods": ablations.methods,
            "training": training.section,
            "provenance": provenance.section,
        },
    ),
    Part(
        "Experiments",
        {"claims": claims.section, "ablations": ablations.section, "tuning": tuning.section},
    ),
    Part(
        "Queries",
        {
            "hardest": ranks.hardest,
            "image-queries": samples.images,
            "caption-queries": samples.captions,
        },
    ),
    Part("Sets", {"sets": sets.section, "elements": elements.section}),
    Part(
        "One to many",
        {
            "others": one_to_many.others,
            "ambiguity": one_to_many.ambiguity,
            "meanings": one_to_many.meanings,
        },
    ),
    Part("Studies", {"studies": studies.section, "clusters": clusters.section}),
    Part("Efficiency", {"costs": costs.section}),
]

OVERVIEW: Sections = {
    "leaderboard": leaderboard.section,
    "methods": ablations.methods,
    "claims": claims.section,
}
"""The sections of each data set on the first page."""

GENERAL_PART = Part(
    "Other experiments",
    {"synthetic": over_seeds.synthetic_section, "sketches": over_seeds.sketches_section},
)
"""The page of the experiments that belong to no data set of the pipeline."""


_DATASET_LISTS = ("runs", "ablations", "tuning", "studies", "clusters", "outdated", "costs")
"""The results that belong to a data set of the pipeline."""


@dataclass
class Page:
    """A page: its address below the folder of the report, the data set (empty: none), and the
    views by their anchors. `pictures` are the thumbnails shown so far, each embedded once."""

    address: str
    title: str
    dataset: str
    views: dict[str, tuple[str, View]]
    pictures: dict[str, int] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The way from the page to the folder of the report."""
        return "../" * self.address.count("/")

    def picture(self, thumbnail: str) -> int:
        """The number of a thumbnail on this page."""
        return self.pictures.setdefault(thumbnail, len(self.pictures))

    def show(self, block: Block) -> Markup:
        """The HTML of a block."""
        template = _environment().get_template(block.template)
        return Markup(template.render(block=block, page=self))


def render(results: AllResults) -> dict[str, str]:
    """The HTML of every page by its address below the folder of the report."""
    pages = [_overview(results), *_pages(results)]
    style, script = (
        (_TEMPLATES / name).read_text(encoding="utf-8") for name in ("style.css", "script.js")
    )
    context: dict[str, Any] = {
        "pages": pages,
        "data": _data_line(results),
        # Both files belong to the package, and are the only text that a page shows unescaped.
        "style": Markup(style),
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    template = _environment().get_template("page.html")
    return {page.address: template.render(page=page, **context) for page in pages}


@cache
def _environment() -> jinja2.Environment:
    """The templates. Every text is escaped, because captions and names come from elsewhere."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _overview(results: AllResults) -> Page:
    views = {
        f"{dataset}-{anchor}": (dataset, view)
        for dataset in _datasets(results)
        for anchor, view in _views(OVERVIEW, _select_dataset(results, dataset))
    }
    return Page("index.html", "Overview", "", views)


def _pages(results: AllResults) -> Iterator[Page]:
    """The pages of each data set, then the page of the other experiments; none without a view."""
    for dataset in _datasets(results):
        for part in PARTS:
            name = f"{dataset}-{part.title.lower().replace(' ', '-')}"
            yield from _page(name, dataset, part, _select_dataset(results, dataset))
    yield from _page("experiments", "", GENERAL_PART, results)


def _page(name: str, dataset: str, part: Part, results: AllResults) -> Iterator[Page]:
    views = {anchor: ("", view) for anchor, view in _views(part.sections, results)}
    if views:
        yield Page(f"pages/{name}.html", part.title, dataset, views)


def _views(sections: Sections, results: AllResults) -> Iterator[tuple[str, View]]:
    """The views that have something to show, by their anchors."""
    for anchor, section in sections.items():
        if view := section(results):
            yield anchor, view


def _datasets(results: AllResults) -> list[str]:
    """The data sets with results; those with a trained model come first."""
    kinds = [getattr(results, name) for name in _DATASET_LISTS]
    return list(dict.fromkeys(result.dataset for kind in kinds for result in kind))


def _select_dataset(results: AllResults, dataset: str) -> AllResults:
    """The results on one data set."""
    kinds: dict[str, Any] = {
        name: [result for result in getattr(results, name) if result.dataset == dataset]
        for name in _DATASET_LISTS
    }
    return replace(results, **kinds)


def _data_line(results: AllResults) -> str:
    """The data sets with their sizes: "scenes (test: 300 images, 1,500 captions)"."""
    parts = []
    for dataset in _datasets(results):
        selected = _select_dataset(results, dataset)
        galleries = leaderboard.sizes(selected.runs)
        if not galleries and selected.ablations:
            galleries = gallery(selected.ablations[0])
        parts.append(f"{dataset} ({galleries})" if galleries else dataset)
    return "; ".join(parts)
