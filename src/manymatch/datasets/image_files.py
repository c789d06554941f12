"""The pictures of a dataset: brought under its raw folder or found where they are, and listed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path

from manymatch.datasets.image_folder import IMAGES, Place, read_place
from manymatch.fetching.archives import extract, is_archive
from manymatch.fetching.disk import require_space
from manymatch.system.errors import DataError, SourceError
from manymatch.system.files import remove
from manymatch.system.progress import say, track

_ENDINGS = (".jpg", ".jpeg", ".png")


def settle_pictures(sources: Sequence[Path] | None, raw: Path, only_present: bool) -> None:
    """Bring the pictures of `sources` under `raw/images`, and note in `raw` where they are.

    Archives are unpacked. One folder is used where it lies: nothing of it is copied, and DVC does
    not look into it. None: the dataset is used without pictures.
    """
    if sources is None:
        Place(absent=True, only_present=only_present).write(raw)
    elif len(sources) == 1 and sources[0].is_dir():
        folder = sources[0].resolve()
        if next(_walk(folder), None) is None:
            raise _no_pictures(folder)
        say(f"{folder}: its pictures are used where they lie")
        Place(folder=str(folder), only_present=only_present).write(raw)
    else:
        for source in sources:
            if source.is_dir():
                raise SourceError(f"{source}: name one folder of images, or archives alone")
            unpack_pictures(source, raw / IMAGES)
        Place(only_present=only_present).write(raw)


def unpack_pictures(source: Path, images: Path) -> None:
    """The pictures in an archive to the folder `images`, flat, whatever folders they lie in."""
    if not is_archive(source):
        raise SourceError(f"{source}: neither a folder nor a whole tar, tar.gz or zip archive")
    unpacked = images.with_name("unpacked")
    extract(source, unpacked, lambda name: name.lower().endswith(_ENDINGS))
    _gather(source, unpacked, images, Path.rename)
    remove(unpacked)


def copy_pictures(source: Path, images: Path) -> None:
    """The pictures below the folder `source` to the folder `images`, flat."""
    require_space(images.parent, sum(path.stat().st_size for path in _walk(source)), source.name)
    _gather(source, source, images, shutil.copyfile)


def _gather(
    source: Path, folder: Path, images: Path, transfer: Callable[[Path, Path], object]
) -> None:
    images.mkdir(exist_ok=True)
    count = 0
    for path in track(_walk(folder), f"images of {source.name}"):
        target = images / path.name
        if target.exists():
            raise SourceError(f"{source}: two images are called {path.name}")
        transfer(path, target)
        count += 1
    if not count:
        raise _no_pictures(source)


def _no_pictures(source: Path) -> SourceError:
    return SourceError(f"{source}: no {', '.join(sorted(_ENDINGS))} files in it")


def _walk(folder: Path) -> Iterator[Path]:
    """The pictures below `folder`, sorted in each folder; hidden ones are other systems' debris.

    Linked folders are entered, each real folder once.
    """
    entered = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in entered:
            folders.clear()
            continue
        entered.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        for name in sorted(files):
            if name.lower().endswith(_ENDINGS) and not name.startswith((".", "__")):
                yield Path(place, name)


class Pictures:
    """The pictures of the dataset under `raw`, by what `key` makes of a file's name.

    Raises `DataError` where two different files have one key: nobody could tell which is meant.
    """

    def __init__(self, raw: Path, key: Callable[[str], Hashable]) -> None:
        self._place, self._key = read_place(raw), key
        self._left_out = 0
        self._files: dict[Hashable, str] = {}
        if not self._place.absent:
            folder = Path(self._place.folder or raw / IMAGES)
            for path in _walk(folder):
                self._add(path, f"{IMAGES}/{path.relative_to(folder).as_posix()}")

    def _add(self, path: Path, file: str) -> None:
        key = self._key(path.name)
        earlier = self._files.setdefault(key, file)
        if earlier != file and key is not None:
            raise DataError(
                f"{path}: the same image is there a second time, as {earlier}; "
                "name a folder in the configuration that has each image once"
            )

    def file(self, name: str) -> str | None:
        """The caption table's `file` of the image usually called `name`; None: leave it out.

        Where the picture is missed, a file that is not there is named, and the table's checks say
        so.
        """
        found = self._files.get(self._key(name))
        if found is None and self._place.only_present and not self._place.absent:
            self._left_out += 1
            return None
        return found or f"{IMAGES}/{name}"

    def tell_left_out(self) -> None:
        """To be called after the last image."""
        if self._left_out:
            say(
                f"only_present: left out {self._left_out} images whose pictures are not there; "
                "scores on the rest compare with no published ones"
            )
