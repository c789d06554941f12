"""Damaged copies of valid files: what a bad disk, a cut connection or an attacker makes of them."""

from hypothesis import strategies as st

EXTREMES = [
    number.to_bytes(size, order)
    for size in (1, 2, 4, 8)
    for order in ("little", "big")
    for number in (0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1)
]
"""Numbers at which sizes and positions overflow."""


CHANGES = ("flip", "set", "truncate", "remove", "zero", "repeat", "splice")


@st.composite
def mutated(draw, seeds, most=6):
    """One of `seeds` after up to `most` changes."""
    content = bytearray(draw(st.sampled_from(seeds)))
    for change in draw(st.lists(st.sampled_from(CHANGES), max_size=most)):
        if not content:
            break
        at, size = _position(draw, content), draw(st.integers(1, 600))
        if change == "flip":
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif change == "set":
            value = draw(st.sampled_from(EXTREMES))
            content[at : at + len(value)] = value
        elif change == "truncate":
            del content[at:]
        elif change == "remove":
            del content[at : at + size]
        elif change == "zero":
            length = len(content[at : at + draw(st.sampled_from([1, 8, 512, 1024]))])
            content[at : at + length] = bytes(length)
        elif change == "repeat":
            content[at:at] = content[at : at + size] * draw(st.integers(1, 50))
        else:  # overwrite or insert a part of a seed
            other = draw(st.sampled_from(seeds))
            start = _position(draw, bytearray(other)) if other else 0
            part = other[start : start + draw(st.integers(1, 2048))]
            content[at : at + (len(part) if draw(st.booleans()) else 0)] = part
    return bytes(content)


def _position(draw, content):
    """Any position, but half of the time near one of the ends, where headers are."""
    last = len(content) - 1
    near = draw(st.sampled_from([last, min(last, 512), min(last, 64)]))
    at = draw(st.integers(0, near))
    return last - at if draw(st.booleans()) and near < last else at
