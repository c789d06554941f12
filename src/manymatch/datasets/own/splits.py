"""Which pictures train, validate and test: as given, or drawn so that copies stay together."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from manymatch.datasets.base import SPLITS
from manymatch.datasets.own.files import composed
from manymatch.datasets.own.record import split_of_word
from manymatch.foreign.text_lines import numbered_lines
from manymatch.system.errors import ConfigError, DataError

_WORD = re.compile(r"(?<![a-z])(train|val|dev|test)")
_SHARE = 0.1
"""The share of the pictures in a drawn validation or test split."""
_MOST = 1000
"""The maximum number of pictures of a drawn split. Published splits have about as many."""
_LEAST = 2
"""With one picture there is nothing to rank."""


Lists = dict[str, dict[str, str]]
"""A file's name -> each path to a file of this name in a list -> split."""


def read_lists(paths: Sequence[Path]) -> Lists | None:
    """Return the splits of the files in lists such as `train.txt`, or None without lists.

    Raises:
        ConfigError, DataError: a list is empty or names no split, or two lists name a picture.
    """
    lists: Lists = {}
    for path in paths:
        word = _WORD.search(path.stem.lower())
        split = split_of_word(word[0]) if word else None
        if split is None:
            raise ConfigError(f"{path}: the name says no split. Call it train.txt or test.txt")
        number = 0
        for number, line in numbered_lines(path):
            file = PurePosixPath(composed(line.strip()))
            earlier = lists.setdefault(file.name, {}).setdefault(str(file), split)
            if earlier != split:
                raise DataError(f"{path}:{number}: {file} is in the list of {earlier} too")
        if not number:
            raise DataError(f"{path}: the list is empty. Write the name of a picture in each line")
    return lists or None


def split_in(lists: Lists, file: str) -> str | None:
    """Return the split of the picture `file`, or None if the picture is in no list.

    A list may name a picture by its file's name alone, by its path below the folder of pictures, or
    by a longer path.

    Raises:
        DataError: lists of several splits name the picture.
    """
    own = f"/{composed(file)}"
    paths = lists.get(PurePosixPath(own).name, {})
    splits = {
        split
        for path, split in paths.items()
        if own.endswith(f"/{path}") or f"/{path}".endswith(own)
    }
    if len(splits) > 1:
        raise DataError(f"{file} is in the lists of {' and '.join(sorted(splits))}. Remove one")
    return next(iter(splits), None)


def given_splits(splits: Sequence[str | None], explicit: bool) -> list[str | None]:
    """Return the given splits, or None for each picture unless every picture has one.

    Splits that are not `explicit`, but said by names, count only if some say train.
    """
    complete = None not in splits and (explicit or "train" in splits)
    return list(splits) if complete else [None] * len(splits)


def check_sizes(splits: Sequence[str | None], where: str) -> None:
    """Check that no given split has a single picture, and that there are training pictures.

    Raises:
        DataError: it has.
    """
    counts = Counter(splits)
    for split in SPLITS:
        if 0 < counts[split] < _LEAST:
            raise DataError(f"{where}: the split {split} has one picture. Put more pictures in it")
    if counts["train"] == counts[None] == 0:
        raise DataError(f"{where}: no training pictures. Call some split train")


def draw(
    names: Sequence[str], given: Sequence[str | None], groups: Sequence[int], seed: int
) -> list[str]:
    """Return the split of each picture. Splits that are not given are drawn from training pictures.

    A draw depends only on the seed and the names. All pictures of a group are in one split.

    Raises:
        DataError: there are too few different pictures for three splits.
    """
    splits = [split or "train" for split in given]
    members: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        if splits[number] == "train":
            members.setdefault(group, []).append(number)
    order = sorted(members.values(), key=lambda group: _rank(seed, min(names[n] for n in group)))
    size = max(_LEAST, min(_MOST, round(_SHARE * len(names))))
    for split in ("test", "validation"):
        if split in given:
            continue
        missing = size
        for copies in list(order):
            if len(copies) <= missing:
                order.remove(copies)
                missing -= len(copies)
                for number in copies:
                    splits[number] = split
            if not missing:
                break
        if size - missing < _LEAST or not order:
            raise DataError(
                f"{len(names)} pictures, {len(members)} of them different, are too few for the "
                f"splits {', '.join(SPLITS)}. Add pictures"
            )
    return splits


def _rank(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode()).digest()


def crossing(splits: Sequence[str], groups: Sequence[int]) -> int:
    """Return how many groups of near-duplicates have pictures in more than one split."""
    sides: dict[int, set[str]] = {}
    for split, group in zip(splits, groups, strict=True):
        sides.setdefault(group, set()).add(split)
    return sum(len(side) > 1 for side in sides.values())
