"""How much an image's score should hang on the caption's least likely entity (CORA, eq. 14)."""

from __future__ import annotations

from manymatch.evaluation.rerank import best_beta, rsum_by_beta
from manymatch.studies.findings import Cell, Findings, Table, shown
from manymatch.studies.subject import Subject


def reranking(subject: Subject) -> Findings:
    """The validation rsum for each beta; `manymatch rerank` takes the best."""
    rsums = rsum_by_beta(subject.trained.method.score, subject.held_out())
    rows: list[list[Cell]] = [[beta, shown(rsum)] for beta, rsum in rsums.items()]
    return Findings(
        "Re-ranking by entities",
        "Score beta s(image, caption) + (1 - beta) min over the caption's entities of s(image, "
        f"entity), on the split 'validation'. The best beta is {best_beta(rsums):g}.",
        [Table("Validation", ["beta", "rsum"], rows)],
    )
