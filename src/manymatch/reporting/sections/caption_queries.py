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
    questions = []
    for query, rankings in sampled_rankings(results.runs, lambda samples: samples.captions):
        drawing = draw(query.graph) if query.graph and query.graph.objects else None
        answers = Rankings("Images retrieved by each method", rankings)
        blocks = [Quote(query.caption), Graph("Scene graph", drawing), answers]
        questions.append(Question(query.caption, blocks))
    picker = Picker("caption", "caption", questions)
    title = "Images retrieved for a caption"
    return View(title, "Captions", [Legend(results.judged), picker]) if questions else None
