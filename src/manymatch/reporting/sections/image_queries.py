"""Sampled images and the captions that each method retrieved."""

from __future__ import annotations

from manymatch.reporting.blocks import Block, Note, View
from manymatch.reporting.queries import (
    AskedImage,
    Legend,
    Picker,
    Question,
    Rankings,
    sampled_rankings,
)
from manymatch.results.all_results import AllResults


def section(results: AllResults) -> View | None:
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
