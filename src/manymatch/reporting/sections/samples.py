"""Sampled queries and what each method retrieved."""

from __future__ import annotations

from manymatch.reporting.blocks import Block, Note, View
from manymatch.reporting.graph_drawing import draw
from manymatch.reporting.queries import (
    AskedImage,
    Graph,
    Legend,
    Picker,
    Question,
    Quote,
    Rankings,
    sampled_rankings,
)
from manymatch.reporting.section import Section
from manymatch.results.all_results import AllResults


def images(results: AllResults) -> View | None:
    """The section; a note if the samples are not on this machine."""
    if not results.runs:
        return None
    questions = []
    for query, rankings in sampled_rankings(results.runs, lambda samples: samples.images):
        asked = AskedImage(query.thumbnail, query.image_id, query.captions)
        answers = Rankings("Captions retrieved by each method", rankings)
        questions.append(Question(query.label, [asked, answers], query.thumbnail))
    missing = Note(
        f"Sample queries of {results.runs[0].dataset} are not on this machine. 'dvc pull' "
        "fetches them; 'dvc repro' makes them again."
    )
    picker = Picker("image", "image", questions, pictures=True)
    blocks: list[Block] = [Legend(results.judged), picker] if questions else [missing]
    return View("Captions retrieved for an image", "Images", blocks)


def captions(results: AllResults) -> View | None:
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


SECTIONS = [
    Section("Queries", "image-queries", 120, images),
    Section("Queries", "caption-queries", 130, captions),
]
