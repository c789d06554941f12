"""Readers of captions beside pictures, of COCO's and Karpathy's JSON files, and of WebDataset tars.

Each reader yields a `Record` for each picture. `table.py` has the reader of tables.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from manymatch.datasets.coco.annotations import captions_by_image
from manymatch.datasets.fetching.archives import Member, opened_archive
from manymatch.datasets.image_files import image_files, is_hidden
from manymatch.datasets.karpathy import read_all
from manymatch.datasets.own.files import composed
from manymatch.datasets.own.record import (
    Record,
    Unusable,
    caption_columns,
    split_column,
    split_of_cell,
    split_of_path,
    texts,
)
from manymatch.util.errors import DataError, SourceError
from manymatch.util.json_file import unique_members
from manymatch.util.json_stream import elements
from manymatch.util.regular_file import PICTURES, UNREADABLE
from manymatch.util.text_lines import numbered_lines

_MAX_BYTES = {".txt": 2**20, ".json": 2**20} | dict.fromkeys((*PICTURES, *UNREADABLE), 2**28)
_MAX_TEXTS = 2**29
"""Bytes of the text and JSON files of one tar, which are in memory together."""
_LOOK = 100
"""The members of a tar among which a text or JSON file says that the tar has captions."""
Parts = dict[str, dict[str, bytes | str]]
"""By key: the content of each text or JSON file by ending, or the fault of a file as a text."""


# --- `a.txt`, whose lines are the captions of `a.jpg` ----------------------------------------


class TextFiles:
    """The text files below a folder by their path without the ending."""

    def __init__(self, folder: Path) -> None:
        self._exact: dict[str, list[Path]] = {}
        self._files: dict[str, list[Path]] = {}
        for path in image_files(folder, (".txt",)):
            stem = path.relative_to(folder).with_suffix("").as_posix()
            self._exact.setdefault(composed(stem), []).append(path)
            self._files.setdefault(composed(stem).lower(), []).append(path)

    def find(self, picture: Path) -> list[Path]:
        """Return the text files of a picture: one, or several that differ in case."""
        stem = composed(picture.with_suffix("").as_posix())
        return self._exact.get(stem) or self._files.get(stem.lower(), [])

    def __bool__(self) -> bool:
        return bool(self._exact)


def read_beside(folder: Path, captions: Path, encoding: str | None = None) -> Iterator[Record]:
    """Yield a record for each picture below `folder` with a text file in `encoding` below
    `captions`."""
    texts = TextFiles(captions)
    for path in image_files(folder, (*PICTURES, *UNREADABLE)):
        name = path.relative_to(folder)
        files = texts.find(name)
        if not files:
            continue
        lines, fault = list[str](), None
        if len(files) > 1:
            fault = f"{len(files)} files of captions: {files[0].name}, {files[1].name}"
        else:
            try:
                lines = [line for _, line in numbered_lines(files[0], encoding)]
            except (DataError, OSError) as error:
                fault = str(error)
        yield Record(name.as_posix(), lines, str(files[0]), fault=fault)


# --- COCO's files of captions, and Karpathy's JSON files -------------------------------------


def form_of_object(path: Path) -> Literal["coco", "karpathy"] | None:
    """Return whose form a JSON object has: images with sentences, or annotations with a caption.

    Raises:
        DataError: the file is damaged, or has no such lists (`MissingList`).
    """
    for name, _, value in elements(path, ("images", "annotations")):
        keys = value.keys() if isinstance(value, dict) else ()
        if name == "annotations":
            return "coco" if "caption" in keys else None  # boxes or other annotations
        if "sentences" in keys:
            return "karpathy"
    return None


def read_karpathy_files(paths: Sequence[Path]) -> Iterator[Record]:
    """Yield the images with captions in the order of the files.

    Pictures of one name in several folders are told apart by `filepath`, which may also be a folder
    of the authors.
    """
    for path in paths:
        for folder, image in read_all(path):
            if image.captions:
                texts = [line.text for line in image.captions]
                name = f"{folder}/{image.file}" if folder else image.file
                yield Record(name, texts, image.captions[0].where, image.split)


def read_coco_files(paths: Sequence[Path], root: Path) -> Iterator[Record]:
    """Yield the images with captions. A file such as `captions_val2017.json` is of one split, and
    so is `val/captions.json` below `root`."""
    for path in paths:
        captions, names = captions_by_image(path)
        split = split_of_path(path.relative_to(root).as_posix())
        for image, lines in captions.items():
            fault = f"no image of the file has the id {image}" if image not in names else None
            name = names.get(image, f"{image:012}.jpg")
            if not names:  # a file of annotations alone: COCO's own names
                fault = None
            texts = [line.text for line in lines]
            yield Record(name, texts, lines[0].where, path_split=split, fault=fault)


# --- WebDataset tars, as img2dataset writes them: KEY.jpg with KEY.txt or KEY.json -----------


def has_captions(path: Path) -> bool:
    """Return whether the first files of a tar include a text or JSON file. A damaged tar counts, so
    that its reader says what is wrong."""
    try:
        with opened_archive(path) as members:
            files = islice(filter(_ending, members), _LOOK)
            return any(_ending(member) in (".txt", ".json") for member in files)
    except SourceError:
        return True


def read_tars(
    paths: Sequence[Path], root: Path, text: Sequence[str] | None, split: str | None
) -> Iterator[Record]:
    """Yield the samples in the order of the pictures.

    A tar is read twice, first the texts: so the files of a sample may lie anywhere in the tar.

    Args:
        root: the folder below which names of folders and tars may say a split.
        text: the keys of the captions in KEY.json; None: KEY.txt, else those that are recognised.
        split: the key of the split in KEY.json; None: `split`, if there is one.

    Raises:
        SourceError, DataError: a tar is damaged or cut off, or has too many texts.
    """
    for path in paths:
        path_split = split_of_path(path.relative_to(root).as_posix())
        parts, seen = _texts(path), set[str]()
        for name, content in _contents(path, (*PICTURES, *UNREADABLE)):
            key = _key(name)
            fault = content if isinstance(content, str) else None
            if key in seen:
                fault = fault or f"a second picture of {key}"
            seen.add(key)
            picture = content if isinstance(content, bytes) else None
            file, where = PurePosixPath(name).as_posix(), f"{path}: {key}"
            record = Record(file, (), where, None, path_split, picture, fault)
            yield _pair_captions(record, parts.get(key, {}), text, split)
        for key in [key for key in parts if key not in seen]:
            record = Record(key, (), f"{path}: {key}", path_split=path_split)
            yield _pair_captions(record, parts[key], text, split)


def _contents(path: Path, endings: Sequence[str]) -> Iterator[tuple[str, bytes | str]]:
    """Yield name and content of each file with one of the endings, or its fault as a text."""
    with opened_archive(path) as members:
        for member in members:
            ending = _ending(member)
            if ending not in endings:
                continue
            if member.fault or member.size > _MAX_BYTES[ending]:
                yield member.name, f"{member.name}: {member.fault or f'{member.size:,} bytes'}"
            else:
                with member.open() as stream:
                    content = stream.read()
                yield member.name, content


def _texts(path: Path) -> Parts:
    parts: Parts = {}
    size = 0
    for name, content in _contents(path, (".txt", ".json")):
        size += len(content)
        if size > _MAX_TEXTS:
            raise DataError(
                f"{path}: more than {_MAX_TEXTS:,} bytes of texts. Split the tar into several"
            )
        files, ending = parts.setdefault(_key(name), {}), PurePosixPath(name).suffix.lower()
        files[ending] = f"a second file {name}" if ending in files else content
    return parts


def _key(name: str) -> str:
    return PurePosixPath(name).with_suffix("").as_posix()


def _ending(member: Member) -> str:
    """The ending in lower case; empty for folders and for left-overs of other systems."""
    name = PurePosixPath(member.name)
    return "" if member.is_folder or is_hidden(name) else name.suffix.lower()


def _pair_captions(
    record: Record, parts: dict[str, bytes | str], text: Sequence[str] | None, split: str | None
) -> Record:
    fault = record.fault or next((part for part in parts.values() if isinstance(part, str)), None)
    content = {ending: part for ending, part in parts.items() if isinstance(part, bytes)}
    metadata: dict[str, Any] = {}
    captions: list[str] = []
    try:
        plain = content.get(".json", b"{}").decode("utf-8-sig")
        metadata = json.loads(plain, object_pairs_hook=unique_members)
        if not isinstance(metadata, dict):
            metadata = {}
            raise ValueError("not an object")
        columns = text or caption_columns(list(metadata))
        if ".txt" in content and not text:
            captions = texts(content[".txt"].decode("utf-8-sig"))
        else:
            captions = [one for column in columns for one in texts(metadata.get(column))]
    except Unusable as reason:
        fault = fault or str(reason)
    except (ValueError, RecursionError):
        fault = fault or "the text or JSON file is damaged"
    # img2dataset's status. With a picture, the key is another program's.
    if record.picture is None and metadata.get("status", "success") != "success":
        return replace(record, absent=True)
    if record.picture is None or not captions:
        fault = fault or f"no {'caption' if record.picture else 'picture'} of this name in the tar"
    if split and split not in metadata:
        fault = fault or f"no '{split}' in the JSON file"
    cell = metadata.get(split or split_column(list(metadata)))
    given = None if cell is None else split_of_cell(cell, record.where)
    return replace(record, captions=captions, split=given, fault=fault)
