"""VSE-infinity's folder (Chen et al., CVPR 2021): `id_mapping.json`, from ids to names of image
files, beside SCAN's folder under the name `precomp` (see `precomp.py`).

Whose a row is, its id's file tells; the captions must be those of that image.
"""

from __future__ import annotations

import json
from pathlib import Path

from manymatch.features.importers.precomp import (
    MAX_TEXT_BYTES,
    Owner,
    Split,
    open_precomp,
    read_lines,
)
from manymatch.features.importers.published import Published
from manymatch.features.importers.table import Table
from manymatch.system.errors import DataError

MAPPING, FOLDER = "id_mapping.json", "precomp"


def open_published(path: Path, table: Table, max_regions: int | None) -> Published:
    """See `importers.open_published`."""
    mapping = read_mapping(path / MAPPING)
    return open_precomp(path / FOLDER, table, lambda splits: _owner(splits, mapping, table))


def read_mapping(path: Path) -> dict[str, str]:
    """Id -> file name."""
    if not path.is_file() or path.stat().st_size > MAX_TEXT_BYTES:
        raise DataError(f"{path}: no such file, or greater than {MAX_TEXT_BYTES} B")
    try:
        mapping = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error})") from None
    if not isinstance(mapping, dict) or not all(isinstance(x, str) for x in mapping.values()):
        raise DataError(f"{path}: not a mapping from ids to file names")
    return mapping


def _owner(splits: list[Split], mapping: dict[str, str], table: Table) -> Owner:
    ids = {split.name: _ids(split) for split in splits}

    def owner(split: Split, image: int) -> int:
        name = ids[split.name][image]
        row = table.named(mapping.get(name, ""))
        if row is None:
            raise DataError(f"{split.where(image)}: id '{name}' is of no image of {table.path}")
        if row not in table.with_captions(split.captions_of(image)):
            where, image_id = split.caption_lines(image), table.image_ids[row]
            raise DataError(f"{where}: not captions of image '{image_id}' (id '{name}')")
        return row

    return owner


def _ids(split: Split) -> list[str]:
    """One of each image; the file has one for each row, or for each image."""
    path = split.folder / f"{split.name}_ids.txt"
    ids = read_lines(path)
    if len(ids) == split.images:
        return ids
    if len(ids) != len(split.rows):
        raise DataError(f"{path}: {len(ids)} ids for {len(split.rows)} rows")
    groups = [ids[at : at + split.copies] for at in range(0, len(ids), split.copies)]
    for number, group in enumerate(groups):
        if len(set(group)) > 1:
            raise DataError(f"{path}:{split.copies * number + 1}: rows of one image, several ids")
    return [group[0] for group in groups]
