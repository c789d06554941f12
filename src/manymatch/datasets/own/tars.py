"""WebDataset tars, as img2dataset writes them: KEY.jpg with KEY.txt or KEY.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

from manymatch.datasets.own.record import (
    Record,
    caption_columns,
    split_of_path,
    split_of_word,
    texts,
)
from manymatch.fetching.archive_members import Member, archive_faults, opened_archive
from manymatch.foreign.regular_file import PICTURES

_MAX_BYTES = {".txt": 2**20, ".json": 2**20} | dict.fromkeys(PICTURES, 2**28)


def read_tars(paths: Sequence[Path], text: Sequence[str] | None) -> Iterator[Record]:
    """Yield the samples. The files of a sample follow each other, as in every WebDataset.

    Raises:
        SourceError: a tar is damaged or cut off.
    """
    for path in paths:
        path_split = split_of_path(path.name)
        with archive_faults(path), opened_archive(path) as members:
            files = (member for member in members if _ending(member) in _MAX_BYTES)
            for key, sample in groupby(files, key=lambda member: _key(member.name)):
                yield _record(key, sample, f"{path}: {key}", path_split, text)


def _key(name: str) -> str:
    return PurePosixPath(name).with_suffix("").as_posix()


def _ending(member: Member) -> str:
    return PurePosixPath(member.name).suffix.lower() if not member.is_folder else ""


def _record(
    key: str,
    members: Iterator[Member],
    where: str,
    path_split: str | None,
    text: Sequence[str] | None,
) -> Record:
    name, picture, parts = key, None, dict[str, bytes]()
    fault = None
    for member in members:
        ending = _ending(member)
        if member.fault or member.size > _MAX_BYTES[ending]:
            fault = f"{member.name}: {member.fault or f'{member.size:,} bytes'}"
            continue
        with member.open() as stream:
            content = stream.read()
        if ending in PICTURES:
            name, picture = PurePosixPath(member.name).as_posix(), content
        else:
            parts[ending] = content
    try:
        metadata = json.loads(parts.get(".json", b"{}"))
        captions = _captions(metadata, parts.get(".txt"), text)
    except (ValueError, RecursionError):
        metadata, captions, fault = {}, [], fault or "the text or JSON file is damaged"
    if metadata.get("status", "success") != "success":
        fault = "the picture was not downloaded"
    if picture is None or (not captions and not fault):
        fault = fault or f"no {'caption' if picture else 'picture'} follows in the tar"
    split = split_of_word(str(metadata.get("split")))
    return Record(name, captions, where, split, path_split, picture, fault)


def _captions(
    metadata: dict[str, Any], plain: bytes | None, wanted: Sequence[str] | None
) -> list[str]:
    if not isinstance(metadata, dict):
        raise ValueError("not an object")
    if plain is not None and not wanted:
        return texts(plain.decode("utf-8-sig"))
    columns = wanted or caption_columns(list(metadata))
    return [text for column in columns for text in texts(metadata.get(column))]
