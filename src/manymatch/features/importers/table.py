"""The images of the caption table, found by the names that published files give them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import xxhash

from manymatch.foreign.images import read_columns
from manymatch.system.errors import DataError

_NUMBER = re.compile(r"(?:.*_)?0*(\d+)")
_WORD = re.compile(r"\w+")


@dataclass
class Table:
    """Images in the table's order, which is that of the store's rows, and whose the captions are.

    An image goes by its id, its file's name without folder and suffix, and the number that this
    name ends in: COCO's TSV files call `COCO_val2014_000000391895.jpg` 391895.
    """

    path: Path
    image_ids: list[str] = field(default_factory=list)
    _exact: dict[str, int | None] = field(default_factory=dict)
    _numbers: dict[str, int | None] = field(default_factory=dict)
    _owners: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def add(self, image_id: str, file: str) -> None:
        """The next image."""
        row = len(self.image_ids)
        self.image_ids.append(image_id)
        stem = _stem(file)
        for name in {image_id, stem}:
            _enter(self._exact, name, row)
        for number in {_number(image_id), _number(stem)} - {None}:
            _enter(self._numbers, str(number), row)

    def add_caption(self, caption: str) -> None:
        """A caption of the last image."""
        key, row = _digest(caption), len(self.image_ids) - 1
        self._owners[key] = (*self._owners.get(key, ()), row)

    def named(self, name: str) -> int | None:
        """The row of the image that goes by `name` (an id, file name or number), if there is one.

        Raises:
            DataError: several images do.
        """
        for names, key in (
            (self._exact, name),
            (self._exact, _stem(name)),
            (self._numbers, _number(_stem(name))),
        ):
            if key is not None and key in names:
                row = names[key]
                if row is None:
                    raise DataError(f"{self.path}: several images go by the name '{name}'")
                return row
        return None

    def with_captions(self, captions: Iterable[str]) -> list[int]:
        """The rows of the images that have all these captions, whatever their case and
        punctuation."""
        owners = [set(self._owners.get(_digest(caption), ())) for caption in captions]
        return sorted(set.intersection(*owners))


def read_table(captions: Path) -> Table:
    """The caption table at `captions`, of which images stand together."""
    table = Table(captions)
    seen: set[str] = set()
    for image_id, file, caption in read_columns(captions, ("image_id", "file", "caption")):
        if not table.image_ids or table.image_ids[-1] != image_id:
            if image_id in seen:
                raise DataError(f"{captions}: captions of image '{image_id}' do not stand together")
            seen.add(image_id)
            table.add(image_id, file)
        table.add_caption(caption)
    return table


def _enter(names: dict[str, int | None], name: str, row: int) -> None:
    names[name] = row if names.get(name, row) == row else None


def _stem(file: str) -> str:
    return PurePosixPath(file).stem


def _number(stem: str) -> str | None:
    found = _NUMBER.fullmatch(stem)
    return found[1] if found else None


def _digest(caption: str) -> int:
    return xxhash.xxh3_64_intdigest(" ".join(_WORD.findall(caption.lower())).encode())
