"""Where the image files of a dataset are: under its raw folder, in a folder of the user, nowhere.

The file `RAW/images.json` records this. Without that file the images are under the raw folder. The
caption table's `file` is `images/...` in every case.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from manymatch.config.strict import Strict, validate
from manymatch.util.errors import DataError
from manymatch.util.files import write_json
from manymatch.util.json_file import read_object

IMAGES = "images"
_RECORD = "images.json"


class ImageFolder(Strict):
    """The content of `images.json`."""

    folder: str | None = None
    """Absolute path of the user's folder, whose images were not copied. Null: the raw folder."""
    absent: bool = False
    """The dataset is used without images, with published features."""
    only_present: bool = False
    """The caption table leaves out images whose image file is missing."""

    def write(self, raw: Path) -> None:
        """Write `images.json` to the raw folder."""
        write_json(raw / _RECORD, self.model_dump())


def read_image_folder(raw: Path) -> ImageFolder:
    """Return where the images of the dataset under `raw` are."""
    record = raw / _RECORD
    if not record.is_file():
        return ImageFolder()
    return validate(ImageFolder, read_object(record), str(record))


def image_path(raw: Path, file: str, images: ImageFolder) -> Path:
    """Return the path of the caption table's `file`, whether or not the file exists.

    In the user's own folder, links may lead anywhere.

    Raises:
        DataError: a name or link leads out of the raw folder.
    """
    name = PurePosixPath(file)
    if not name.parts or name.is_absolute() or ".." in name.parts or "\0" in file:
        raise DataError(f"{file!r}: lies outside {raw}. Image files must be inside this folder")
    if images.folder is not None and name.parts[0] == IMAGES:
        return Path(images.folder, *name.parts[1:])
    path = (raw / name).resolve()
    if not path.is_relative_to(raw.resolve()):
        raise DataError(f"{raw / name}: a link out of {raw}. Copy the file into the folder")
    return path
