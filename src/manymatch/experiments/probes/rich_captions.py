"""Image retrieval with the captions that have the largest scene graphs.

Pham et al., CORA, CVPR 2024, section 9 of the supplement.
"""

from __future__ import annotations

from torch import Tensor

from manymatch.evaluation.ranking.metrics import CUTS, recall_metrics, rounded
from manymatch.experiments.probes.probed_model import External, ProbedModel
from manymatch.results.probes import Cell, Probe, ProbeTable, RichCaption

COUNT = 100
_SAMPLES = 10


def rich_captions(probed: ProbedModel | External) -> Probe[RichCaption]:
    """Text-to-image recalls on the `COUNT` captions with most attributes and relations."""
    ranks = probed.ranking.t2i.ranks
    sizes = [
        sum(map(len, caption.graph.attributes)) + len(caption.graph.relations)
        for caption in probed.captions
    ]
    # Sorting is stable: of equally rich captions the first are taken.
    richest = sorted(range(len(sizes)), key=lambda row: -sizes[row])[:COUNT]
    table = ProbeTable(
        title="Text to image",
        columns=[
            "Captions",
            "Attributes and relations",
            *(f"R@{cut}" for cut in CUTS),
            "Sum",
            "MedR",
        ],
        rows=[
            _row(f"the {len(richest)} richest", [sizes[row] for row in richest], ranks[richest]),
            _row("all", sizes, ranks),
        ],
    )
    samples = [
        RichCaption(
            caption_id=probed.captions[row].id,
            caption=probed.captions[row].text,
            attributes_and_relations=sizes[row],
            rank=int(ranks[row]),
        )
        for row in richest[:_SAMPLES]
    ]
    return Probe[RichCaption](
        title="Captions rich in semantics",
        about=f"The {COUNT} captions with most attributes and relations in their scene graphs, "
        "each ranking all images of the split.",
        tables=[table],
        samples=samples,
    )


def _row(name: str, sizes: list[int], ranks: Tensor) -> list[Cell]:
    values = recall_metrics(ranks)
    recalls = [values[f"r{cut}"] for cut in CUTS]
    mean = sum(sizes) / len(sizes)
    return [name, *map(rounded, [mean, *recalls, sum(recalls), values["medr"]])]
