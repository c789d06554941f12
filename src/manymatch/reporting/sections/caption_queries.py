"""Sampled captions and the images that each method retrieved."""

from __future__ import annotations

from manymatch.reporting.blocks import View
from manymatch.reporting.graph_drawing import draw
from manymatch.reporting.queries import (
    Graph,
    Legend,
    Picker,
    Question,
    Quote,
    Rankings,
    sampled_rankings,
)
from manymatch.results.all_results import AllResults


def section(results: AllResults) -> View | None:
    """The section; None if no caption was sampled."""
    questions = [
        Question(
            query.caption,
            [
                Quote(query.caption),
                Graph(
                    "Scene graph",
                    draw(query.graph) if query.graph and query.graph.objects else None,
                ),
                Rankings("Images retrieved by each method", rankings),
            ],
        )
        for query, rankings in sampled_rankings(results.runs, lambda s: s.captions, "caption_id")
    ]
    if not questions:
        return None
    judged = any(run.metrics.multi for run in results.runs)
    blocks = [Legend(judged), Picker("caption", "caption", questions)]
    return View("Images retrieved for a caption", "Captions", blocks)
