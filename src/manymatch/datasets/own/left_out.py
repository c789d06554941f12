"""The pictures and captions that are left out: how many are allowed, and their list."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from manymatch.datasets.image_files import single_spaced
from manymatch.util.errors import DataError, printable
from manymatch.util.files import remove, write_text

_MANY = 0.5
"""The share of unusable pictures or captions that no advice says to allow."""


class LeftOut(NamedTuple):
    """A picture or caption that is left out. `what`: pictures or captions."""

    what: str
    where: str
    name: str
    reason: str


def refuse(
    left_out: Sequence[LeftOut], pictures: Collection[str], captions: int, allow: float
) -> None:
    """Check that at most the share `allow` of pictures and of captions is left out.

    Args:
        pictures: the names of the usable pictures.
        captions: the number of all captions.

    Raises:
        DataError: more is left out. The message names the first.
    """
    names = {one.name for one in left_out if one.what == "pictures"}
    texts = [one for one in left_out if one.what == "captions"]
    for what, count, total in (
        ("pictures", len(names), len(names.union(pictures))),
        ("captions", len(texts), captions),
    ):
        if count > allow * total:
            _, where, name, reason = next(one for one in left_out if one.what == what)
            share = -(-count * 100 // total) / 100
            advice = f", or allow them with --allow {share}" if share < _MANY else ""
            raise DataError(
                f"{where}: {name[:80]}: {reason}. In all {count:,} of {total:,} {what} cannot "
                f"be used ({count / total:.1%}). Correct them{advice}"
            )


def write_list(left_out: Sequence[LeftOut], listed: Path) -> None:
    """Write the list, a table with tabs, or remove the list of an earlier run.

    Names from the disk that are not UTF-8 are written with escapes.
    """
    remove(listed)
    if left_out:
        rows = (
            "\t".join(printable(single_spaced(cell)) for cell in row)
            for row in (LeftOut._fields, *left_out)
        )
        write_text(listed, "".join(f"{row}\n" for row in rows))


def summary(left_out: Sequence[LeftOut], listed: Path) -> str:
    """Return how many are left out, and where they are listed."""
    return f"{listed}: {len(left_out):,} pictures or captions were left out"
