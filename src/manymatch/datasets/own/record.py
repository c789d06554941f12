"""What every form of a data set gives: a picture's name, its captions and its split; and the list
of what cannot be used."""

import ast
import json
import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from manymatch.datasets.image_files import single_spaced
from manymatch.util.errors import DataError, printable
from manymatch.util.files import remove, write_text

_SPLIT_WORDS = {
    **dict.fromkeys(("train", "training", "trainval", "restval"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
_NEUTRAL = re.compile(
    "(image|img|picture|photo|caption|annotation|file|id|set|split|list|part|shard)s?|metadata"
    "|data|dataset|of|jpe?g|png|karpathy|coco|vqa"
)
"""Words beside that of a split in a name such as `train_images` or `test-00000-of-00002`."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_JOINED = re.compile(r"(train|valid|val|dev|test)(?:images|image|imgs|set|split|files|list|ids)")
_FILES = tuple(
    re.compile(words, re.I)
    for words in (
        "file[ _-]?name",
        "file|image[ _-]?file",
        "file[ _-]?path",  # in Karpathy's tables the folder of `filename`
        "path|(image|img)([ _-]?(name|path))?",
        "(photo|picture|pic|foto|bild|imagen)([ _-]?(file|name|path|datei))?|(bild)?datei(name)?"
        "|fichier|archivo|arquivo|immagine|bestand|afbeelding|plik|obraz|файл|изображение|文件名?"
        "|图片|图像|ファイル名?|画像",
        "jpe?g|png|webp",  # the pictures themselves, as img2dataset writes them
    )
)
_NUMBERED = r"s?([ _-]?\d+)?"
_TEXTS = tuple(
    re.compile(f"({words}){_NUMBERED}", re.I)
    for words in (
        "caption",
        "text",
        "sentences_raw|sentence",
        "raw",
        "description",
        "comment",
        "(bild)?beschreibung(en)?|(bild)?unterschrift(en)?|l[eé]gende|descripci[oó]n|descri[cç][aã]o"
        "|descrizione|didascalia|beschrijving|onderschrift|opis|podpis|описание|подпись|描述|说明"
        "|説明|キャプション",
        "alt([ _-]?text)?|title|titel",
    )
)
_KEYS = ("raw", "caption", "text")
"""The keys of a caption's text where a caption is an object."""
_DEEPEST = 20
"""Lists of captions inside each other. No form nests more than two."""
_LONGEST = 2**20
"""Characters of a cell."""
_OPENINGS = ('["', "['", '("', "('")
_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\"""", re.S)
_LITERALS = re.compile(rf"(?:[, \t\r\n]|{_LITERAL.pattern})*+", re.S)
"""Texts in quotes, with commas and spaces between. `*+` does not try again with fewer: a quote that
is not closed would be searched for at every sign."""
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
"""Other signs that Unicode calls line ends, such as U+2028, stand inside captions."""


class Unusable(Exception):
    """Why a picture or caption is left out."""


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
    absent: bool = False
    """The form says that the picture was not downloaded: it is no part of the data set."""


def split_of_word(word: str) -> str | None:
    """Return the split that a word such as `val` or `dev` means, or None."""
    return _SPLIT_WORDS.get(word.strip().lower())


def split_of_cell(cell: Any, where: str) -> str:
    """Return the split that a cell names.

    Raises:
        DataError: it names none.
    """
    split = split_of_word(str(cell))
    if split is None:
        raise DataError(
            f"{where}: unknown split {str(cell)!a:.60}. Write train, validation or test"
        )
    return split


def split_of_folders(path: PurePosixPath) -> str | None:
    """Return the split that the innermost of the folders names, such as `train2017`, or None.

    The other words of the folder's name say nothing, as in `test_images`. So `train station` is no
    split.
    """
    words = filter(lambda words: len(words) == 1, map(_words, reversed(path.parts)))
    return next(filter(None, (_split_in(word) for (word,) in words)), None)


def split_of_path(path: str) -> str | None:
    """Return the split that a path names, such as `train2017/x` or `test-00000-of-00002.parquet`.

    In the file's name the first or last word counts: `birds_train.csv`.
    """
    name = PurePosixPath(path)
    split, _ = split_at_end(name.stem)
    return split or split_of_folders(name.parent) or split_at_end(name.parent.name)[0]


def split_at_end(name: str) -> tuple[str | None, list[str]]:
    """Return the split that the first or last word of a name says, if only one says a split, and
    the other words."""
    words = _words(name)
    ends = {word: _split_in(word) for word in {*words[:1], *words[-1:]}}
    splits = set(ends.values()) - {None}
    if len(splits) != 1 or (len(words) > 1 and re.search(r"\s", name)):
        return None, words
    return splits.pop(), [word for word in words if not ends.get(word)]


def _words(part: str) -> list[str]:
    words = (word.lower() for word in _WORDS.findall(part))
    return [word for word in words if len(word) > 1 and not _NEUTRAL.fullmatch(word)]


def _split_in(word: str) -> str | None:
    joined = _JOINED.fullmatch(word)
    return split_of_word(joined[1] if joined else word)


def file_columns(names: Sequence[str]) -> list[str]:
    """Return the columns that can hold a picture or its file's name, the likeliest first."""
    return [name for kind in _FILES for name in names if kind.fullmatch(name)]


def caption_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of captions: all of one kind, such as `caption_1` and `caption_2`."""
    kinds = ([name for name in names if kind.fullmatch(name)] for kind in _TEXTS)
    return next(filter(None, kinds), [])


def split_column(names: Sequence[str]) -> str:
    """Return the column or key of splits: `split`, in any case."""
    columns = [name for name in names if name.lower() == "split"]
    return "split" if "split" in columns or not columns else columns[0]


def texts(cell: Any, depth: int = 0) -> list[str]:
    """Return the captions in a cell: a text with a caption in each line, a list, or a list that is
    written as text (`["a", "b"]`, or as NumPy prints lists: `['a' 'b']`). Blank lines and cells are
    no captions.

    Raises:
        Unusable: lists are nested deeper than any form nests them, the text is very long, or an
            object or a map of Arrow has other keys than captions have.
    """
    if depth > _DEEPEST:
        raise Unusable(f"captions in more than {_DEEPEST} lists inside each other")
    if cell is None or isinstance(cell, float):
        return []
    if isinstance(cell, dict):
        if cell and not any(key in cell for key in _KEYS):
            raise Unusable(f"an object with the keys {', '.join(map(str, cell))[:60]} as a caption")
        return texts(next((cell[key] for key in _KEYS if key in cell), None), depth + 1)
    if isinstance(cell, list) and any(isinstance(part, tuple) for part in cell):
        raise Unusable("a map, whose keys are no captions. Write a list of captions")
    if isinstance(cell, list | tuple):
        return [text for part in cell for text in texts(part, depth + 1)]
    text = cell.decode("utf-8-sig", "replace") if isinstance(cell, bytes) else str(cell)
    if len(text) > _LONGEST:
        raise Unusable(f"a text of {len(text):,} characters. Write a caption in each line")
    if text.startswith(_OPENINGS) and text.rstrip().endswith(("]", ")")):
        for read in (json.loads, _flat_list, ast.literal_eval):
            try:
                with warnings.catch_warnings(action="ignore"):  # about signs such as \d
                    value = read(text)
                return texts(value, depth + 1)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    return list(filter(str.strip, _LINE_ENDS.split(text)))


def _flat_list(text: str) -> list[str]:
    """The texts in a list as Python or NumPy prints lists. Python's own reader joins texts without
    a comma between them."""
    inner = text.strip()[1:-1]
    if not _LITERALS.fullmatch(inner):
        raise ValueError("not only texts")
    return list(map(ast.literal_eval, _LITERAL.findall(inner)))


# --- the pictures and captions that are left out ------------------------------------------------

_MANY = 0.5
"""The share of unusable pictures or captions that no advice says to allow."""


class LeftOut(NamedTuple):
    """A picture or caption that is left out. `what`: pictures or captions."""

    what: str
    where: str
    name: str
    reason: str


def refuse(
    left_out: Sequence[LeftOut], pictures: Collection[str], captions: int, allow: float
) -> None:
    """Check that at most the share `allow` of pictures and of captions is left out.

    Args:
        pictures: the names of the usable pictures.
        captions: the number of all captions.

    Raises:
        DataError: more is left out. The message names the first.
    """
    names = {one.name for one in left_out if one.what == "pictures"}
    texts = [one for one in left_out if one.what == "captions"]
    for what, count, total in (
        ("pictures", len(names), len(names.union(pictures))),
        ("captions", len(texts), captions),
    ):
        if count > allow * total:
            _, where, name, reason = next(one for one in left_out if one.what == what)
            share = -(-count * 100 // total) / 100
            advice = f", or allow them with --allow {share}" if share < _MANY else ""
            raise DataError(
                f"{where}: {name[:80]}: {reason}. In all {count:,} of {total:,} {what} cannot "
                f"be used ({count / total:.1%}). Correct them{advice}"
            )


def write_list(left_out: Sequence[LeftOut], listed: Path) -> None:
    """Write the list, a table with tabs, or remove the list of an earlier run.

    Names from the disk that are not UTF-8 are written with escapes.
    """
    remove(listed)
    if left_out:
        rows = (
            "\t".join(printable(single_spaced(cell)) for cell in row)
            for row in (LeftOut._fields, *left_out)
        )
        write_text(listed, "".join(f"{row}\n" for row in rows))


def summary(left_out: Sequence[LeftOut], listed: Path) -> str:
    """Return how many are left out, and where they are listed."""
    return f"{listed}: {len(left_out):,} pictures or captions were left out"
