"""The boxes of one cluster of tied objects, with the feet of its first object at (0, 0)."""

from __future__ import annotations

from manymatch.scenes.kinds import KINDS, PEOPLE, SIZES
from manymatch.scenes.world import Blueprint, Box, Spec, Spot, Tie

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
    """Return the boxes of all objects of the cluster at `spot`, by object."""
    root = blueprint.specs[spot.root]
    width, height = extent(root)
    boxes = {spot.root: Box(-width / 2, -height, width / 2, 0.0)}
    queue = [spot.root]
    while queue:
        anchor = queue.pop(0)
        for tie in blueprint.ties:
            other = _attached(tie, anchor)
            if other is not None and other not in boxes:
                boxes[other] = _attach(tie.relation, blueprint, anchor, other, boxes[anchor])
                queue.append(other)
    return boxes


def _attached(tie: Tie, anchor: int) -> int | None:
    """Return the object that `tie` attaches to `anchor`, or None."""
    if tie.relation in HANGS_ON_OBJECT:
        return tie.subject if tie.object == anchor else None
    return tie.object if tie.subject == anchor else None


def _attach(relation: str, blueprint: Blueprint, anchor: int, other: int, at: Box) -> Box:
    holder, spec = blueprint.specs[anchor], blueprint.specs[other]
    if relation in STANDS_BESIDE:
        return _beside(at, holder.facing, extent(spec), STANDS_BESIDE[relation])
    attach = {
        "hold": _in_hand,
        "wear": _worn,
        "fly": _aloft,
        "ride": _riding,
        "on": _on_top,
        "in": _inside,
        "below": _underneath,
    }[relation]
    return attach(at, holder, spec)


def _box(cx: float, bottom: float, size: tuple[float, float]) -> Box:
    return Box(cx - size[0] / 2, bottom - size[1], cx + size[0] / 2, bottom)


def _beside(at: Box, facing: int, size: tuple[float, float], gap: float) -> Box:
    side = facing if gap >= 0 else -facing
    offset = at.width / 2 + abs(gap) + size[0] / 2
    return _box(at.cx + side * offset, at.y2, size)


def hand(at: Box, facing: int, state: str | None) -> tuple[float, float]:
    """Return where a person in box `at` holds objects."""
    return at.cx + facing * 0.46 * at.width, at.y1 + (
        0.62 if state == "sitting" else 0.5
    ) * at.height


def _in_hand(at: Box, holder: Spec, spec: Spec) -> Box:
    x, y = hand(at, holder.facing, holder.state)
    width, height = extent(spec)
    if spec.kind == "umbrella" and spec.state == "open":
        # The canopy is above the head, so the stick may be long.
        top = at.y1 - 0.1
        return Box(x - width / 2, top, x + width / 2, y + 0.02)
    low = {"balloon": 0.0, "flower": 0.03, "basket": height, "umbrella": height - 0.04}
    bottom = y + low.get(spec.kind, height / 2)
    return _box(
        x + holder.facing * (0.0 if spec.kind in low else width * 0.3), bottom, (width, height)
    )


def _worn(at: Box, holder: Spec, spec: Spec) -> Box:
    if spec.kind == "hat":
        x, width, depth = _head(at, holder)
        return _box(x, at.y1 + depth, (width, width * 0.62))
    bottom = {"shirt": 0.6, "dress": 0.74}[spec.kind]
    if holder.state == "sitting":
        bottom += 0.06
    half = at.width * 0.27
    return Box(at.cx - half, at.y1 + 0.25 * at.height, at.cx + half, at.y1 + bottom * at.height)


def _head(at: Box, holder: Spec) -> tuple[float, float, float]:
    """Return the centre and width of the hat of `holder`, and how far it covers the head."""
    if holder.kind in PEOPLE:
        return at.cx, min(0.62 * at.width, 0.3 * at.height), 0.07 * at.height
    across = {"horse": 0.36, "cow": 0.36}.get(holder.kind, 0.32)
    if holder.state == "sitting":
        across = 0.14
    return at.cx + holder.facing * across * at.width, 0.36 * at.width, 0.1 * at.height


def _aloft(at: Box, holder: Spec, spec: Spec) -> Box:
    return _box(at.cx + holder.facing * 0.2, at.y1 - 0.07, extent(spec))


def _riding(at: Box, mount: Spec, spec: Spec) -> Box:
    width, height = extent(spec, "sitting")
    saddle, back = (0.72, 0.04) if mount.kind == "horse" else (0.82, 0.12)
    cx = at.cx - mount.facing * back * at.width
    return _box(cx, at.y1 + saddle * at.height, (width, height))


def _on_top(at: Box, carrier: Spec, spec: Spec) -> Box:
    surface = at.y1 + (KINDS[carrier.kind].top or 0.0) * at.height
    size = extent(spec)
    if spec.kind in PEOPLE:
        # The hips of seated people touch the seat, and their legs hang down.
        return _box(at.cx, surface + 0.33 * size[1], size)
    sunk = {"tree": 0.02, "house": 0.01, "table": 0.01}.get(carrier.kind, 0.01)
    return _box(at.cx, surface + sunk, size)


def _inside(at: Box, carrier: Spec, spec: Spec) -> Box:
    size = extent(spec)
    if carrier.kind == "boat":
        return _box(at.cx - carrier.facing * 0.2 * at.width, at.y2 - 0.16 * at.height, size)
    depth = {"box": 0.62, "basket": 0.66, "wagon": 0.55}[carrier.kind]
    return _box(at.cx, at.y1 + depth * at.height, size)


def _underneath(at: Box, carrier: Spec, spec: Spec) -> Box:
    return _box(at.cx, at.y2, extent(spec))
