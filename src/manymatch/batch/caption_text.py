"""Which texts are valid captions."""

import re
import unicodedata
from html.entities import html5

MAX_CHARACTERS = 2000
"""Maximum length of a caption. Captions of the usual data sets have fewer than 500 characters."""

_TAGS = (
    "a|abbr|article|b|big|blockquote|body|br|center|code|div|em|font|form|h[1-6]|head|hr|html|i"
    "|iframe|img|li|ol|p|pre|script|small|span|strong|style|sub|sup|table|tbody|td"
    "|th|thead|tr|tt|u|ul"
)
_MARKUP = re.compile(rf"</?(?:{_TAGS})(?:[\s/][^<>]*)?>|<!(?:--|doctype)", re.I)
_ENTITY = re.compile(r"&(?:(\w{2,32};)|#\d{1,7};|#x[0-9a-f]{1,6};)", re.I)
_ENDS = re.compile(r"</?s>|<(?:start|end|bos|sos|eos|pad)>", re.I)
"""Signs of the beginning and the end of a sentence, which are no words."""
_PLACEHOLDER = re.compile(r"<([^\W\d_][\w-]*)>")


def has_markup(text: str) -> bool:
    """Whether a caption has a tag or a character of HTML. Placeholders such as `<PERSON>`, which
    published captions have for names, are none."""
    if "<" in text and _MARKUP.search(text):
        return True
    entities = _ENTITY.finditer(text) if "&" in text else ()
    return any(entity[1] is None or entity[1] in html5 for entity in entities)


def placeholders_as_words(text: str) -> str:
    """Return `text` with a word for each placeholder ("person" for `<PERSON>`), without `<s>`."""
    if "<" not in text:
        return text
    text = _ENDS.sub(" ", text)
    return _PLACEHOLDER.sub(lambda match: f" {match[1].lower().replace('_', ' ')} ", text)


def caption_fault(text: object) -> str | None:
    """Why `text` is not a valid caption, or None if it is. Tables of other programs have numbers,
    None and NaN among their texts."""
    if not isinstance(text, str):
        return f"{type(text).__name__} instead of a text: {shown(repr(text))}"
    if not any(sign.isprintable() and sign != " " for sign in text):  # also signs of no width
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
