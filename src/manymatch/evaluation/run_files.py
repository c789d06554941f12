"""TREC run files: the best items of every query, for tools that score such files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import torch

from manymatch.evaluation.ranking.ranks import Direction
from manymatch.util import files

_UNSAFE = re.compile(r"[\s%]")


def run_id(name: str) -> str:
    """`name` with white space percent-encoded ("a b" -> "a%20b"), because a space ends a field.

    `urllib.parse.unquote` restores the name.
    """
    return _UNSAFE.sub(lambda match: quote(match[0]), name)


def write_run(
    target: Path, direction: Direction, queries: Sequence[str], items: Sequence[str], tag: str
) -> None:
    """Write lines `query Q0 item rank score tag` with ranks from 1, whole or not at all; `queries`
    and `items` are ids."""
    with (
        files.replacing(target) as partial,
        partial.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        stream.writelines(
            _lines(direction, [*map(run_id, queries)], [*map(run_id, items)], run_id(tag))
        )


def _lines(
    direction: Direction, queries: Sequence[str], items: Sequence[str], tag: str
) -> Iterator[str]:
    digits = (
        17 if direction.scores.dtype == torch.float64 else 9
    )  # enough to distinguish two scores
    for query, best, scores in zip(queries, direction.items, direction.scores, strict=True):
        ranked = zip(best.tolist(), scores.tolist(), strict=True)
        for rank, (item, score) in enumerate(ranked, start=1):
            yield f"{query} Q0 {items[item]} {rank} {score:.{digits}g} {tag}\n"
