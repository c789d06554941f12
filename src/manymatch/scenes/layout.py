"""From a blueprint to a scene: clusters of tied objects are placed on the ground or in the sky."""

from itertools import permutations

from manymatch.scenes.kinds import KINDS, PEOPLE, SIZES
from manymatch.scenes.world import (
    Blueprint,
    Box,
    Scene,
    Spec,
    Spot,
    Thing,
    Tie,
    all_relations,
    enclosing_box,
)

HANGS_ON_OBJECT = ("ride", "on", "in", "below")
STANDS_BESIDE = {"chase": 0.10, "pull": -0.07, "push": 0.005, "kick": 0.01, "walk": 0.06}
"""Gap between subject and object on the ground. A negative gap is behind the subject."""


def extent(spec: Spec, posed: str | None = None) -> tuple[float, float]:
    """Return width and height of an object in its state, or in the state `posed` of a relation."""
    kind = KINDS[spec.kind]
    state = posed or spec.state
    width, height = kind.extents.get(state, kind.extent) if state else kind.extent
    factor = SIZES[spec.size] if spec.size else 1.0
    return width * factor, height * factor


def cluster_boxes(blueprint: Blueprint, spot: Spot) -> dict[int, Box]:
    """Return the box of each object of a cluster. The feet of its first object are at (0, 0)."""
    root = blueprint.specs[spot.root]
    width, height = extent(root)
    boxes = {spot.root: Box(-width / 2, -height, width / 2, 0.0)}
    queue = [spot.root]
    while queue:
        anchor = queue.pop(0)
        for tie in blueprint.ties:
            carrier, other = tie.subject, tie.object
            if tie.relation in HANGS_ON_OBJECT:
                carrier, other = other, carrier
            if carrier == anchor and other not in boxes:
                boxes[other] = _attach(tie.relation, blueprint, anchor, other, boxes[anchor])
                queue.append(other)
    return boxes


def _attach(relation: str, blueprint: Blueprint, anchor: int, other: int, at: Box) -> Box:
    """Return the box of `other`, which `relation` attaches to the object in the box `at`."""
    holder, spec = blueprint.specs[anchor], blueprint.specs[other]
    facing, size = holder.facing, extent(spec)
    if relation in STANDS_BESIDE:
        gap = STANDS_BESIDE[relation]
        side = facing if gap >= 0 else -facing
        return _box(at.cx + side * (at.width / 2 + abs(gap) + size[0] / 2), at.y2, size)
    if relation == "hold":
        return _held(at, holder, spec)
    if relation == "wear":
        return _worn(at, holder, spec)
    if relation == "fly":
        return _box(at.cx + facing * 0.2, at.y1 - 0.07, size)
    if relation == "ride":
        saddle, back = (0.72, 0.04) if holder.kind == "horse" else (0.82, 0.12)
        place = at.cx - facing * back * at.width, at.y1 + saddle * at.height
        return _box(*place, extent(spec, "sitting"))
    if relation == "below":
        return _box(at.cx, at.y2, size)
    if relation == "on":
        surface = at.y1 + (KINDS[holder.kind].top or 0.0) * at.height
        # The hips of seated people touch the seat, and their legs hang down.
        sunk = 0.33 * size[1] if spec.kind in PEOPLE else 0.02 if holder.kind == "tree" else 0.01
        return _box(at.cx, surface + sunk, size)
    if holder.kind == "boat":
        return _box(at.cx - facing * 0.2 * at.width, at.y2 - 0.16 * at.height, size)
    depth = {"box": 0.62, "basket": 0.66, "wagon": 0.55}[holder.kind]
    return _box(at.cx, at.y1 + depth * at.height, size)


def _box(cx: float, bottom: float, size: tuple[float, float]) -> Box:
    return Box(cx - size[0] / 2, bottom - size[1], cx + size[0] / 2, bottom)


def _held(at: Box, holder: Spec, spec: Spec) -> Box:
    x = at.cx + holder.facing * 0.46 * at.width
    y = at.y1 + (0.62 if holder.state == "sitting" else 0.5) * at.height
    width, height = extent(spec)
    if spec.kind == "umbrella" and spec.state == "open":
        # The canopy is above the head, so the stick may be long.
        return Box(x - width / 2, at.y1 - 0.1, x + width / 2, y + 0.02)
    low = {"balloon": 0.0, "flower": 0.03, "basket": height, "umbrella": height - 0.04}
    aside = 0.0 if spec.kind in low else width * 0.3
    bottom = y + low.get(spec.kind, height / 2)
    return _box(x + holder.facing * aside, bottom, (width, height))


def _worn(at: Box, holder: Spec, spec: Spec) -> Box:
    seated = holder.state == "sitting"
    if spec.kind != "hat":
        bottom = {"shirt": 0.6, "dress": 0.74}[spec.kind]
        if seated:
            bottom += 0.06
        half, top = at.width * 0.27, at.y1 + 0.25 * at.height
        return Box(at.cx - half, top, at.cx + half, at.y1 + bottom * at.height)
    if holder.kind in PEOPLE:
        x, width, depth = at.cx, min(0.62 * at.width, 0.3 * at.height), 0.07 * at.height
    else:
        across = 0.14 if seated else 0.36 if holder.kind in ("horse", "cow") else 0.32
        x = at.cx + holder.facing * across * at.width
        width, depth = 0.36 * at.width, 0.1 * at.height
    return _box(x, at.y1 + depth, (width, width * 0.62))


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
        row = rows[root] if rows[root] != "sky" and _grounded(blueprint, index) else None
        box = Box(*(round(edge, 4) for edge in boxes[index]))
        things.append(Thing(spec, box, row))
    relations = all_relations(things, blueprint.ties)
    return Scene(blueprint.background, tuple(things), blueprint.ties, relations, blueprint.decor)


def _grounded(blueprint: Blueprint, index: int) -> bool:
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
    hulls = [enclosing_box(list(boxes.values())) for boxes in clusters]
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
    hulls = [enclosing_box(list(boxes.values())) for _, boxes in placed]
    if any(hull.y1 < MARGIN or hull.y2 > 1 or hull.x1 < 0 or hull.x2 > 1 for hull in hulls):
        return False
    rows = [spot.row for spot in blueprint.spots]
    boxes = {k: box for _, cluster in placed for k, box in cluster.items()}
    return all(_holds_up(boxes, tie) for tie in blueprint.ties) and not any(
        _hides(rows[i], rows[j], hulls[i], hulls[j]) for i, j in permutations(range(len(rows)), 2)
    )


def _holds_up(boxes: dict[int, Box], tie: Tie) -> bool:
    """Return whether a load is narrower than its carrier, visible in it, and above the ground, and
    whether what is below a table fits there."""
    load, carrier = boxes[tie.subject], boxes[tie.object]
    if tie.relation == "below":
        return load.width <= 0.72 * carrier.width and load.height <= 0.74 * carrier.height
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
