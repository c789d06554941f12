"""How much errors of the parser lower the recalls of a trained model.

An error puts one word, attribute or edge of a scene graph out of place.

Pham et al., CORA, CVPR 2024, section 9 of the supplement.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean

from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.scene_graph import MAX_ATTRIBUTES, Relation, SceneGraph
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.experiments.probes.probed_model import ProbedModel
from manymatch.results import probes as results
from manymatch.results.probes import Cell, Probe, ProbeTable
from manymatch.results.retrieval import Graph

PARTS = (0.1, 0.2, 0.3)
REPEATS = 3
"""Number of draws of errors; the rsums are means over the draws."""

_SAMPLES = 3

Changed = dict[int, CaptionEntry]
"""Captions whose graph has an error, by row."""

GraphError = Callable[[SceneGraph, Random], SceneGraph | None]
"""The graph with one error, or None if the graph has no room for this error."""


def drop_word(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """Drop one word of a phrase, or the whole phrase if it has one word. The only object stays."""
    places = [
        *((graph.objects, row, None, text) for row, text in enumerate(graph.objects)),
        *(
            (graph.attributes, row, position, text)
            for row, texts in enumerate(graph.attributes)
            for position, text in enumerate(texts)
        ),
        *((graph.relations, row, None, edge.label) for row, edge in enumerate(graph.relations)),
    ]
    words = [(*place, word) for place in places for word in range(len(place[-1].split()))]
    if len(graph.objects) == 1 and len(graph.objects[0].split()) == 1:
        words = words[1:]
    if not words:
        return None
    part, row, position, text, word = rng.choice(words)
    left = " ".join(text.split()[:word] + text.split()[word + 1 :])
    if part is graph.relations:
        kept = [replace(graph.relations[row], label=left)] if left else []
        return replace(graph, relations=_changed(graph.relations, row, *kept))
    if position is not None:
        texts = _changed(graph.attributes[row], position, *([left] if left else []))
        return replace(graph, attributes=_changed(graph.attributes, row, texts))
    if left:
        return replace(graph, objects=_changed(graph.objects, row, left))
    return SceneGraph(
        objects=_changed(graph.objects, row),
        names=_changed(graph.names, row),
        attributes=_changed(graph.attributes, row),
        relations=tuple(
            Relation(
                edge.subject - (edge.subject > row), edge.label, edge.object - (edge.object > row)
            )
            for edge in graph.relations
            if row not in (edge.subject, edge.object)
        ),
    )


def move_attribute(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """Give an attribute to another object."""
    free = [row for row, texts in enumerate(graph.attributes) if len(texts) < MAX_ATTRIBUTES]
    moves = [
        (row, position, other)
        for row, texts in enumerate(graph.attributes)
        for position in range(len(texts))
        for other in free
        if other != row
    ]
    if not moves:
        return None
    row, position, other = rng.choice(moves)
    attributes = [list(texts) for texts in graph.attributes]
    attributes[other].append(attributes[row].pop(position))
    return replace(graph, attributes=tuple(map(tuple, attributes)))


def move_edge(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """Move one end of a relation to another object, or reverse the relation of the only two."""
    moves = []
    for position, edge in enumerate(graph.relations):
        subject, object_ = edge.subject, edge.object
        others = [row for row in range(len(graph.objects)) if row not in (subject, object_)]
        moves += [(position, row, object_) for row in others]
        moves += [(position, subject, row) for row in others]
        if not others and subject != object_:
            moves.append((position, object_, subject))
    if not moves:
        return None
    position, subject, object_ = rng.choice(moves)
    moved = replace(graph.relations[position], subject=subject, object=object_)
    return replace(graph, relations=_changed(graph.relations, position, moved))


def any_error(graph: SceneGraph, rng: Random) -> SceneGraph | None:
    """One of the three errors, with equal probability among those that the graph has room for."""
    for error in rng.sample(ONE_KIND, len(ONE_KIND)):
        changed = error(graph, rng)
        if changed is not None:
            return changed
    return None


ONE_KIND: Sequence[GraphError] = (drop_word, move_attribute, move_edge)


def _changed(items: tuple, row: int, *new: object) -> tuple:
    """The items with `new` in place of the item in this row."""
    return (*items[:row], *new, *items[row + 1 :])


ERRORS: dict[str, GraphError] = {
    "any": any_error,
    "a word dropped": drop_word,
    "an attribute moved": move_attribute,
    "an edge moved": move_edge,
}


def parse_errors(probed: ProbedModel) -> Probe[results.GraphError]:
    """The rsum with one error in the graphs of 10%, 20% and 30% of the captions. The same captions
    get the same errors for every model. The captions of the 10% are among those of the 20%."""
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
