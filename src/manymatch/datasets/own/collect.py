"""From the records of a form to checked pictures in splits, and a list of what is left out."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from manymatch.datasets.base import SPLITS, Caption
from manymatch.datasets.image_files import single_spaced
from manymatch.datasets.image_folder import IMAGES
from manymatch.datasets.own import splits
from manymatch.datasets.own.files import PictureFiles, Unusable, composed
from manymatch.datasets.own.forms import Form, look
from manymatch.datasets.own.near import Signature, near_groups, signature
from manymatch.datasets.own.record import Record
from manymatch.datasets.own.settings import OwnSettings
from manymatch.foreign.images import REMEDY
from manymatch.system.errors import DataError
from manymatch.system.files import remove, write_text
from manymatch.system.progress import say, track
from manymatch.text.caption_text import caption_fault

_MANY = 0.5
"""The share of unusable pictures or captions that no advice says to allow."""
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>|<!--|&(?:[a-z]{2,8}|#\d{1,6});")


@dataclass(slots=True)
class Picture:
    """A picture and its captions. `file` is the path below the folder of pictures."""

    file: str
    split: str | None
    where: str
    source: Path | None
    """The user's file; None: the picture was copied to the raw folder."""
    digest: bytes = b""
    captions: list[str] = field(default_factory=list)
    signature: Signature | None = None


class LeftOut(NamedTuple):
    """A picture or caption that is left out. `what`: pictures or captions."""

    what: str
    where: str
    name: str
    reason: str


@dataclass
class Collection:
    """The usable pictures of a source, and what was left out."""

    settings: OwnSettings
    form: Form
    target: Path | None
    """The folder to which pictures inside tars and tables are copied; None: they are checked."""
    pictures: dict[str, Picture] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _captions: int = 0
    _explicit: bool = False
    """Whether splits are given, and not only said by names of folders and files."""
    _words: dict[str, str] = field(default_factory=dict)

    @property
    def in_place(self) -> bool:
        """Whether the pictures stay in the user's folder."""
        return any(picture.source for picture in self.pictures.values())

    @cached_property
    def _files(self) -> PictureFiles:
        return PictureFiles(self.form.folder)

    @cached_property
    def _lists(self) -> splits.Lists | None:
        return splits.read_lists(self.settings.lists)

    def read(self) -> None:
        """Read all records, then decode the pictures of the user's folder.

        The captions and splits are checked first, because decoding takes long.
        """
        for record in track(self.form.records(self.settings.columns), "captions"):
            self._enter(record)
        self._refuse()
        self._settle_splits()
        self._decode()
        self._refuse()
        self._draw_splits()

    def _enter(self, record: Record) -> None:
        try:
            if record.fault:
                raise Unusable(record.fault)
            picture = self._picture(record)
        except Unusable as reason:
            self.left_out.append(LeftOut("pictures", record.where, record.name, str(reason)))
            return
        split = record.split or record.path_split
        if self._lists is None and split != picture.split:
            raise DataError(
                f"{record.where}: {record.name} is in two splits, {picture.split} and {split}. "
                "Write one split for each picture"
            )
        for text in record.captions or [""]:
            caption = single_spaced(composed(text))
            fault = caption_fault(caption)
            if _MARKUP.search(caption):
                fault = "HTML in a caption. Write plain text"
            self._captions += 1
            if fault:
                self.left_out.append(LeftOut("captions", record.where, record.name, fault))
            else:
                picture.captions.append(caption)

    def _picture(self, record: Record) -> Picture:
        """Return the picture of a record, which is new or has had captions before."""
        content = record.picture
        file = record.name if content is not None else self._files.find(record.name)
        known = self.pictures.get(file)
        digest = sha256(content).digest() if content is not None else b""
        if known is not None:
            if known.digest != digest:
                raise Unusable("a second picture of this name")
            return known
        self._check_name(file)
        split = record.split or record.path_split
        if self._lists is not None:
            split = splits.split_in(self._lists, file)
        self._explicit |= record.split is not None or self._lists is not None
        picture = Picture(file, split, record.where, None, digest)
        if content is not None:
            picture.signature = _signature(content)
            self._keep(file, content)
        else:
            picture.source = self.form.folder / file
        self.pictures[file] = picture
        return picture

    def _check_name(self, file: str) -> None:
        path = PurePosixPath(file)
        if path.is_absolute() or ".." in path.parts or not file.isprintable():
            raise Unusable("a name that leaves the folder or cannot be printed")
        if len(file) > 240:
            raise Unusable("a name of more than 240 characters")
        earlier = self._words.setdefault(_word(file).lower(), file)
        if earlier != file:
            raise Unusable(f"the name differs from {earlier} only in case or spaces. Rename one")

    def _keep(self, file: str, content: bytes) -> None:
        if self.target is not None:
            path = self.target / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def _refuse(self) -> None:
        """Check that at most the allowed shares of pictures and captions are left out."""
        faulty = {one.name for one in self.left_out if one.what == "pictures"}
        captions = [one for one in self.left_out if one.what == "captions"]
        for what, count, total in (
            ("pictures", len(faulty), len(faulty.union(self.pictures))),
            ("captions", len(captions), self._captions),
        ):
            if count > self.settings.allow * total:
                _, where, name, reason = next(one for one in self.left_out if one.what == what)
                allow = -(-count * 100 // total) / 100
                advice = f", or allow them with --allow {allow}" if allow < _MANY else ""
                raise DataError(
                    f"{where}: {name[:80]}: {reason}. In all {count:,} of {total:,} {what} cannot "
                    f"be used ({count / total:.1%}). Correct them{advice}"
                )
        self.pictures = {file: one for file, one in self.pictures.items() if one.captions}
        if not self.pictures:
            raise DataError(f"{self.form.files[0]}: no pictures with captions. Check the file")

    def _settle_splits(self) -> None:
        without = [picture for picture in self.pictures.values() if not picture.split]
        if self._lists is not None:
            self.notes.append(f"{len(without):,} pictures are in no list")
            self.pictures = {file: one for file, one in self.pictures.items() if one.split}
        elif self._explicit and without:
            raise DataError(
                f"{without[0].where}: {without[0].file} has no split, but others have. Write one "
                "split for each picture, or remove the splits"
            )
        given = splits.given_splits(
            [picture.split for picture in self.pictures.values()], self._explicit
        )
        for picture, split in zip(self.pictures.values(), given, strict=True):
            picture.split = split
        splits.check_sizes(given, self.settings.images)

    def _decode(self) -> None:
        waiting = [picture for picture in self.pictures.values() if picture.signature is None]

        def decoded(picture: Picture) -> Signature | Unusable:
            try:
                return _signature(picture.source or b"")
            except Unusable as reason:
                return reason

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = track(pool.map(decoded, waiting), "pictures", len(waiting))
            for picture, result in zip(waiting, results, strict=True):
                if isinstance(result, Unusable):
                    fault = LeftOut("pictures", picture.where, picture.file, str(result))
                    self.left_out.append(fault)
                    del self.pictures[picture.file]
                else:
                    picture.signature = result

    def _draw_splits(self) -> None:
        """Draw the splits that are not given, and report near-duplicates."""
        pictures = [self.pictures[file] for file in sorted(self.pictures)]
        groups = near_groups([picture.signature for picture in pictures if picture.signature])
        given = [picture.split for picture in pictures]
        splits.check_sizes(given, self.settings.images)
        files, seed = [picture.file for picture in pictures], self.settings.seed
        drawn = splits.draw(files, given, groups.tolist(), seed)
        for picture, split in zip(pictures, drawn, strict=True):
            picture.split = split
        missing = [split for split in SPLITS if split not in given]
        if missing:
            self.notes.append(f"seed {seed} draws the splits: {', '.join(missing)}")
        copies = len(pictures) - len(set(groups.tolist()))
        crossing = splits.crossing(drawn, groups.tolist())
        self.notes.append(
            f"{copies:,} near-duplicates of other pictures, {crossing:,} groups in several splits"
            if copies
            else "no near-duplicates among the pictures"
        )

    def rows(self) -> Iterator[Caption]:
        """Yield the rows of the caption table by split and file. An image's id is its path without
        ending, a caption's id IMAGE#k."""
        stems = {file: _word(str(PurePosixPath(file).with_suffix(""))) for file in self.pictures}
        uses = Counter(stems.values())
        order = [(SPLITS.index(str(one.split)), file) for file, one in self.pictures.items()]
        for _, file in sorted(order):
            picture = self.pictures[file]
            image_id = stems[file] if uses[stems[file]] == 1 else _word(file)
            for number, text in enumerate(picture.captions):
                caption_id = f"{image_id}#{number}"
                split, path = str(picture.split), f"{IMAGES}/{file}"
                yield Caption(image_id, caption_id, split, text, path, where=picture.where)

    def content(self) -> str:
        """Return a hash of the pictures, their captions and their splits."""
        digest = sha256()
        for file, picture in sorted(self.pictures.items()):
            digest.update(repr((file, picture.split, picture.captions, picture.signature)).encode())
        return digest.hexdigest()[:16]


def collect(settings: OwnSettings, target: Path | None, listed: Path) -> Collection:
    """Read the pictures and captions of a source; write the list of what was left out to `listed`.

    Args:
        target: the folder for pictures that are not files yet; None: nothing is copied.

    Raises:
        SourceError, ConfigError, DataError: the source cannot be used, or too much of the source.
    """
    captions = Path(settings.captions) if settings.captions else None
    form = look(Path(settings.images), captions, settings.format)
    collection = Collection(settings, form, target)
    try:
        collection.read()
    finally:
        remove(listed)
        if left_out := collection.left_out:
            rows = ("\t".join(map(single_spaced, row)) for row in (LeftOut._fields, *left_out))
            write_text(listed, "".join(f"{row}\n" for row in rows))
            say(f"{listed}: {len(left_out):,} pictures or captions were left out")
    return collection


def _signature(picture: Path | bytes) -> Signature:
    try:
        return signature(picture)
    except (DataError, OSError) as error:
        where = picture if isinstance(picture, Path) else "an image in memory"
        reason = str(error).removeprefix(f"{where}: ").removesuffix(f". {REMEDY}")
        raise Unusable(reason) from None


def _word(file: str) -> str:
    return re.sub(r"\s+", "_", composed(file))
