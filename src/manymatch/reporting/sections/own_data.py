"""What helps to improve a data set of one's own: what chance gives, and the worst queries."""

from __future__ import annotations

from math import prod

from manymatch.reporting.page import Section, gallery
from manymatch.reporting.queries import (
    AskedImage,
    Legend,
    Picker,
    Question,
    Quote,
    Ranking,
    Rankings,
    answer_of,
)
from manymatch.reporting.table import Block, Cell, Column, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.runs import WAYS, Run

_DEPTHS = 1, 5, 10


def chance(images: int, captions: int) -> dict[str, list[float]]:
    """R@1, R@5 and R@10 of a random order, in percent, in each direction. The captions count as
    divided among the images as evenly as whole numbers allow."""
    fewest, more = divmod(captions, images)

    def found(own: int, depth: int) -> float:
        return 1 - prod(max(0, captions - own - j) / (captions - j) for j in range(depth))

    shares = {fewest: 1 - more / images, fewest + 1: more / images}
    return {
        "i2t": [
            100 * sum(share * found(own, depth) for own, share in shares.items())
            if depth < captions
            else 100.0
            for depth in _DEPTHS
        ],
        "t2i": [min(100.0, 100 * depth / images) for depth in _DEPTHS],
    }


def _best(results: AllResults) -> Run | None:
    """The best model on a data set of one's own; None: the data set is another."""
    return next((run for run in results.runs if run.worst), None)


def beside_chance(results: AllResults) -> list[Block]:
    """R@K of the best model and of a random order."""
    best = _best(results)
    if best is None:
        return []
    by_chance = chance(best.provenance.images, best.provenance.captions)
    rows = []
    for way, title in WAYS.items():
        ranks = getattr(best.metrics, way)
        reached = [Cell.number(value) for value in (ranks.r1, ranks.r5, ranks.r10)]
        rows.append([Cell(f"{title}, {best.preset}"), *reached])
        rows.append([Cell(f"{title}, chance"), *map(Cell.number, by_chance[way])])
    columns = [Column("Direction", numeric=False), *(Column(f"R@{k}") for k in _DEPTHS)]
    note = Note(
        f"{gallery(best.provenance)}. R@K falls as the gallery grows, so compare only numbers of "
        "one test split. Chance is a random order."
    )
    return [note, Table("Beside chance", columns, rows)]


def worst(results: AllResults) -> list[Block]:
    """The captions whose images the best model ranks last."""
    best = _best(results)
    if best is None or best.worst is None:
        return []
    questions, marks = [], set()
    for query in best.worst.captions:
        answers = [answer_of(item, rank) for rank, item in enumerate(query.retrieved, start=1)]
        marks |= {answer.mark for answer in answers}
        place = f"its picture has rank {query.rank:,} of {best.provenance.images:,}"
        own = AskedImage(query.thumbnail, query.image_id, [])
        found = Rankings("Images that were found first", [Ranking(best.preset, place, answers)])
        questions.append(Question(query.caption, [Quote(query.caption), own, found]))
    note = Note(
        f"The captions whose own picture {best.preset} ranks last. Look for wrong or vague "
        "captions, for the same photo twice, and for answers that are right too."
    )
    return [note, Legend(marks), Picker("worst", "caption", questions)]


SECTIONS = [
    Section("Results", "beside-chance", 25, "Beside chance", beside_chance, link="Chance"),
    Section("Queries", "worst-queries", 135, "The worst queries", worst, link="Worst"),
]
