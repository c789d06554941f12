"""Pairs of an image and a caption that people judged here: `judgments/DATASET.csv`.

One row for each pair and annotator. `relevant` is empty if the annotator skipped the pair. Further
columns are the user's, and are kept. This module does not import torch, so that the explorer starts
at once.
"""

import csv
import io
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from manymatch.util.csv_table import read_csv
from manymatch.util.errors import DataError, first_line
from manymatch.util.files import write_through
from manymatch.util.locks import lock_path, locked

COLUMNS = ("image_id", "caption_id", "relevant", "annotator", "time")
_ANSWERS = {"true": True, "false": False, "": None}
Pair = tuple[str, str]
"""The ids of an image and of a caption."""
Votes = dict[str, dict[Pair, bool | None]]
"""What each annotator says about pairs; None: skipped."""
_Rows = dict[tuple[str, str, str], Mapping[str, str]]
"""The rows of the file by image, caption and annotator."""


def _read(path: Path) -> _Rows:
    if not path.exists():
        return {}
    try:
        table = read_csv(path, COLUMNS[:2], COLUMNS[2:], keep=True)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: not a table of {', '.join(COLUMNS)}: {first_line(error)}. Correct the file"
        ) from None
    rows: _Rows = {}
    for row in table.to_pylist():
        row = dict.fromkeys(COLUMNS, "") | {"relevant": "true"} | row
        row["relevant"] = row["relevant"].strip().lower()
        pair = row["image_id"], row["caption_id"]
        if row["relevant"] not in _ANSWERS:
            raise DataError(
                f"{path}: {', '.join(pair)}: relevant is '{row['relevant']}'. Write true, false or "
                "nothing"
            )
        rows[*pair, row["annotator"].strip()] = row
    return rows


def _votes(rows: _Rows) -> Votes:
    votes: Votes = {}
    for (image, caption, annotator), row in rows.items():
        votes.setdefault(annotator, {})[image, caption] = _ANSWERS[row["relevant"]]
    return votes


def read_votes(path: Path) -> Votes:
    """Read the votes. A missing file holds none; the last vote of an annotator on a pair counts.

    Raises:
        DataError: the file is not such a table, or a cell of `relevant` is something else.
    """
    return _votes(_read(path))


def majority(votes: Votes) -> dict[Pair, bool]:
    """Whether more annotators say yes than no. Pairs with as many of both are left out."""
    balance: dict[Pair, int] = {}
    for own in votes.values():
        for pair, relevant in own.items():
            if relevant is not None:
                balance[pair] = balance.get(pair, 0) + (1 if relevant else -1)
    return {pair: sign > 0 for pair, sign in balance.items() if sign}


def record(path: Path, pair: Pair, relevant: bool | None, annotator: str) -> Votes:
    """Add the vote of an annotator, or replace the annotator's former vote on the pair.

    Returns:
        All votes.
    """
    with locked(lock_path(path), path):
        rows = _read(path)
        answer = "" if relevant is None else str(relevant).lower()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        new = dict(zip(COLUMNS, (*pair, answer, annotator, now), strict=True))
        rows[*pair, annotator] = {**rows.get((*pair, annotator), {}), **new}
        names = dict.fromkeys(name for row in (new, *rows.values()) for name in row)
        text = io.StringIO()
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows.values())
        write_through(path, text.getvalue())
    return _votes(rows)


class Agreement(NamedTuple):
    """How two annotators agree on the pairs that both judged. `kappa` is None if both always give
    the same single answer, so that no agreement by chance can be told from theirs."""

    annotators: tuple[str, str]
    pairs: int
    agreed: float
    kappa: float | None


def agreements(votes: Votes) -> list[Agreement]:
    """The agreement of every two annotators who judged a common pair.

    Cohen's kappa is (p_o - p_e) / (1 - p_e), where p_o is the share of equal answers and p_e the
    share that two independent annotators with these shares of yes would have.

    References:
        Cohen, A coefficient of agreement for nominal scales, 1960.
    """
    found = []
    for a, b in combinations(sorted(votes), 2):
        both = [(votes[a][pair], votes[b][pair]) for pair in votes[a].keys() & votes[b].keys()]
        common = [(one, other) for one, other in both if one is not None and other is not None]
        if common:
            observed = fmean(one == other for one, other in common)
            yes, others_yes = (fmean(answers) for answers in zip(*common, strict=True))
            expected = yes * others_yes + (1 - yes) * (1 - others_yes)
            kappa = None if expected == 1 else (observed - expected) / (1 - expected)
            found.append(Agreement((a, b), len(common), observed, kappa))
    return found
