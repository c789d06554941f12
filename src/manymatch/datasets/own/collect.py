"""From the records of a form to checked pictures in splits, and a list of what is left out."""

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from manymatch.batch.caption_text import caption_fault, has_markup, placeholders_as_words
from manymatch.datasets.base import SPLITS, Caption
from manymatch.datasets.image_files import IMAGES, single_spaced
from manymatch.datasets.own import splits
from manymatch.datasets.own.files import (
    PictureFiles,
    Signature,
    TakenNames,
    composed,
    duplicate_groups,
    signature,
    word,
)
from manymatch.datasets.own.forms import Form, OwnSettings, look
from manymatch.datasets.own.record import (
    LeftOut,
    Record,
    Unusable,
    refuse,
    split_of_folders,
    summary,
    write_list,
)
from manymatch.util.errors import DataError
from manymatch.util.images import REMEDY
from manymatch.util.progress import say, track


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
    fault: str = ""


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
    near_duplicates: dict[str, Any] = field(default_factory=dict)
    """What `splits.near_duplicates` returns of the images' ids."""
    _captions: int = 0
    _explicit: bool = False
    """Whether splits are given, and not only said by names of folders and files."""
    _absent: int = 0
    """Pictures that the form says were not downloaded."""
    _names: TakenNames = field(default_factory=TakenNames)

    @property
    def keeps_pictures(self) -> bool:
        """Whether the pictures stay in the user's folder."""
        return any(picture.source for picture in self.pictures.values())

    @cached_property
    def _files(self) -> PictureFiles:
        return PictureFiles(self.form.folder)

    @cached_property
    def _lists(self) -> splits.Lists | None:
        return splits.Lists(self.settings.lists) if self.settings.lists else None

    def read(self) -> None:
        """Read all records, then decode the pictures of the user's folder.

        The captions and splits are checked first, because decoding takes long.
        """
        for record in track(self.form.records(self.settings.columns), "captions"):
            self._enter(record)
        self._refuse()
        self._note_rest()
        self._settle_splits()
        self._decode()
        self._refuse()
        self._draw_splits()

    def _enter(self, record: Record) -> None:
        if record.absent:
            self._absent += 1
            return
        try:
            if record.fault:
                raise Unusable(record.fault)
            picture = self._picture(record)
        except Unusable as reason:
            self.left_out.append(LeftOut("pictures", record.where, record.name, str(reason)))
            return
        split = _split_of(record, picture.file)
        if self._lists is None and split != picture.split:
            raise DataError(
                f"{record.where}: {record.name} is in two splits, {picture.split} and {split}. "
                "Write one split for each picture"
            )
        for text in record.captions or [""]:
            fault = "HTML in a caption. Write plain text" if has_markup(text) else None
            caption = single_spaced(composed(placeholders_as_words(text)))
            fault = fault or caption_fault(caption)
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
        self._names.take(file)
        self._explicit |= record.split is not None
        picture = Picture(file, _split_of(record, file), record.where, None, digest)
        if content is not None:
            picture.signature = _signature(content)
            if self.target is not None:
                path = self.target / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        else:
            picture.source = self.form.folder / file
        self.pictures[file] = picture
        return picture

    def _refuse(self) -> None:
        """Check that at most the allowed shares of pictures and captions are left out."""
        refuse(self.left_out, self.pictures, self._captions, self.settings.allow)
        self.pictures = {file: one for file, one in self.pictures.items() if one.captions}
        if not self.pictures:
            raise DataError(f"{self.form.files[0]}: no pictures with captions. Check the file")

    def _note_rest(self) -> None:
        """Say which pictures and files are no part of the data set, though nothing is wrong."""
        if self._absent:
            self.notes.append(f"{self._absent:,} pictures were not downloaded, says their status")
        without = self._files.not_found if self.keeps_pictures else []
        if without:
            self.notes.append(
                f"{len(without):,} of {len(self._files):,} pictures in {self.form.folder} have no "
                f"caption, such as {without[0]}"
            )
        if ignored := self.form.ignored:
            self.notes.append(f"{len(ignored):,} other files are not read, such as {ignored[0]}")

    def _settle_splits(self) -> None:
        pictures, lists = list(self.pictures.values()), self._lists
        if lists is not None:
            for picture, split in zip(pictures, lists.splits(list(self.pictures)), strict=True):
                picture.split = split
            self.pictures = {picture.file: picture for picture in pictures if picture.split}
            self.notes.append(
                f"splits: from the lists, which lack {len(pictures) - len(self.pictures):,} "
                f"pictures, and name {lists.unused:,} without a caption"
            )
        elif self._explicit and (without := [one for one in pictures if not one.split]):
            raise DataError(
                f"{without[0].where}: {without[0].file} has no split, but others have. Write one "
                "split for each picture, or remove the splits"
            )
        said = [picture.split for picture in self.pictures.values()]
        explicit = self._explicit or lists is not None
        given, notes = splits.settled(list(self.pictures), said, explicit)
        self.notes += notes if lists is None else []
        for picture, split in zip(self.pictures.values(), given, strict=True):
            picture.split = split
        splits.check_sizes(given, self.settings.images)

    def _decode(self) -> None:
        waiting = [picture for picture in self.pictures.values() if picture.signature is None]

        def decode(picture: Picture) -> None:
            try:
                picture.signature = _signature(picture.source or b"")
            except Unusable as reason:
                picture.fault = str(reason)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            decoded = track(pool.map(decode, waiting), "pictures", len(waiting))
            for picture, _ in zip(waiting, decoded, strict=True):
                if picture.fault:
                    fault = LeftOut("pictures", picture.where, picture.file, picture.fault)
                    self.left_out.append(fault)
                    del self.pictures[picture.file]

    def _draw_splits(self) -> None:
        """Draw the splits that are not given, and report near-duplicates."""
        pictures = [self.pictures[file] for file in sorted(self.pictures)]
        given = [picture.split for picture in pictures]
        groups = duplicate_groups([one.signature for one in pictures if one.signature]).tolist()
        splits.check_sizes(given, self.settings.images)
        seed = self.settings.seed
        drawn = splits.draw([picture.file for picture in pictures], given, groups, seed)
        for picture, split in zip(pictures, drawn, strict=True):
            picture.split = split
        if missing := [split for split in SPLITS if split not in given]:
            self.notes.append(f"seed {seed} draws the splits: {', '.join(missing)}")
        ids = [self._ids[picture.file] for picture in pictures]
        duplicates = self.near_duplicates = splits.near_duplicates(ids, drawn, groups)
        self.notes.append(
            f"{duplicates['copies']:,} near-duplicates of other pictures, "
            f"{duplicates['crossing']:,} groups in several splits"
            if duplicates["copies"]
            else "no near-duplicates among the pictures"
        )

    @cached_property
    def _ids(self) -> dict[str, str]:
        """The id of each picture's image, by file."""
        ids = {file: word(str(PurePosixPath(file).with_suffix(""))) for file in self.pictures}
        while True:  # the whole name of a picture may be the stem of another: a.jpg, a.jpg.png
            uses = Counter(ids.values())
            doubled = {file for file, one in ids.items() if uses[one] > 1 and one != word(file)}
            if not doubled:
                return ids
            ids |= {file: word(file) for file in doubled}

    def rows(self) -> Iterator[Caption]:
        """Yield the rows of the caption table by split and file. An image's id is its path without
        ending, a caption's id IMAGE#k."""
        order = [(SPLITS.index(str(one.split)), file) for file, one in self.pictures.items()]
        for _, file in sorted(order):
            picture = self.pictures[file]
            image_id = self._ids[file]
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
    form = look(Path(settings.images), captions, settings.format, settings.columns)
    collection = Collection(settings, form, target)
    try:
        collection.read()
    finally:
        write_list(collection.left_out, listed)
        if collection.left_out and target is None:
            say(summary(collection.left_out, listed))
    return collection


def _split_of(record: Record, file: str) -> str | None:
    return record.split or record.path_split or split_of_folders(PurePosixPath(file).parent)


def _signature(picture: Path | bytes) -> Signature:
    try:
        return signature(picture)
    except (DataError, OSError) as error:
        where = picture if isinstance(picture, Path) else "an image in memory"
        reason = str(error).removeprefix(f"{where}: ").removesuffix(f". {REMEDY}")
        raise Unusable(reason) from None
