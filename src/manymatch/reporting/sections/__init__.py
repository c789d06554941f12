"""The sections of the report and the pages on which they stand. A section is a function
`section(results) -> View | None` in a module of its own; None: the results have nothing to show."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from manymatch.reporting.blocks import View
from manymatch.reporting.sections import (
    ablations,
    caption_queries,
    claims,
    clusters,
    costs,
    elements,
    hardest,
    image_queries,
    leaderboard,
    methods,
    provenance,
    published,
    recall_curve,
    sets,
    sketches,
    studies,
    synthetic,
    training,
)
from manymatch.results.all_results import AllResults

Section = Callable[[AllResults], View | None]


class Part(NamedTuple):
    """A page of each data set; the sections get the results on this data set alone."""

    title: str
    sections: tuple[Section, ...]


PARTS = [
    Part(
        "Results",
        (
            leaderboard.section,
            recall_curve.section,
            published.section,
            methods.section,
            training.section,
            provenance.section,
        ),
    ),
    Part("Experiments", (claims.section, ablations.section)),
    Part("Queries", (hardest.section, image_queries.section, caption_queries.section)),
    Part("Sets", (sets.section, elements.section)),
    Part("Studies", (studies.section, clusters.section)),
    Part("Efficiency", (costs.section,)),
]

OVERVIEW: list[Section] = [leaderboard.section, methods.section, claims.section]
"""The sections of each data set on the first page."""

WITHOUT_DATASET = Part("Other experiments", (synthetic.section, sketches.section))
"""The page of the experiments that belong to no data set of the pipeline."""
