"""English verb forms: participles of base forms, and corrections of spaCy's base forms."""

from __future__ import annotations

_VOWELS = frozenset("aeiou")
_SYLLABIC = _VOWELS | {"y"}
_DOUBLE = frozenset("aefilosz")
"""Letters that may be double at the end of a base form."""
_BEFORE_L = frozenset("aeiourl")
_SILENT = ("c", "dg", "is", "rg", "u", "v", "z")
"""Letters that end no base form without "e"."""
_IRREGULAR = {"lie": "lying", "tie": "tying", "die": "dying"}


def present_participle(lemma: str) -> str:
    """ "run" -> "running", "ride" -> "riding", "open" -> "opening".

    Attributes have this form, so that "runs", "ran" and "is running" give the same attribute.
    """
    if lemma in _IRREGULAR:
        return _IRREGULAR[lemma]
    if lemma.endswith("e") and not lemma.endswith(("ee", "oe", "ye")) and len(lemma) > 2:
        return lemma[:-1] + "ing"
    return lemma + lemma[-1] * _doubles(lemma) + "ing"


def is_participle(word: str) -> bool:
    """Return whether `word` has the form of a present participle: "playing", but not "swing"."""
    return word.endswith("ing") and not _SYLLABIC.isdisjoint(word[:-3])


def participle_base(word: str) -> str:
    """Return the base form of a participle without a lemma: "playing", "sitting", "riding"."""
    stem = word.removesuffix("ing")
    if stem[-2:-1] == stem[-1:] not in _DOUBLE:
        return stem[:-1]
    if stem.endswith(_SILENT) or (stem.endswith("l") and stem[-2:-1] not in _BEFORE_L):
        return stem + "e"
    return verb_base(word, stem)


def verb_base(word: str, lemma: str) -> str:
    """Return the base form of `word`: `lemma`, unless the spelling excludes it.

    spaCy's rules derive "rid" from "riding" and "star" from "staring". These verbs would double
    their last letter ("ridding", "starring"), so the base form must end in "e".
    """
    doubled = word.removesuffix("ing")
    if lemma == doubled + "e" and doubled[-2:-1] == doubled[-1:] not in _DOUBLE:
        return doubled[:-1]  # "gutting" is "gut", but "falling" is "fall".
    if word in (lemma + "ing", lemma + "ed", lemma + "es") and _doubles(lemma):
        return lemma + "e"
    return lemma


def _doubles(lemma: str) -> bool:
    """Return whether the last consonant doubles: a single syllable with one vowel before it."""
    if len(lemma) < 3 or lemma[-1] in "aeiouwxy" or lemma[-2] not in _VOWELS:
        return False
    start = lemma.replace("qu", "q")[:-2]
    return not _VOWELS & set(start)
