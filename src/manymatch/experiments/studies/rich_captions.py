"""Image retrieval for the captions that say the most.

Pham et al., CORA, CVPR 2024, section 9 of the supplement.
"""

from __future__ import annotations

from torch import Tensor

from manymatch.evaluation.ranking.metrics import CUTS, recall_metrics
from manymatch.experiments.studies.findings import Cell, Findings, Table, shown
from manymatch.experiments.studies.subject import Ranked
from manymatch.scene_graphs.graph import SceneGraph

COUNT = 100
_SAMPLES = 10


def rich_captions(subject: Ranked) -> Findings:
    """Text-to-image recalls on the `COUNT` captions with most attributes and relations."""
    ranks = subject.ranking.t2i.ranks
    sizes = [_said(caption.graph) for caption in subject.captions]
    # Of equally rich captions the first ones; sorting is stable.
    richest = sorted(range(len(sizes)), key=lambda row: -sizes[row])[:COUNT]
    table = Table(
        "Text to image",
        ["Captions", "Attributes and relations", *(f"R@{cut}" for cut in CUTS), "Sum", "MedR"],
        [
            _row(f"the {len(richest)} richest", [sizes[row] for row in richest], ranks[richest]),
            _row("all", sizes, ranks),
        ],
    )
    samples = [
        {
            "caption_id": subject.captions[row].id,
            "caption": subject.captions[row].text,
            "attributes_and_relations": sizes[row],
            "rank": int(ranks[row]),
        }
        for row in richest[:_SAMPLES]
    ]
    return Findings(
        "Captions rich in semantics",
        f"The {COUNT} captions with most attributes and relations in their scene graphs, each "
        "ranking all images of the split.",
        [table],
        samples,
    )


def _said(graph: SceneGraph) -> int:
    return sum(map(len, graph.attributes)) + len(graph.relations)


def _row(name: str, sizes: list[int], ranks: Tensor) -> list[Cell]:
    values = recall_metrics(ranks)
    recalls = [values[f"r{cut}"] for cut in CUTS]
    mean = sum(sizes) / len(sizes)
    return [name, *map(shown, [mean, *recalls, sum(recalls), values["medr"]])]
