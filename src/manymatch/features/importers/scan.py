"""SCAN's folder of precomputed features (`precomp.py`), by itself.

Whose a row is its captions tell: SCAN's ids are numbers of another table. The image is the one
that the caption table gives all five captions; of several (a handful of pictures share all their
captions), the next in the table's order, which is that of the rows.
"""

from __future__ import annotations

from pathlib import Path

from manymatch.features.importers.precomp import Owner, Split, open_precomp
from manymatch.features.importers.published import Published
from manymatch.features.importers.table import Table
from manymatch.system.errors import DataError


def open_published(path: Path, table: Table, max_regions: int | None) -> Published:
    """See `importers.open_published`."""
    return open_precomp(path, table, lambda splits: _owner(table))


def _owner(table: Table) -> Owner:
    taken: set[int] = set()

    def owner(split: Split, image: int) -> int:
        candidates = table.with_captions(split.captions_of(image))
        row = next((row for row in candidates if row not in taken), None)
        if row is None:
            where = split.caption_lines(image)
            raise DataError(f"{where}: no image of {table.path} has these captions")
        taken.add(row)
        return row

    return owner
