"""From a blueprint to a scene: clusters of objects are placed on the ground or in the sky."""

from __future__ import annotations

from manymatch.scenes.cluster_layout import HANGS_ON_OBJECT, cluster_boxes
from manymatch.scenes.geometry import all_relations
from manymatch.scenes.world import Blueprint, Box, Scene, Spot, Thing, Tie, around

GROUND = {"front": 0.93, "back": 0.70}
"""Height of the feet of objects in each row; 0 is the top of the image."""
MARGIN = 0.02


def lay_out(blueprint: Blueprint) -> Scene | None:
    """Return the scene of a blueprint, or None if it does not fit legibly into the image."""
    clusters = [cluster_boxes(blueprint, spot) for spot in blueprint.spots]
    placed = _place(blueprint.spots, clusters)
    if placed is None or not _legible(blueprint, placed):
        return None
    rows = {spot.root: spot.row for spot in blueprint.spots}
    things = []
    for index, spec in enumerate(blueprint.specs):
        root, boxes = next((root, boxes) for root, boxes in placed if index in boxes)
        row = rows[root] if rows[root] != "sky" and _on_ground(blueprint, index) else None
        box = Box(*(round(edge, 4) for edge in boxes[index]))
        things.append(Thing(spec, box, row))
    relations = all_relations(things, blueprint.ties)
    return Scene(blueprint.background, tuple(things), blueprint.ties, relations, blueprint.decor)


def _on_ground(blueprint: Blueprint, index: int) -> bool:
    """Return whether an object stands on the ground, as roots do and objects beside them."""
    for tie in blueprint.ties:
        if tie.relation in HANGS_ON_OBJECT and tie.subject == index:
            return tie.relation == "below"
        if tie.relation in ("hold", "wear", "fly") and tie.object == index:
            return False
    return True


Placed = list[tuple[int, dict[int, Box]]]


def _place(spots: tuple[Spot, ...], clusters: list[dict[int, Box]]) -> Placed | None:
    front = [i for i, spot in enumerate(spots) if spot.row == "front"]
    hulls = [around(list(boxes.values())) for boxes in clusters]
    free = 1.0 - 2 * MARGIN - sum(hulls[i].width for i in front)
    if free < 0.02:
        return None
    placed, edge = [], MARGIN
    for i, spot in enumerate(spots):
        if spot.row == "front":
            edge += spot.x * free
            dx, dy = edge - hulls[i].x1, GROUND["front"]
            edge += hulls[i].width
        elif spot.row == "back":
            dx, dy = _kept_inside(spot.x, hulls[i]), GROUND["back"]
        else:
            dx, dy = _kept_inside(spot.x, hulls[i]), spot.y
        placed.append((spot.root, {k: box.moved(dx, dy) for k, box in clusters[i].items()}))
    return placed


def _kept_inside(x: float, hull: Box) -> float:
    return min(max(x, MARGIN - hull.x1), 1 - MARGIN - hull.x2)


def _legible(blueprint: Blueprint, placed: Placed) -> bool:
    """Return whether all objects are inside the image, visible, and of a fitting size."""
    hulls = [around(list(boxes.values())) for _, boxes in placed]
    if any(hull.y1 < MARGIN or hull.y2 > 1 or hull.x1 < 0 or hull.x2 > 1 for hull in hulls):
        return False
    rows = [spot.row for spot in blueprint.spots]
    boxes = {k: box for _, cluster in placed for k, box in cluster.items()}
    return (
        all(_goes_under(boxes, tie) for tie in blueprint.ties)
        and all(_stands_firm(boxes, tie) for tie in blueprint.ties)
        and not any(
            _hides(rows[i], rows[j], hulls[i], hulls[j])
            for i in range(len(rows))
            for j in range(len(rows))
            if i != j
        )
    )


def _goes_under(boxes: dict[int, Box], tie: Tie) -> bool:
    under, table = boxes[tie.subject], boxes[tie.object]
    return tie.relation != "below" or (
        under.width <= 0.72 * table.width and under.height <= 0.74 * table.height
    )


def _stands_firm(boxes: dict[int, Box], tie: Tie) -> bool:
    """Return whether a load is narrower than its carrier, visible in it, and above the ground."""
    load, carrier = boxes[tie.subject], boxes[tie.object]
    if tie.relation == "in" and load.y1 > carrier.y1 + 0.05 * carrier.height:
        return False
    if tie.relation in ("on", "in") and load.width > 0.9 * carrier.width:
        return False
    return tie.relation not in ("on", "in", "ride") or load.y2 <= carrier.y2 + 0.01


def _hides(row: str, other: str, hull: Box, behind: Box) -> bool:
    """Return whether a cluster in `row` covers too much of a cluster in `other`."""
    if row == other == "front":
        return False
    if "sky" in (row, other) or row == other:
        return hull.meets(behind)
    covered = min(hull.x2, behind.x2) - max(hull.x1, behind.x1)
    return row == "front" and hull.y1 < behind.y2 and covered > 0.55 * behind.width
