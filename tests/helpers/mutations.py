"""Damaged copies of valid files: what a bad disk, a cut connection or an attacker makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

EXTREMES = [
    number.to_bytes(size, order)
    for size in (1, 2, 4, 8)
    for order in ("little", "big")
    for number in (0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1)
]
"""Numbers at which sizes and positions overflow."""


@st.composite
def mutated(draw: st.DrawFn, seeds: Sequence[bytes], most: int = 6) -> bytes:
    """One of `seeds` after up to `most` changes."""
    content = bytearray(draw(st.sampled_from(seeds)))
    for change in draw(st.lists(st.sampled_from(_CHANGES), max_size=most)):
        if content:
            change(draw, content, seeds)
    return bytes(content)


def _position(draw: st.DrawFn, content: bytearray) -> int:
    """Any position, but half of the time near one of the ends, where headers are."""
    last = len(content) - 1
    near = draw(st.sampled_from([last, min(last, 512), min(last, 64)]))
    at = draw(st.integers(0, near))
    return last - at if draw(st.booleans()) and near < last else at


def _flip(draw: st.DrawFn, content: bytearray, seeds: Sequence[bytes]) -> None:
    content[_position(draw, content)] ^= 1 << draw(st.integers(0, 7))


def _set(draw: st.DrawFn, content: bytearray, seeds: Sequence[bytes]) -> None:
    value = draw(st.sampled_from(EXTREMES))
    at = _position(draw, content)
    content[at : at + len(value)] = value


def _truncate(draw: st.DrawFn, content: bytearray, seeds: Sequence[bytes]) -> None:
    del content[_position(draw, content) :]


def _remove(draw: st.DrawFn, content: bytearray, seeds: Sequence[bytes]) -> None:
    at = _position(draw, content)
    del content[at : at + draw(st.integers(1, 600))]


def _zero(draw: st.DrawFn, content: bytearray, seeds: Sequence[bytes]) -> None:
    at = _position(draw, content)
    length = len(content[at : at + draw(st.sampled_from([1, 8, 512, 1024]))])
    content[at : at + length] = bytes(length)


def _repeat(draw: st.DrawFn, content: bytearray, seeds: Sequence[bytes]) -> None:
    at = _position(draw, content)
    length = draw(st.integers(1, 600))
    content[at:at] = content[at : at + length] * draw(st.integers(1, 50))


def _splice(draw: st.DrawFn, content: bytearray, seeds: Sequence[bytes]) -> None:
    """Overwrite or insert a part of a seed."""
    other = draw(st.sampled_from(seeds))
    start = _position(draw, bytearray(other)) if other else 0
    part = other[start : start + draw(st.integers(1, 2048))]
    at = _position(draw, content)
    content[at : at + (len(part) if draw(st.booleans()) else 0)] = part


_CHANGES: list[Callable[[st.DrawFn, bytearray, Sequence[bytes]], None]] = [
    _flip,
    _set,
    _truncate,
    _remove,
    _zero,
    _repeat,
    _splice,
]
