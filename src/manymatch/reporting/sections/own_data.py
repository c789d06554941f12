"""What helps to improve a data set of one's own: what chance gives, and near-duplicates."""

from __future__ import annotations

from math import prod

from manymatch.reporting.page import Section, gallery
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
    return next((run for run in results.runs if run.samples and run.samples.near_duplicates), None)


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


def near_duplicates(results: AllResults) -> list[Block]:
    """How many pictures are nearly the same, and those of the ranked split."""
    best = _best(results)
    if best is None:
        return []
    assert best.samples and best.samples.near_duplicates
    known = best.samples.near_duplicates
    if not known.copies:
        return [Note("No picture is a near-duplicate of another one.")]
    text = (
        f"{known.copies:,} pictures are near-duplicates of others, in all splits together: resized, "
        "compressed again, or twice in the folder. "
    )
    if known.crossing:
        text += (
            f"{known.crossing:,} groups of them are in several splits: training has seen a test "
            "picture, so R@K is too high. Remove one of each, or let 'init' draw the splits. "
        )
    if known.groups:
        text += "Pictures of one group compete: only a caption's own picture counts as found."
    heads = ["Group", "Picture", "Split"]
    rows = [
        [Cell(str(number)), Cell(one.image_id, thumbnail=one.thumbnail), Cell(one.split)]
        for number, group in enumerate(known.groups, start=1)
        for one in group
    ]
    columns = [Column(head, numeric=False) for head in heads]
    title = f"Near-duplicates with a picture of the split {best.provenance.split}"
    return [Note(text), *([Table(title, columns, rows)] if rows else [])]


SECTIONS = [
    Section("Results", "beside-chance", 25, "Beside chance", beside_chance, link="Chance"),
    Section(
        "Queries", "near-duplicates", 135, "Near-duplicates", near_duplicates, link="Duplicates"
    ),
]
