"""People's judgments of caption-image pairs of the test split (Hodosh, Young and Hockenmaier 2013).

A pair is positive if the mean of three experts' scores (from 1, unrelated, to 4, describes the
image) is at least 3, or if at least half of the crowd workers said yes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from manymatch.foreign.text_lines import columns, numbered_lines
from manymatch.system.errors import DataError
from manymatch.system.progress import say

EXPERT = "ExpertAnnotations.txt"
CROWD = "CrowdFlowerAnnotations.txt"
Pair = tuple[str, str]
"""Image file, caption id."""


def present(raw: Path) -> bool:
    """Return whether there are judgments under `raw`."""
    return (raw / EXPERT).exists() or (raw / CROWD).exists()


def true_pairs(raw: Path, test: set[str]) -> list[Pair]:
    """Return the pairs that experts or crowd workers judged true, sorted.

    A pair consists of an image in `test` (file names) and the caption of another image in `test`.
    Pairs outside the test split are left out and counted.
    """
    judged = set()
    for name, is_true in ((EXPERT, _experts_agree), (CROWD, _crowd_agrees)):
        if (raw / name).exists():
            judged |= set(_judged_true(raw / name, is_true))
    inside = {pair for pair in judged if pair[0] in test and _image_file(pair[1]) in test}
    if len(inside) < len(judged):
        say(f"judgments: left out {len(judged) - len(inside)} pairs outside the test split")
    return sorted(pair for pair in inside if pair[0] != _image_file(pair[1]))


def _image_file(caption_id: str) -> str:
    return caption_id.rpartition("#")[0]


def _judged_true(path: Path, is_true: Callable[[list[str], str], bool]) -> Iterator[Pair]:
    for number, text in numbered_lines(path):
        where = f"{path}:{number}"
        image, caption_id, *votes = columns(text, 5, where)
        if is_true(votes, where):
            yield image, caption_id


def _experts_agree(votes: list[str], where: str) -> bool:
    scores = [_integer(vote, where) for vote in votes]
    if not all(1 <= score <= 4 for score in scores):
        raise DataError(f"{where}: expected scores from 1 to 4, found {' '.join(votes)}")
    return sum(scores) >= 3 * len(scores)


def _crowd_agrees(votes: list[str], where: str) -> bool:
    """Compare the counts, because the fraction in the file is rounded."""
    yes, no = _integer(votes[1], where), _integer(votes[2], where)
    if yes + no == 0:
        raise DataError(f"{where}: a pair without a vote")
    return 2 * yes >= yes + no


def _integer(text: str, where: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit()):
        raise DataError(f"{where}: expected a whole number, found {text!a}")
    return int(text)
