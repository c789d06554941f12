"""How much the caption's least likely entity should weigh in re-ranking (CORA, eq. 14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manymatch.evaluation.protocols.recall import recall_of
from manymatch.evaluation.ranking.metrics import CUTS, rounded
from manymatch.evaluation.ranking.ranks import Ranking, rank
from manymatch.evaluation.rerank import best_beta, reranked, rsum_by_beta
from manymatch.experiments.probes.probed_model import ProbedModel
from manymatch.results.probes import Cell, Probe, ProbeTable


def reranking(probed: ProbedModel) -> Probe[Any]:
    """The validation rsum for each beta, and the split's recalls with the best beta."""
    score, embedded = probed.trained.method.score, probed.embedded
    rsums = rsum_by_beta(score, probed.held_out())
    beta = best_beta(rsums)
    rows: list[list[Cell]] = [[tried, rounded(rsum)] for tried, rsum in rsums.items()]
    after = rank(reranked(score, beta), *embedded.gallery)
    return Probe(
        title="Re-ranking by entities",
        about="Score beta s(image, caption) + (1 - beta) min over the caption's entities of "
        f"s(image, entity). The best beta on the split 'validation' is {beta:g}.",
        tables=[
            ProbeTable(title="Validation", columns=["beta", "rsum"], rows=rows),
            recalls(probed.split, [("plain", None, probed.ranking), ("re-ranked", beta, after)]),
        ],
        samples=[],
    )


def recalls(split: str, rankings: Sequence[tuple[str, float | None, Ranking]]) -> ProbeTable:
    """The recalls of several rankings of `split`: each has a name and a beta."""
    columns = [f"{way} R@{cut}" for way in ("Image to text", "Text to image") for cut in CUTS]
    rows: list[list[Cell]] = []
    for name, beta, ranking in rankings:
        values = recall_of(ranking)
        cells = [values[way][f"r{cut}"] for way in ("i2t", "t2i") for cut in CUTS]
        rows.append([name, beta, *map(rounded, [*cells, values["rsum"]])])
    heads = ["Scores", "beta", *columns, "rsum"]
    return ProbeTable(title=f"Recalls on the split '{split}'", columns=heads, rows=rows)
