"""What helps to improve a data set of one's own: what chance gives, and near-duplicates."""

from math import prod

from manymatch.reporting.chart import CategoryAxis, Series, line_chart
from manymatch.reporting.estimates import Estimate, verdicts
from manymatch.reporting.page import Section, gallery
from manymatch.reporting.sections.claims import rsum_difference
from manymatch.reporting.table import Block, Cell, Column, Grid, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.experiments import Experiment
from manymatch.results.runs import WAYS, Run

_DEPTHS = 1, 5, 10
LEARNING_CURVE, FRACTION = "learning-curve", "training.fraction"
"""The name of the experiment of a learning curve, and the setting that its points vary."""


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


def expectation(curve: Experiment) -> str:
    """What twice the captions would give: a sentence with an interval, or that no number is known.

    The points of `curve` are trainings on a quarter, a half and all of the training images.
    """
    quarter, half, whole = curve.points
    last, earlier = rsum_difference(whole, half), rsum_difference(half, quarter)
    found = (
        f"rsum changed by {last.text(1)} from a half to all of the captions, and by "
        f"{earlier.text(1)} from a quarter to a half"
    )
    if verdicts([last])[0] != "better":
        return (
            f"{found}. The last difference is not certainly a gain, so there is no number for "
            "twice the captions"
        )
    return (
        f"{found}. With twice the captions expect about the last gain or less, because gains "
        "shrink as the data grow. The trainings were brief, all with about as many steps"
    )


def learning_curve(results: AllResults) -> list[Block]:
    """The validation rsum over the share of the captions that `init --compare` trained on."""
    curve = next((one for one in results.current(Experiment) if one.name == LEARNING_CURVE), None)
    if curve is None or len(curve.points) != 3:
        return []
    points = [
        (100 * point.settings[FRACTION], Estimate.of([run.metrics.rsum for run in point.runs]))
        for point in curve.points
    ]
    labels = [f"{share:g}%: {value.text()}" for share, value in points]
    line = Series.of_estimates(str(curve.preset), 0, points, labels, labels[-1])
    axis = CategoryAxis([share for share, _ in points])
    chart = line_chart("rsum", [line], "percent of the captions", x_axis=axis)
    note = f"{curve.preset} ({gallery(curve)}): {expectation(curve)}."
    return [Note(note), Grid([chart])]


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
        f"{known.copies:,} pictures are near-duplicates of others, in all splits: resized, "
        "compressed again, or twice in the folder. "
    )
    if known.crossing:
        text += (
            f"{known.crossing:,} groups of them are in several splits. If training has seen a test "
            "picture, R@K is too high. Remove one of each, or let 'init' draw the splits. "
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
    if known.found and known.found > len(known.groups):
        title += f": the first {len(known.groups)} of {known.found:,} groups"
    return [Note(text), *([Table(title, columns, rows)] if rows else [])]


_PAGE, _KINDS, _NEAR = "Results", (Experiment,), "near-duplicates"
SECTIONS = [
    Section(_PAGE, "beside-chance", 25, "Beside chance", beside_chance, (), "Chance"),
    Section(_PAGE, LEARNING_CURVE, 27, "Learning curve", learning_curve, _KINDS, "More captions"),
    Section("Queries", _NEAR, 135, "Near-duplicates", near_duplicates, (), "Duplicates"),
]
