"""The image files of a dataset: collect them during `download`, find them during `captions`.

They are under the raw folder, in a folder of the user, or nowhere, as `RAW/images.json` records.
Without that record they are under the raw folder. The caption table's `file` is `images/...` in
every case.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple

from manymatch.config.strict import Strict, validate
from manymatch.datasets.base import Caption
from manymatch.datasets.fetching.archives import extract, require_archive
from manymatch.datasets.fetching.disk import copy_file, require_space
from manymatch.util.errors import DataError, SourceError
from manymatch.util.files import remove, write_json
from manymatch.util.json_file import read_object
from manymatch.util.progress import say, track
from manymatch.util.regular_file import HIDDEN, files_below, resolved

IMAGES = "images"
_RECORD = "images.json"


class ImageFolder(Strict):
    """The content of `images.json`."""

    folder: str | None = None
    """Absolute path of the user's folder, whose images were not copied. Null: the raw folder."""
    absent: bool = False
    """The data set is used without images, with published features."""
    only_present: bool = False
    """The caption table leaves out images whose image file is missing."""

    def write(self, raw: Path) -> None:
        """Write `images.json` to the raw folder."""
        write_json(raw / _RECORD, self.model_dump())


def read_image_folder(raw: Path) -> ImageFolder:
    """Return where the images of the data set under `raw` are."""
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
    path = resolved(raw / name)
    if not path.is_relative_to(resolved(raw)):
        raise DataError(f"{raw / name}: a link out of {raw}. Copy the file into the folder")
    return path


_SUFFIXES = (".jpg", ".jpeg", ".png")


class Line(NamedTuple):
    """The text of a caption, where it was read (file:line), and its id if the source has one."""

    text: str
    where: str
    id: str | None = None


@dataclass(frozen=True)
class Image:
    """An image with its captions, as read from a data set's files.

    `file` is the image's usual file name, without folders. `id` defaults to the stem of `file`, and
    the id of caption k to `FILE#k`.
    """

    file: str
    split: str
    captions: Sequence[Line]
    id: str | None = None
    labels: tuple[int, ...] = ()


def single_spaced(text: str) -> str:
    """Return `text` without outer whitespace and byte order marks, and with single spaces."""
    return " ".join(text.replace("\ufeff", "").split())


def caption_rows(
    raw: Path,
    images: Iterable[Image],
    key: Callable[[str], Hashable] = lambda name: name,
    clean: Callable[[str], str] = single_spaced,
) -> Iterator[Caption]:
    """Yield the rows of the caption table for `images`.

    If the settings say `only_present`, images without an image file are left out and counted.

    Args:
        key: an image and an image file belong together if `key` is equal for both file names.
        clean: a function that returns the caption for a raw text.

    Raises:
        DataError: two different image files have the same key.
    """
    settings, files, left_out = read_image_folder(raw), dict[Hashable, str](), 0
    folder = Path(settings.folder or raw / IMAGES)
    for path in () if settings.absent else image_files(folder):
        file = f"{IMAGES}/{path.relative_to(folder).as_posix()}"
        earlier = files.setdefault(key(path.name), file)
        if earlier != file and key(path.name) is not None:
            raise DataError(
                f"{path}: the same image exists twice, also as {earlier}. "
                "Set 'images' to a folder that has each image once"
            )
    for image in images:
        # The checks of the caption table report a missing image by the name of the file.
        file = files.get(key(image.file), f"{IMAGES}/{image.file}")
        if settings.only_present and not settings.absent and key(image.file) not in files:
            left_out += 1
            continue
        image_id = image.id or PurePosixPath(image.file).stem
        for number, (text, where, caption_id) in enumerate(image.captions):
            caption_id = caption_id or f"{image.file}#{number}"
            caption = clean(text)
            yield Caption(image_id, caption_id, image.split, caption, file, image.labels, where)
    if left_out:
        say(
            f"only_present: left out {left_out} images whose image files are missing; "
            "scores on the rest are not comparable with published scores"
        )


# --- collecting images ------------------------------------------------------------------------


def settle_images(images: Iterable[Path] | None, raw: Path, only_present: bool) -> None:
    """Put the `images` (archives or a folder) under `raw/images`, and record in `raw` where they
    are.

    Archives are unpacked. A single folder is used in place: its images are not copied, and DVC does
    not track them. If `images` is None, the data set is used without images.
    """
    sources = None if images is None else list(images)
    if sources is None:
        ImageFolder(absent=True, only_present=only_present).write(raw)
    elif len(sources) == 1 and sources[0].is_dir():
        folder = resolved(sources[0])
        if next(image_files(folder), None) is None:
            raise _no_images(folder)
        say(f"{folder}: the images are used in place, without a copy")
        ImageFolder(folder=str(folder), only_present=only_present).write(raw)
    else:
        for source in sources:
            if source.is_dir():
                raise SourceError(
                    f"{source}: a folder among several sources of images. Give one folder, or only "
                    "archives"
                )
            unpack_images(source, raw / IMAGES)
        ImageFolder(only_present=only_present).write(raw)


def unpack_images(source: Path, images: Path) -> None:
    """Move all images of an archive to the folder `images`, without the archive's folders."""
    require_archive(source)
    unpacked = images.with_name("unpacked")
    extract(source, unpacked, lambda name: name.lower().endswith(_SUFFIXES))
    _transfer(source, unpacked, images, Path.rename)
    remove(unpacked)


def copy_images(source: Path, images: Path) -> None:
    """Copy all images below the folder `source` to the folder `images`, without subfolders."""
    size = sum(path.stat().st_size for path in image_files(source) if path.exists())
    require_space(images.parent, size, source.name)
    _transfer(source, source, images, copy_file)


def _transfer(
    source: Path, folder: Path, images: Path, transfer: Callable[[Path, Path], object]
) -> None:
    images.mkdir(exist_ok=True)
    count = 0
    for path in track(image_files(folder), f"images of {source.name}"):
        target = images / path.name
        if target.exists():
            raise SourceError(f"{source}: two images are called {path.name}")
        transfer(path, target)
        count += 1
    if not count:
        raise _no_images(source)


def _no_images(source: Path) -> SourceError:
    return SourceError(f"{source}: no {', '.join(sorted(_SUFFIXES))} files. Check the path")


def image_files(folder: Path, suffixes: tuple[str, ...] = _SUFFIXES) -> Iterator[Path]:
    """The files with one of the `suffixes` below `folder`, as `files_below` yields them."""
    return files_below(folder, suffixes)


def is_hidden(path: PurePath) -> bool:
    """Return whether a file, or a folder on its path, is hidden."""
    return any(part.startswith(HIDDEN) and part != ".." for part in path.parts)
