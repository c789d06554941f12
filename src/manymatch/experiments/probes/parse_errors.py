"""How much errors of the parser lower the recalls of a trained model.

Pham et al., CORA, CVPR 2024, section 9 of the supplement.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from statistics import fmean

from manymatch.batch.numbering import CaptionEntry
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.experiments.probes.graph_errors import (
    GraphError,
    any_error,
    drop_word,
    move_attribute,
    move_edge,
)
from manymatch.experiments.probes.probed_model import ProbedModel
from manymatch.results import probes as results
from manymatch.results.probes import Cell, Probe, ProbeTable
from manymatch.results.retrieval import Graph

ERRORS: dict[str, GraphError] = {
    "any": any_error,
    "a word dropped": drop_word,
    "an attribute moved": move_attribute,
    "an edge moved": move_edge,
}
PARTS = (0.1, 0.2, 0.3)
REPEATS = 3
"""Number of draws of errors; the rsums are means over the draws."""

_SAMPLES = 3

Changed = dict[int, CaptionEntry]
"""Captions whose graph has an error, by row."""


def parse_errors(probed: ProbedModel) -> Probe[results.GraphError]:
    """The rsum with one error in the graphs of 10%, 20% and 30% of the captions.

    The same captions get the same errors for every model. The captions of the 10% are among those
    of the 20%.
    """
    captions = probed.captions
    sizes = [round(part * len(captions)) for part in PARTS]
    whole = rounded(probed.rsum(probed.embedded.texts))
    rsums: list[list[Cell]] = []
    counts: list[list[Cell]] = []
    samples: list[results.GraphError] = []
    for name, error in ERRORS.items():
        draws = [
            draw_errors(captions, error, sizes[-1], f"{repeat} {name}") for repeat in range(REPEATS)
        ]
        means = (fmean(_rsum(probed, changed, count) for changed in draws) for count in sizes)
        rsums.append([name, whole, *map(rounded, means)])
        counts.append([name, 0, *(min(count, len(draws[0])) for count in sizes)])
        samples += _samples(name, captions, draws[0])
    columns = ["Error", "none", *(f"{part:.0%}" for part in PARTS)]
    return Probe[results.GraphError](
        title="Errors of the parser",
        about="One error in the scene graphs of so many of the captions; where fewer have room for "
        f"such an error, all that have. Means over {REPEATS} draws.",
        tables=[
            ProbeTable(title="rsum", columns=columns, rows=rsums),
            ProbeTable(title="Captions with an error", columns=columns, rows=counts),
        ],
        samples=samples,
    )


def draw_errors(captions: list[CaptionEntry], error: GraphError, count: int, seed: str) -> Changed:
    """Draw `count` captions and give each an error; fewer if fewer graphs have room for the
    error. The captions are in the order of the draw."""
    changed: Changed = {}
    for row in Random(seed).sample(range(len(captions)), len(captions)):
        if len(changed) == count:
            break
        caption = captions[row]
        graph = error(caption.graph, Random(f"{seed} {caption.id}"))
        if graph is not None:
            changed[row] = replace(caption, graph=graph)
    return changed


def _rsum(probed: ProbedModel, changed: Changed, count: int) -> float:
    """The rsum with the first `count` changed captions in place of the original captions."""
    captions = list(probed.captions)
    for row in list(changed)[:count]:
        captions[row] = changed[row]
    return probed.rsum(probed.embed(captions))


def _samples(name: str, captions: list[CaptionEntry], changed: Changed) -> list[results.GraphError]:
    return [
        results.GraphError(
            error=name,
            caption_id=captions[row].id,
            caption=captions[row].text,
            before=Graph.model_validate(captions[row].graph.to_dict()),
            after=Graph.model_validate(changed[row].graph.to_dict()),
        )
        for row in list(changed)[:_SAMPLES]
    ]
