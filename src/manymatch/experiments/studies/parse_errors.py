"""What errors of the parser cost a trained model.

Pham et al., CORA, CVPR 2024, section 9 of the supplement.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from statistics import fmean
from typing import Any

from manymatch.experiments.studies.findings import Cell, Findings, Table, shown
from manymatch.experiments.studies.graph_errors import (
    GraphError,
    any_error,
    drop_word,
    move_attribute,
    move_edge,
)
from manymatch.experiments.studies.subject import Subject
from manymatch.shards.sample import CaptionEntry

ERRORS: dict[str, GraphError] = {
    "any": any_error,
    "a word dropped": drop_word,
    "an attribute moved": move_attribute,
    "an edge moved": move_edge,
}
PARTS = (0.1, 0.2, 0.3)
REPEATS = 3
"""How often errors are drawn; the rsums are means."""

_SAMPLES = 3

Changed = dict[int, CaptionEntry]
"""Captions with an error in their graphs, by row."""


def parse_errors(subject: Subject, seed: int = 0) -> Findings:
    """The rsum with one error in the graphs of 10%, 20% and 30% of the captions.

    The same captions get the same errors for every model, and those of 10% are among the 20%.
    """
    captions = subject.captions
    wanted = [round(part * len(captions)) for part in PARTS]
    whole = shown(subject.rsum(subject.found.texts))
    rsums: list[list[Cell]] = []
    counts: list[list[Cell]] = []
    samples: list[dict[str, Any]] = []
    for name, error in ERRORS.items():
        draws = [
            with_errors(captions, error, wanted[-1], f"{seed + repeat} {name}")
            for repeat in range(REPEATS)
        ]
        rsums.append([name, whole, *(_mean_rsum(subject, draws, count) for count in wanted)])
        counts.append([name, 0, *(min(count, len(draws[0])) for count in wanted)])
        samples += _samples(name, captions, draws[0])
    columns = ["Error", "none", *(f"{part:.0%}" for part in PARTS)]
    return Findings(
        "Errors of the parser",
        "One error in the scene graphs of so many of the captions; where fewer have room for such "
        f"an error, all that have. Means over {REPEATS} draws.",
        [Table("rsum", columns, rsums), Table("Captions with an error", columns, counts)],
        samples,
    )


def with_errors(captions: list[CaptionEntry], error: GraphError, count: int, seed: str) -> Changed:
    """`count` captions with an error, in the order in which they are drawn; fewer, if fewer have
    room for it."""
    changed: Changed = {}
    for row in Random(seed).sample(range(len(captions)), len(captions)):
        if len(changed) == count:
            break
        caption = captions[row]
        graph = error(caption.graph, Random(f"{seed} {caption.id}"))
        if graph is not None:
            changed[row] = replace(caption, graph=graph)
    return changed


def _mean_rsum(subject: Subject, draws: list[Changed], count: int) -> float:
    return shown(fmean(_rsum(subject, changed, count) for changed in draws))


def _rsum(subject: Subject, changed: Changed, count: int) -> float:
    """With the first `count` of the changed captions in place."""
    captions = list(subject.captions)
    for row in list(changed)[:count]:
        captions[row] = changed[row]
    return subject.rsum(subject.embed(captions))


def _samples(name: str, captions: list[CaptionEntry], changed: Changed) -> list[dict[str, Any]]:
    return [
        {
            "error": name,
            "caption_id": captions[row].id,
            "caption": captions[row].text,
            "before": captions[row].graph.to_dict(),
            "after": changed[row].graph.to_dict(),
        }
        for row in list(changed)[:_SAMPLES]
    ]
