"""Which pictures train, validate and test: as given, or drawn so that copies stay together."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from manymatch.datasets.base import SPLITS
from manymatch.datasets.own.files import composed
from manymatch.datasets.own.record import split_at_end, split_of_path
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.regular_file import PICTURES, UNREADABLE
from manymatch.util.text_lines import numbered_lines

_SHARE = 0.1
"""The share of the pictures in a drawn validation or test split."""
_MOST = 1000
"""The maximum number of pictures of a drawn split. Published splits have about as many."""
_GROUPS, _GROUP = 100, 10
"""The maximum number of groups of near-duplicates that are named, and of pictures of one group."""
_LEAST = 2
"""With one picture there is nothing to rank."""


@dataclass
class _Listed:
    """A name in a list: its path in lower case, its split, and where it stands."""

    path: str
    split: str
    list: Path
    picture: str | None = None
    """The picture that the name means; None: not found yet."""


class Lists:
    """Lists of files such as `train.txt`, each of which is a split.

    A list may name a picture by its file's name alone, with or without the ending, by its path
    below the folder of pictures, or by a longer path.

    Raises:
        ConfigError, DataError: a list is empty or names no split, or two lists name a picture.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._entries: dict[str, _Listed] = {}
        for path in paths:
            split = split_of_path(path.name)
            if split is None:
                raise ConfigError(f"{path}: the name says no split. Call it train.txt or test.txt")
            number = 0
            for number, line in numbered_lines(path):
                file = _key(line.strip().replace("\\", "/"))
                earlier = self._entries.setdefault(file, _Listed(file, split, path))
                if earlier.split != split:
                    raise DataError(
                        f"{path}:{number}: {file} is in the list of {earlier.split} too"
                    )
            if not number:
                raise DataError(
                    f"{path}: the list is empty. Write the name of a picture in each line"
                )

    def splits(self, files: Sequence[str]) -> list[str | None]:
        """Return the split of each of the pictures `files`, or None if no list names a picture.

        Raises:
            DataError: lists of several splits name a picture, or a list does not fit the pictures.
        """
        given: dict[str, str] = {}
        for stem in (str, _stem):  # an exact name comes first: a.jpg and a.png are two pictures
            named: dict[str, list[tuple[str, str]]] = {}
            for file in files:
                own = f"/{stem(_key(file))}"
                named.setdefault(_name(own), []).append((own, file))
            exact = set(given)
            for entry in self._entries.values():
                if entry.picture is not None:
                    continue
                path = f"/{stem(entry.path)}"
                fitting = [
                    (own, file)
                    for own, file in named.get(_name(path), ())
                    if (own.endswith(path) or path.endswith(own))
                    and (file not in exact or entry.path == _stem(entry.path))
                ]
                if (picture := _meant(path, fitting, entry.list)) is not None:
                    split = given.setdefault(picture, entry.split)
                    if split != entry.split:
                        lists = " and ".join(sorted((split, entry.split)))
                        raise DataError(f"{picture} is in the lists of {lists}. Remove one")
                    entry.picture = picture
        complete = len(given) == len(files)
        for listed in dict.fromkeys(entry.list for entry in self._entries.values()):
            names = [entry for entry in self._entries.values() if entry.list == listed]
            unused = [entry.path for entry in names if entry.picture is None]
            if len(unused) == len(names) or (not complete and 2 * len(unused) > len(names)):
                raise DataError(
                    f"{listed}: {len(unused):,} of {len(names):,} names are no picture with a "
                    f"caption, such as {unused[0]}. Write the names of the files"
                )
        return [given.get(file) for file in files]

    @property
    def unused(self) -> int:
        """The number of names that are no picture with a caption."""
        return sum(entry.picture is None for entry in self._entries.values())


def _meant(path: str, fitting: Sequence[tuple[str, str]], where: Path) -> str | None:
    """Return the picture that a `path` in the list `where` means, among those by path that have an
    end in common with this path, or None. A longer path than that below the folder of pictures
    means the picture with the longest end.

    Raises:
        DataError: several pictures can be meant.
    """
    meant = [file for own, file in fitting if own == path]
    if not meant and all(len(own) < len(path) for own, _ in fitting):
        longest = max((len(own) for own, _ in fitting), default=0)
        meant = [file for own, file in fitting if len(own) == longest]
    meant = meant or [file for _, file in fitting]
    if len(meant) > 1:
        raise DataError(
            f"{where}: '{path[1:]}' can mean {meant[0]} and {meant[1]}. Write the path below the "
            "folder of pictures, with the ending"
        )
    return next(iter(meant), None)


def _key(path: str) -> str:
    """Pictures whose names differ only in case are refused elsewhere."""
    return str(PurePosixPath(composed(path))).lower()


def _name(path: str) -> str:
    return PurePosixPath(path).name


def _stem(path: str) -> str:
    """`path` without the ending of a picture; other dots belong to the name."""
    name = PurePosixPath(path)
    return str(name.with_suffix("")) if name.suffix in (*PICTURES, *UNREADABLE) else path


def settled(
    files: Sequence[str], said: Sequence[str | None], explicit: bool
) -> tuple[list[str | None], list[str]]:
    """Return the given splits, None for each file unless every file has one, and notes on them.

    Splits that are not `explicit`, but said by names of folders and files, count only if some say
    train. A file without a split in `said` has the split at the end of the name of its nearest such
    folder, if the other words of all these folders are the same, as in `birds_train` and
    `birds_test`.
    """
    if explicit:
        whole = None not in said
        return [*said] if whole else [None] * len(said), ["splits: as the captions' files say"]
    rests = set()
    names = list(said)
    for number, file in enumerate(files):
        if names[number] is None:
            ends = map(split_at_end, reversed(PurePosixPath(file).parts[:-1]))
            names[number], rest = next(filter(all, ends), (None, []))
            rests |= {tuple(rest)} if names[number] else set()
    if len(rests) <= 1 and None not in names and "train" in names:
        return names, ["splits: as the names of folders and files say"]
    count, words = len(names), ", ".join(sorted({split for split in names if split}))
    note = (
        f"splits: the names of folders and files say {words} for {count - names.count(None):,} "
        f"of {count:,} pictures. They are not used, because they do not give every picture a "
        "split, or no picture that of training, or have other words that differ. To use them, give "
        "lists by --split"
    )
    return [None] * len(said), [note] if words else []


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

    def rank(group: list[int]) -> bytes:
        return hashlib.sha256(f"{seed} {min(names[n] for n in group)}".encode()).digest()

    order = sorted(members.values(), key=rank)
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


def near_duplicates(
    names: Sequence[str], splits: Sequence[str], groups: Sequence[int]
) -> dict[str, Any]:
    """Return how many pictures are `copies` of others, how many groups are `crossing` splits, how
    many have a picture of each split (`of_split`), and the first pictures of the first `groups`,
    lists of (name, split).

    Groups with a test picture in several splits come first, then other groups with a test picture,
    then others in several splits.
    """
    members: dict[int, list[tuple[str, str]]] = {}
    for name, split, group in zip(names, splits, groups, strict=True):
        members.setdefault(group, []).append((name, split))

    def reasons(group: list[tuple[str, str]]) -> tuple[bool, bool]:
        splits = {split for _, split in group}
        return "test" in splits, len(splits) > 1

    several = [group for group in members.values() if len(group) > 1]
    repeats = sorted(several, key=reasons, reverse=True)
    splits_of = [{split for _, split in group} for group in repeats]
    return {
        "copies": len(names) - len(members),
        "crossing": sum(len(own) > 1 for own in splits_of),
        "of_split": {split: sum(split in own for own in splits_of) for split in SPLITS},
        "groups": [sorted(group, key=lambda one: one[1])[:_GROUP] for group in repeats[:_GROUPS]],
    }
