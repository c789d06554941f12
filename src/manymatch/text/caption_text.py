"""Which texts are valid captions."""

from __future__ import annotations

import unicodedata

MAX_CHARACTERS = 2000
"""Maximum length of a caption. Captions of the usual datasets have fewer than 500 characters."""


def caption_fault(text: object) -> str | None:
    """Return why `text` is not a valid caption, or None if it is.

    Tables of other programs have numbers, None and NaN among their texts.
    """
    if not isinstance(text, str):
        return f"{type(text).__name__} instead of a text: {shown(repr(text))}"
    if not text.strip():
        return "empty caption"
    if text[:2] in ("b'", 'b"') and text.rstrip()[-1:] == text[1]:
        return f"bytes that were printed instead of decoded: {shown(text)}. Remove the b''"
    if len(text) > MAX_CHARACTERS:
        return f"a caption of {len(text):,} characters (at most {MAX_CHARACTERS:,})"
    if not text.isascii() or not text.isprintable():
        # A control character, half a surrogate pair, or U+FFFD.
        categories = ("Cc", "Cs")
        signs = (s for s in text if unicodedata.category(s) in categories or s == "\ufffd")
        invalid = next(signs, None)
        return f"character U+{ord(invalid):04X} in a caption: {shown(text)}" if invalid else None
    return None


def shown(text: str) -> str:
    """Return the beginning of `text` in printable characters, for a message."""
    return ascii(text if len(text) <= 60 else text[:60] + "...")
