"""What every form of a data set gives: a picture's name, its captions and its split."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

REFUSED = (".svg", ".heic", ".avif")
"""Endings of pictures that are listed as unusable."""
_SPLIT_WORDS = {
    **dict.fromkeys(("train", "training", "restval"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
_WORDS = re.compile(r"[a-z]+")
_FILES = tuple(
    re.compile(words, re.I)
    for words in (
        "file_?name",
        "file|image_?file",
        "file_?path",  # in Karpathy's tables the folder of `filename`
        "path|(image|img)(_?(name|path))?",
    )
)
_NUMBERED = r"s?([ _-]?\d+)?"
_TEXTS = tuple(
    re.compile(word + _NUMBERED, re.I)
    for word in ("caption", "text", "sentences_raw|sentence", "raw", "description", "comment")
)
_KEYS = ("raw", "caption", "text")
"""The keys of a caption's text where a caption is an object."""


@dataclass(frozen=True)
class Record:
    """A picture with some or all of its captions, as a form of the data set lists it.

    `name` is the path of the picture below the folder of pictures, or only the file's name.
    """

    name: str
    captions: Sequence[str]
    where: str
    split: str | None = None
    """The split that the form gives."""
    path_split: str | None = None
    """The split that the name of a folder or file says, which may mean something else."""
    picture: bytes | None = None
    """None: the file in the folder of pictures that is called `name`."""
    fault: str | None = None
    """Why the record cannot be used, where the form itself notices."""


def split_of_word(word: str) -> str | None:
    """Return the split that a word such as `val` or `dev` means, or None."""
    return _SPLIT_WORDS.get(word.strip().lower())


def split_of_path(path: str) -> str | None:
    """Return the split that a path names, such as `train2017/x` or `test-00000-of-00002.parquet`.

    Only the folders and the beginning or end of the file's stem count.
    """
    *folders, name = PurePosixPath(path).parts
    words = [_WORDS.findall(part.lower()) for part in (*folders, PurePosixPath(name).stem)]
    candidates = [word for part in words if len(part) <= 2 for word in part]
    return next(filter(None, map(split_of_word, reversed(candidates))), None)


def file_columns(names: Sequence[str]) -> list[str]:
    """Return the columns that can hold a picture or its file's name, the likeliest first."""
    return [name for kind in _FILES for name in names if kind.fullmatch(name)]


def caption_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of captions: all of one kind, such as `caption_1` and `caption_2`."""
    kinds = ([name for name in names if kind.fullmatch(name)] for kind in _TEXTS)
    return next(filter(None, kinds), [])


def texts(cell: Any) -> list[str]:
    """Return the captions in a cell: a text with a caption in each line, a list, or a list that is
    written as text (`["a", "b"]`). Blank lines and cells are no captions."""
    if cell is None or isinstance(cell, float):
        return []
    if isinstance(cell, dict):
        return texts(next((cell[key] for key in _KEYS if key in cell), None))
    if isinstance(cell, list | tuple):
        return [text for part in cell for text in texts(part)]
    text = cell.decode("utf-8-sig", "replace") if isinstance(cell, bytes) else str(cell)
    if text.startswith(('["', "['")) and text.rstrip().endswith("]"):
        for read in (json.loads, ast.literal_eval):
            try:
                return texts(read(text))
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    return list(filter(str.strip, text.splitlines()))
