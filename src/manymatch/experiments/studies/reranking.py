"""How much an image's score should hang on the caption's least likely entity (CORA, eq. 14)."""

from __future__ import annotations

from collections.abc import Sequence

from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.ranking.metrics import CUTS
from manymatch.evaluation.ranking.ranks import Ranking, rank
from manymatch.evaluation.rerank import best_beta, reranked, rsum_by_beta
from manymatch.experiments.studies.findings import Cell, Findings, Table, shown
from manymatch.experiments.studies.subject import Subject


def reranking(subject: Subject) -> Findings:
    """The validation rsum for each beta, and the split's recalls with the best beta."""
    score, found = subject.trained.method.score, subject.found
    rsums = rsum_by_beta(score, subject.held_out())
    beta = best_beta(rsums)
    rows: list[list[Cell]] = [[each, shown(rsum)] for each, rsum in rsums.items()]
    after = rank(reranked(score, beta), found.images, found.texts, found.owner)
    return Findings(
        "Re-ranking by entities",
        "Score beta s(image, caption) + (1 - beta) min over the caption's entities of s(image, "
        f"entity). The best beta on the split 'validation' is {beta:g}.",
        [
            Table("Validation", ["beta", "rsum"], rows),
            recalls(subject.split, [("plain", None, subject.ranking), ("re-ranked", beta, after)]),
        ],
    )


def recalls(split: str, rankings: Sequence[tuple[str, float | None, Ranking]]) -> Table:
    """A row for each ranking of `split`: what the scores are, and their beta."""
    columns = [f"{way} R@{cut}" for way in ("Image to text", "Text to image") for cut in CUTS]
    rows: list[list[Cell]] = []
    for name, beta, ranking in rankings:
        values = recall_of(ranking)
        cells = [values[way][f"r{cut}"] for way in ("i2t", "t2i") for cut in CUTS]
        rows.append([name, beta, *map(shown, [*cells, values["rsum"]])])
    return Table(f"Recalls on the split '{split}'", ["Scores", "beta", *columns, "rsum"], rows)
