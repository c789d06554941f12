"""The settings of one's own data set, and the forms of captions, recognised by looking."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from manymatch.config.strict import Strict
from manymatch.datasets.image_files import image_files
from manymatch.datasets.own.files import is_below
from manymatch.datasets.own.readers import (
    TextFiles,
    form_of_object,
    has_captions,
    read_beside,
    read_coco_files,
    read_karpathy_files,
    read_tars,
)
from manymatch.datasets.own.record import Record
from manymatch.datasets.own.table import ENDINGS, Columns, NoColumns, misfit, read_tables
from manymatch.util.errors import ConfigError, DataError, SourceError, repeated
from manymatch.util.json_stream import MissingList, begins_with
from manymatch.util.regular_file import PICTURES

Format = Literal["table", "beside", "coco", "karpathy", "tars"]
FORMATS: tuple[str, ...] = get_args(Format)
_TARS = (".tar", ".tar.gz", ".tgz")
_EXPECTED = (
    "metadata.csv or another table, a.txt beside a.jpg, captions_*.json, Karpathy's JSON, tars or "
    "Parquet with pictures"
)
_OPTIONS = {
    "table": ("--file", "--text", "--split", "--encoding"),
    "beside": ("--encoding",),
    "tars": ("--text", "--split"),
}
"""The options of a form about columns and their encoding."""
_ONE_ENCODING = {".json", ".parquet"}
"""Endings of tables whose encoding the format says."""
_NAMES: dict[str, Format] = {"captions_*.json": "coco", "dataset*.json": "karpathy"}
Files = dict[Format, list[Path]]
"""The files of each form."""

_Text = Annotated[str, Field(min_length=1)]
"""An empty text would be taken for null."""


def _known_encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError:
        raise ValueError(f"'{name}' is no encoding of text. Write one such as cp1252") from None
    return name


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if (twice := repeated(names)) is not None:
        raise ValueError(f"'{twice}' is given twice. Give each once")
    return names


_Texts = Annotated[tuple[_Text, ...], AfterValidator(_each_once)]


class OwnSettings(Strict):
    """`sources.NAME` of params.yaml for a data set of one's own, as `manymatch init` writes it."""

    kind: Literal["own"]
    images: _Text
    """A folder of pictures, tars or Parquet tables, or one such file. The name is UTF-8."""
    captions: _Text | None = None
    """The file or folder of the captions; null: they are in `images`."""
    format: Format | None = None
    """Null: recognised by looking."""
    file: _Text | None = None
    """The column of the pictures' files; null: those whose name says so."""
    text: _Texts | None = None
    """The columns of captions; null: those whose name says so."""
    encoding: Annotated[_Text, AfterValidator(_known_encoding)] | None = None
    """The encoding of a table or of texts beside pictures, such as cp1252; null: UTF-8, or
    UTF-16 with its mark."""
    split: _Texts = ()
    """The column of splits, or lists of files such as `train.txt`."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Draws the splits that are not given."""
    allow: Annotated[float, Field(ge=0, lt=1)] = 0.01
    """The share of pictures, and of captions, that may be unusable."""
    content: str | None = None
    """A hash that `init` takes of the pictures and captions, so that DVC notices a change."""
    parser: _Text | None = None
    """spaCy's model of the captions' language; null: `scene_graphs.model`."""

    @property
    def lists(self) -> list[Path]:
        """The lists of files in `split`; a single name that is no file is a column."""
        lists = [Path(name) for name in self.split]
        return lists if len(lists) > 1 or any(path.is_file() for path in lists) else []

    @property
    def columns(self) -> Columns:
        """The columns that the user names."""
        column = None if self.lists or not self.split else self.split[0]
        return Columns(self.text, column, self.file, self.encoding)


@dataclass(frozen=True)
class Form:
    """A recognised form: the folder of pictures, and the files that hold the captions.

    `root`: the folder below which names of folders and files may say a split. `ignored`: files
    beside them that are not read.
    """

    format: Format
    folder: Path
    files: list[Path]
    root: Path
    ignored: list[Path] = field(default_factory=list)

    def records(self, columns: Columns) -> Iterator[Record]:
        """Yield the pictures with their captions in the order of the files.

        Raises:
            ConfigError: the user names columns or an encoding, but the form has none.
        """
        known = {*_OPTIONS.get(self.format, ())}
        if {path.suffix.lower() for path in self.files} <= _ONE_ENCODING:
            known.discard("--encoding")
        if unknown := [option for option in columns.given if option not in known]:
            raise ConfigError(
                f"{unknown[0]} {columns.given[unknown[0]]}: captions of the form '{self.format}', "
                f"as in {self.files[0].name}, have no such column or encoding. Leave the option "
                "out, or choose another form by --format"
            )
        return READERS[self.format](self, columns)


READERS: dict[Format, Callable[[Form, Columns], Iterator[Record]]] = {
    "table": lambda form, columns: read_tables(form.files, form.folder, form.root, columns),
    "beside": lambda form, columns: read_beside(form.folder, form.files[0], columns.encoding),
    "coco": lambda form, columns: read_coco_files(form.files, form.root),
    "karpathy": lambda form, columns: read_karpathy_files(form.files),
    "tars": lambda form, columns: read_tars(form.files, form.root, columns.text, columns.split),
}


def look(images: Path, captions: Path | None, wanted: str | None, columns: Columns) -> Form:
    """Return the form of the captions in `captions`, or without it in `images`.

    Files are recognised by their content: a file of another kind with the same ending is ignored.

    Raises:
        SourceError: a path does not exist, or no form or several forms fit.
    """
    for path in filter(None, (images, captions)):
        if not path.exists():
            raise SourceError(f"{path}: no such file or folder. Check the path")
    if captions not in (None, images) and not images.is_dir():
        raise SourceError(
            f"{images}: not a folder. With captions in another file, give the folder of pictures"
        )
    where = captions or images
    folder = images if images.is_dir() else images.parent
    forms, others = _forms(where, folder, columns)
    ignored = [path for files in others.values() for path in files]
    if wanted:
        files = forms.get(wanted) or others.get(wanted)  # type: ignore[call-overload]
        forms = {wanted: files} if files else {}  # type: ignore[dict-item]
    elif len(forms) > 1:
        forms.pop("beside", None)
    elif not forms:
        forms, ignored = others, []  # the reader says what the first file lacks
    if not forms:
        kind = f"form '{wanted}'" if wanted else f"captions; expected {_EXPECTED}"
        raise SourceError(
            f"{where}: no {kind}. Save a table as CSV UTF-8, and name the file of the captions by "
            "--captions"
        )
    if len(forms) > 1:
        raise SourceError(
            f"{where}: captions in several forms, {' and '.join(sorted(forms))}. Choose by --format"
        )
    ((name, files),) = forms.items()
    # Tables called `metadata` come before other tables, and those before Parquet.
    metadata = [path for path in files if path.stem == "metadata"]
    read = sorted(
        metadata or [path for path in files if path.suffix.lower() != ".parquet"] or files
    )
    root = where if where.is_dir() else where.parent
    root = folder if is_below(where, folder) else root
    return Form(name, folder, read, root, [*ignored, *sorted({*files} - {*read})])


def _forms(where: Path, folder: Path, columns: Columns) -> tuple[Files, Files]:
    """Return the files in the folder `where` that fit each form, and those that only look so."""
    fitting: Files = {}
    others: Files = {}
    if not where.is_dir():
        ending, is_tar = where.suffix.lower(), where.name.lower().endswith(_TARS)
        form: Format | None = "table" if ending in ENDINGS else "tars" if is_tar else None
        if ending == ".json":
            form = _kind(where, Columns())[0] or "coco"
        return ({form: [where]} if form else {}), {}
    texts = TextFiles(where)
    pictures = [path.relative_to(folder) for path in image_files(folder, PICTURES)]
    if any(map(texts.find, pictures)):
        fitting["beside"] = [where]
    stems = {path.with_suffix("") for path in pictures}
    for path in image_files(where, (*ENDINGS, *_TARS, ".json")):
        names_picture = path.relative_to(where).with_suffix("") in stems
        if names_picture and path.suffix.lower() in (".txt", ".json"):
            continue
        form, fits = _kind(path, columns)
        if form:
            (fitting if fits else others).setdefault(form, []).append(path)
    return fitting, others


def _kind(path: Path, columns: Columns) -> tuple[Format | None, bool]:
    """Return the form of a file, and whether the content fits the form. A damaged file with the
    usual name fits, so that its reader says what is wrong."""
    if path.name.lower().endswith(_TARS):
        return "tars", has_captions(path)
    ending = path.suffix.lower()
    if ending == ".json" and not begins_with(path, b"["):
        named = next((form for name, form in _NAMES.items() if path.match(name)), None)
        try:
            form = form_of_object(path)
        except MissingList:
            return named, False
        except DataError:
            return named or "coco", named is not None
        return form or named, form is not None
    fault = misfit(path, columns)
    if ending == ".txt" and fault:
        return None, False
    return "table", not isinstance(fault, NoColumns)
