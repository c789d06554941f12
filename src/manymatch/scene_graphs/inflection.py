"""The English present participle, so that "runs", "ran" and "is running" say the same."""

from __future__ import annotations

_VOWELS = frozenset("aeiou")
_IRREGULAR = {"lie": "lying", "tie": "tying", "die": "dying"}


def present_participle(lemma: str) -> str:
    """ "run" -> "running", "ride" -> "riding", "sit" -> "sitting", "open" -> "opening"."""
    if lemma in _IRREGULAR:
        return _IRREGULAR[lemma]
    if lemma.endswith("e") and not lemma.endswith(("ee", "oe", "ye")) and len(lemma) > 2:
        return lemma[:-1] + "ing"
    return lemma + lemma[-1] * _doubles(lemma) + "ing"


def _doubles(lemma: str) -> bool:
    """Whether the last consonant is written twice: one syllable that ends in one vowel and it."""
    if len(lemma) < 3 or lemma[-1] in "aeiouwxy" or lemma[-2] not in _VOWELS:
        return False
    start = lemma.replace("qu", "q")[:-2]
    return not _VOWELS & set(start)
