"""Damaged texts: the strategies of hypothesis for files of settings and of stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

SIGNS = "[ ] { } - : ? , # | > --- %YAML ' = 0o9 true null ~ -1 .nan .inf 1e999 1:1:1.5 2026-13-01"
YAML = ["&a ", "*a", "&a [*a, *a]", "<<: *a", "!!int ''", "!!bool x", "!x ", "- ", "? ", ": "]
LONG = ["[" * 3000, "{a: " * 2000, "- " * 3000, "x" * 3000, "9" * 5000, "0x" + "f" * 5000]
CHARACTERS = list('\n\t\0\x85\x1b\u202e\ud800\ufeff\u2028"/é')
FRAGMENTS = st.sampled_from([*SIGNS.split(), *YAML, *LONG, *CHARACTERS, "../../x"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**60, max_value=2**70),
    st.floats(allow_subnormal=False),  # a library may have turned them off
    st.text(max_size=20),
    st.dates(),
    FRAGMENTS.filter(lambda text: text.isprintable()),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """`text` with pieces replaced by fragments."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.integers(0, 30))
        text = text[:start] + draw(FRAGMENTS | st.text(max_size=10)) + text[end:]
    return text.encode("utf-8", "surrogatepass")


@st.composite
def changed(draw: st.DrawFn, stated: Any) -> Any:
    """`stated` with one value replaced, at any depth, or one key added."""
    if not isinstance(stated, dict | list) or not stated or draw(st.integers(0, 3)) == 0:
        return draw(VALUES)
    if isinstance(stated, list):
        at = draw(st.integers(0, len(stated) - 1))
        return [*stated[:at], draw(changed(stated[at])), *stated[at + 1 :]]
    key = draw(st.sampled_from(sorted(stated)) | st.text(max_size=8))
    return {**stated, key: draw(changed(stated.get(key)))}


def texts(stated: dict[str, Any], write: Callable[[Any], str]) -> st.SearchStrategy[bytes]:
    """Damaged files with the content `stated`."""
    return damaged(write(stated)) | changed(stated).map(
        lambda value: write(value).encode("utf-8", "surrogatepass")
    )
