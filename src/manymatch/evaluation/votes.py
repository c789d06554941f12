"""Pairs of an image and a caption that people judged here: `judgments/DATASET.csv`.

One row for each pair and annotator. `relevant` is empty if the annotator skipped the pair. Further
columns are the user's, and are kept. This module does not import torch, so that the explorer starts
at once.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from manymatch.util import files
from manymatch.util.csv_table import read_csv
from manymatch.util.errors import DataError, first_line
from manymatch.util.locks import lock_path, locked

COLUMNS = ("image_id", "caption_id", "relevant", "annotator", "time")
_ANSWERS = {"true": True, "false": False, "": None}
Pair = tuple[str, str]
"""The ids of an image and of a caption."""


class Vote(NamedTuple):
    """What one annotator says about a pair; None: skipped. `time` is in UTC, ISO 8601; `more` are
    the cells of the user's own columns."""

    relevant: bool | None
    time: str
    more: Mapping[str, str] = {}


Votes = dict[str, dict[Pair, Vote]]
"""By annotator and pair."""


def read_votes(path: Path) -> Votes:
    """Read the votes. A missing file holds none; the last vote of an annotator on a pair counts.

    Raises:
        DataError: the file is not such a table, or a cell of `relevant` is something else.
    """
    votes: Votes = {}
    if not path.is_file():
        return votes
    try:
        table = read_csv(path, ("image_id", "caption_id"), None)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: not a table of {', '.join(COLUMNS)}: {first_line(error)}. Correct the file"
        ) from None
    for row in table.to_pylist():
        answer = str(row.get("relevant", "true")).lower()
        pair = row["image_id"], row["caption_id"]
        if answer not in _ANSWERS:
            raise DataError(
                f"{path}: {', '.join(pair)}: relevant is '{answer}'. Write true, false or nothing"
            )
        more = {name: row[name] for name in table.column_names if name not in COLUMNS}
        vote = Vote(_ANSWERS[answer], row.get("time") or "", more)
        votes.setdefault(row.get("annotator") or "", {})[pair] = vote
    return votes


def majority(votes: Votes) -> dict[Pair, bool]:
    """Whether more annotators say yes than no. Pairs with as many of both are left out."""
    balance: dict[Pair, int] = {}
    for own in votes.values():
        for pair, vote in own.items():
            if vote.relevant is not None:
                balance[pair] = balance.get(pair, 0) + (1 if vote.relevant else -1)
    return {pair: sign > 0 for pair, sign in balance.items() if sign}


def record(path: Path, pair: Pair, relevant: bool | None, annotator: str) -> Votes:
    """Add the vote of an annotator, or replace the annotator's former vote on the pair.

    Returns:
        All votes.
    """
    with locked(lock_path(path), path):
        votes = read_votes(path)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        own = votes.setdefault(annotator, {})
        own[pair] = Vote(relevant, now, own[pair].more if pair in own else {})
        further = dict.fromkeys(
            name for own in votes.values() for vote in own.values() for name in vote.more
        )
        with (
            files.replacing(path) as partial,
            partial.open("w", encoding="utf-8", newline="") as stream,
        ):
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow((*COLUMNS, *further))
            for name, own in votes.items():
                for ids, vote in own.items():
                    answer = "" if vote.relevant is None else str(vote.relevant).lower()
                    more = [vote.more.get(column, "") for column in further]
                    writer.writerow((*ids, answer, name, vote.time, *more))
    return votes


class Agreement(NamedTuple):
    """How two annotators agree on the pairs that both judged. `kappa` is None if both always give
    the same single answer, so that no agreement by chance can be told from theirs."""

    annotators: tuple[str, str]
    pairs: int
    agreed: float
    kappa: float | None


def agreements(votes: Votes) -> list[Agreement]:
    """The agreement of every two annotators who judged a common pair."""
    answers = {
        name: {pair: vote.relevant for pair, vote in own.items() if vote.relevant is not None}
        for name, own in votes.items()
    }
    both = combinations(sorted(answers), 2)
    found = [_agreement((a, b), answers[a], answers[b]) for a, b in both]
    return [one for one in found if one.pairs]


def _agreement(
    names: tuple[str, str], one: Mapping[Pair, bool], other: Mapping[Pair, bool]
) -> Agreement:
    """Cohen's kappa: (p_o - p_e) / (1 - p_e), where p_o is the share of equal answers and p_e the
    share that two independent annotators with these shares of yes would have.

    References:
        Cohen, A coefficient of agreement for nominal scales, 1960.
    """
    common = one.keys() & other.keys()
    if not common:
        return Agreement(names, 0, 0.0, None)
    observed = sum(one[pair] == other[pair] for pair in common) / len(common)
    yes, others_yes = (sum(own[pair] for pair in common) / len(common) for own in (one, other))
    expected = yes * others_yes + (1 - yes) * (1 - others_yes)
    kappa = None if expected == 1 else (observed - expected) / (1 - expected)
    return Agreement(names, len(common), observed, kappa)
