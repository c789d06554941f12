"""Sampled images and the captions that each method retrieved."""

from __future__ import annotations

from manymatch.reporting.blocks import Note, View
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
    title = "Captions retrieved for an image"
    questions = [
        Question(
            query.captions[0] if query.captions else query.image_id,
            [
                AskedImage(query.thumbnail, query.image_id, query.captions),
                Rankings("Captions retrieved by each method", rankings),
            ],
            query.thumbnail,
        )
        for query, rankings in sampled_rankings(results.runs, lambda s: s.images, "image_id")
    ]
    if not questions:
        note = Note(
            f"Sample queries of {results.runs[0].dataset} are not on this machine. 'dvc pull' "
            "fetches them; 'dvc repro' makes them again."
        )
        return View(title, "Images", [note])
    judged = any(run.metrics.multi for run in results.runs)
    picker = Picker("image", "image", questions, pictures=True)
    return View(title, "Images", [Legend(judged), picker])
