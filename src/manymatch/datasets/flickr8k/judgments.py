"""People's judgments of caption-image pairs of the test split (Hodosh, Young and Hockenmaier 2013).

A pair is true if three experts' scores (1 unrelated ... 4 describes it) have a mean of 3 or more,
or if at least half of the crowd said yes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from manymatch.datasets.flickr8k.names import CROWD, EXPERT
from manymatch.foreign.text_lines import columns, numbered_lines
from manymatch.system.errors import DataError
from manymatch.system.progress import say

Pair = tuple[str, str]
"""Image file, caption id."""


def present(raw: Path) -> bool:
    """Whether there are any judgments under `raw`."""
    return (raw / EXPERT).exists() or (raw / CROWD).exists()


def true_pairs(raw: Path, test: set[str]) -> list[Pair]:
    """The pairs judged true by experts or crowd, sorted, of an image of `test` (files) and another
    image's caption; those outside the test split are left out, and counted."""
    judged = set()
    for name, is_true in ((EXPERT, _experts_agree), (CROWD, _crowd_agrees)):
        if (raw / name).exists():
            judged |= set(_judged_true(raw / name, is_true))
    inside = {pair for pair in judged if pair[0] in test and _owner(pair[1]) in test}
    if len(inside) < len(judged):
        say(f"judgments: left out {len(judged) - len(inside)} pairs outside the test split")
    return sorted(pair for pair in inside if pair[0] != _owner(pair[1]))


def _owner(caption_id: str) -> str:
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
        raise DataError(f"{where}: expected scores of 1 to 4, found {' '.join(votes)}")
    return sum(scores) >= 3 * len(scores)


def _crowd_agrees(votes: list[str], where: str) -> bool:
    """From the counts: the fraction beside them is rounded."""
    yes, no = _integer(votes[1], where), _integer(votes[2], where)
    if yes + no == 0:
        raise DataError(f"{where}: a pair without a vote")
    return 2 * yes >= yes + no


def _integer(text: str, where: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit()):
        raise DataError(f"{where}: expected a whole number, found {text!a}")
    return int(text)
