"""Where the pictures of a dataset are: under its raw folder, in a folder of the user's, nowhere.

`RAW/images.json` says so, where it is there; else they are under the raw folder. The caption
table's `file` is `images/...` in every case.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from manymatch.config.strict import Strict, validate
from manymatch.foreign.json_file import read_object
from manymatch.system.errors import DataError
from manymatch.system.files import write_json

IMAGES = "images"
_NOTE = "images.json"


class Place(Strict):
    """What `images.json` holds."""

    folder: str | None = None
    """Absolute; the pictures lie there and were not copied. Null: they are under the raw folder."""
    absent: bool = False
    """The dataset is used without pictures, with published features."""
    only_present: bool = False
    """Images without a picture are left out of the caption table."""

    def write(self, raw: Path) -> None:
        write_json(raw / _NOTE, self.model_dump())


def read_place(raw: Path) -> Place:
    """Where the pictures of the dataset under `raw` are."""
    note = raw / _NOTE
    if not note.is_file():
        return Place()
    return validate(Place, read_object(note), str(note))


def picture_path(raw: Path, file: str, place: Place) -> Path:
    """Where the caption table's `file` lies, whether or not anything is there.

    A name or link that leads out of the raw folder is a `DataError`. In a folder of the user's own
    links are followed wherever they lead: they are the user's.
    """
    name = PurePosixPath(file)
    if not name.parts or name.is_absolute() or ".." in name.parts or "\0" in file:
        raise DataError(f"{file!r}: lies outside {raw}; image files must be inside it")
    if place.folder is not None and name.parts[0] == IMAGES:
        return Path(place.folder, *name.parts[1:])
    path = (raw / name).resolve()
    if not path.is_relative_to(raw.resolve()):
        raise DataError(f"{raw / name}: a link out of {raw}; copy the file into the folder")
    return path
