"""Unpack the usable samples of the shards, one shard after another."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from manymatch.datasets.conceptual_captions.samples import (
    Sample,
    Unusable,
    is_wanted,
    members,
    read_sample,
)
from manymatch.datasets.conceptual_captions.settings import ConceptualCaptionsSettings
from manymatch.datasets.image_folder import IMAGES
from manymatch.fetching.archives import extract
from manymatch.fetching.completeness import whole_archive
from manymatch.fetching.gather import Gatherer, Usual
from manymatch.system.errors import SourceError
from manymatch.system.files import remove
from manymatch.system.progress import say, track

TABLE = "captions.tsv"
"""Under the raw folder: file, split and caption of each picture."""
USUAL: Usual = {"shards": ("[0-9]*.tar", "*.tar")}
_ADVICE = (
    "its pictures are not given out: fetch them with img2dataset from the published list "
    "(https://ai.google.com/research/ConceptualCaptions), with --output_format webdataset, and set "
    "folder to its output"
)


def fetch(settings: ConceptualCaptionsSettings, raw: Path, name: str) -> None:
    """Fill `raw` from the shards in their order, until there are `limit` training images.

    Samples that cannot be used are left out and counted. Memory grows with the keys alone.

    Raises:
        SourceError, ConfigError: a shard is missing or unsound, or no sample is usable.
    """
    gatherer = Gatherer(name, raw, settings.folder, USUAL, {"shards": settings.shards})
    choice = _Choice(settings)
    with (raw / TABLE).open("w", encoding="utf-8", newline="\n") as table:
        for number, shard in enumerate(gatherer.each("shards", _ADVICE, whole_archive)):
            _unpack(shard, raw / IMAGES / f"{number:05d}", choice, table)
            if choice.is_full:
                break
    say(f"{name}: {choice.summary()}")
    if not choice.splits["train"]:
        raise SourceError(f"{name}: no training image in the shards ({choice.summary()})")


class _Choice:
    """Which samples are taken, into which split, and how many were left out for what."""

    def __init__(self, settings: ConceptualCaptionsSettings) -> None:
        self._settings = settings
        self._keys: set[str] = set()
        self.splits: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    @property
    def is_full(self) -> bool:
        return self.splits["train"] == self._settings.limit

    def usable(self, folder: Path) -> Iterator[tuple[Sample, str]]:
        """The samples below `folder` that are taken, each with its split."""
        for key, files in track(members(folder), f"samples of {folder.name}"):
            if self.is_full:
                return
            try:
                if key in self._keys:
                    raise Unusable("a key that came before")
                sample = read_sample(key, files)
            except Unusable as reason:
                self._left_out[str(reason)] += 1
                continue
            self._keys.add(key)
            split = split_of(key, self._settings.held_out)
            self.splits[split] += 1
            yield sample, split

    def summary(self) -> str:
        """What was taken and what was left out, in words."""
        taken = f"{self.splits.total():,} samples taken"
        reasons = [f"{count:,} with {reason}" for reason, count in self._left_out.most_common()]
        return f"{taken}, {self._left_out.total():,} left out" + "".join(
            f"; {reason}" for reason in reasons
        )


def _unpack(shard: Path, folder: Path, choice: _Choice, table: TextIO) -> None:
    """The pictures of a shard to `folder`, those of unusable samples left out, and their lines."""
    extract(shard, folder, is_wanted)
    kept = set()
    for sample, split in choice.usable(folder):
        kept.add(sample.picture)
        file = sample.picture.relative_to(folder.parents[1]).as_posix()
        table.write(f"{file}\t{split}\t{sample.caption}\n")
    for path in folder.rglob("*"):
        if path.is_file() and path not in kept:
            remove(path)


def split_of(key: str, held_out: float) -> str:
    """`validation` for `held_out` of all keys, `test` for as many; it depends on the key alone."""
    place = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64
    if place < 2 * held_out:
        return "validation" if place < held_out else "test"
    return "train"
