"""English verb forms: the participle from the base, and bases that spaCy gets wrong."""

from __future__ import annotations

_VOWELS = frozenset("aeiou")
_IRREGULAR = {"lie": "lying", "tie": "tying", "die": "dying"}


def present_participle(lemma: str) -> str:
    """ "run" -> "running", "ride" -> "riding", "open" -> "opening".

    Attributes take this form, so that "runs", "ran" and "is running" say the same.
    """
    if lemma in _IRREGULAR:
        return _IRREGULAR[lemma]
    if lemma.endswith("e") and not lemma.endswith(("ee", "oe", "ye")) and len(lemma) > 2:
        return lemma[:-1] + "ing"
    return lemma + lemma[-1] * _doubles(lemma) + "ing"


def verb_base(word: str, lemma: str) -> str:
    """The base of `word`: `lemma`, unless its spelling forbids that.

    spaCy's rules take "riding" for "rid" and "staring" for "star"; but those verbs would double
    their last letter ("ridding", "starring"), so the verb must be the one in "e".
    """
    if word in (lemma + "ing", lemma + "ed", lemma + "es") and _doubles(lemma):
        return lemma + "e"
    return lemma


def _doubles(lemma: str) -> bool:
    """Whether the last consonant is written twice: one syllable that ends in one vowel and it."""
    if len(lemma) < 3 or lemma[-1] in "aeiouwxy" or lemma[-2] not in _VOWELS:
        return False
    start = lemma.replace("qu", "q")[:-2]
    return not _VOWELS & set(start)
