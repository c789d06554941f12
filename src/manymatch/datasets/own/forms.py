"""The forms in which people hold pictures with captions, recognised by looking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from manymatch.datasets.image_files import image_files
from manymatch.datasets.own.beside import read_beside
from manymatch.datasets.own.json_files import is_karpathy, read_coco_files, read_karpathy_files
from manymatch.datasets.own.record import Record
from manymatch.datasets.own.table import ENDINGS, Columns, read_tables
from manymatch.datasets.own.tars import read_tars
from manymatch.foreign.regular_file import PICTURES
from manymatch.system.errors import SourceError

Format = Literal["table", "beside", "coco", "karpathy", "tars"]
FORMATS: tuple[str, ...] = get_args(Format)
_EXPECTED = (
    "metadata.csv or another table, a.txt beside a.jpg, captions_*.json, Karpathy's JSON, tars or "
    "Parquet with pictures"
)


@dataclass(frozen=True)
class Form:
    """A recognised form: the folder of pictures, and the files that hold the captions."""

    format: Format
    folder: Path
    files: list[Path]

    def records(self, columns: Columns) -> Iterator[Record]:
        """Yield the pictures with their captions in the order of the files."""
        readers: dict[str, Callable[[], Iterator[Record]]] = {
            "table": lambda: read_tables(self.files, self.folder, columns),
            "beside": lambda: read_beside(self.folder, self.files[0]),
            "coco": lambda: read_coco_files(self.files),
            "karpathy": lambda: read_karpathy_files(self.files),
            "tars": lambda: read_tars(self.files, columns.text),
        }
        return readers[self.format]()


def look(images: Path, captions: Path | None, wanted: str | None = None) -> Form:
    """Return the form of the captions in `captions`, or without it in `images`.

    Raises:
        SourceError: a path does not exist, or no form or several forms fit.
    """
    for path in filter(None, (images, captions)):
        if not path.exists():
            raise SourceError(f"{path}: no such file or folder. Check the path")
    where = captions or images
    folder = images if images.is_dir() else images.parent
    forms = _forms(where, folder) if where.is_dir() else _form_of_file(where)
    if wanted:
        forms = {name: files for name, files in forms.items() if name == wanted}
    elif len(forms) > 1:
        forms.pop("beside", None)
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
    return Form(name, folder, files)


def _form_of_file(path: Path) -> dict[Format, list[Path]]:
    ending = path.suffix.lower()
    if ending == ".json":
        return {"karpathy" if is_karpathy(path) else "coco": [path]}
    if ending in ENDINGS:
        return {"table": [path]}
    return {"tars": [path]} if path.name.lower().endswith((".tar", ".tar.gz", ".tgz")) else {}


def _forms(where: Path, folder: Path) -> dict[Format, list[Path]]:
    """Return the files of each form in the folder `where`."""
    by_ending: dict[str, list[Path]] = {}
    for path in image_files(where, (*ENDINGS, ".tar", ".json")):
        by_ending.setdefault(path.suffix.lower(), []).append(path)
    tables = [path for ending in ENDINGS for path in by_ending.get(ending, ())]
    metadata = [path for path in tables if path.stem == "metadata"]
    listed = [path for path in tables if path.suffix not in (".txt", ".parquet")]
    json = by_ending.get(".json", [])
    coco = [path for path in json if path.match("captions_*.json")]
    karpathy = [path for path in json if path.match("dataset*.json")]
    forms: dict[Format, list[Path]] = {
        "table": metadata or listed or by_ending.get(".parquet", []),
        "tars": by_ending.get(".tar", []),
        "coco": coco,
        "karpathy": karpathy,
        "beside": [where] if _has_beside(folder, where) else [],
    }
    return {name: sorted(files) for name, files in forms.items() if files}


def _has_beside(folder: Path, captions: Path) -> bool:
    paths = (path.relative_to(folder) for path in image_files(folder, PICTURES))
    return any((captions / path.with_suffix(".txt")).is_file() for path in paths)
