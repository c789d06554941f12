"""What a caption's text may be."""

from __future__ import annotations

import unicodedata

MAX_CHARACTERS = 2000
"""The longest caption taken; those of the usual datasets stay under 500."""


def caption_fault(text: str) -> str | None:
    """Why `text` is no caption, in words."""
    if not text.strip():
        return "empty caption"
    if text[:2] in ("b'", 'b"') and text.rstrip()[-1:] == text[1]:
        return f"bytes that were printed instead of decoded: {shown(text)}; take off the b''"
    if len(text) > MAX_CHARACTERS:
        return f"a caption of {len(text):,} characters (at most {MAX_CHARACTERS:,})"
    if not text.isascii() or not text.isprintable():
        odd = next((sign for sign in text if _is_odd(sign)), None)
        return f"character U+{ord(odd):04X} in a caption: {shown(text)}" if odd else None
    return None


def shown(text: str) -> str:
    """The beginning of `text`, as a message may hold it."""
    return ascii(text if len(text) <= 60 else text[:60] + "...")


def _is_odd(sign: str) -> bool:
    """Control characters, halves of surrogate pairs, and what stands for an undecodable byte."""
    return unicodedata.category(sign) in ("Cc", "Cs") or sign == "\ufffd"
