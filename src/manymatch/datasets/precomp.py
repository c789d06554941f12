"""The captions in a `*_precomp` folder, as SCAN and VSE-infinity publish them.

`{train,dev,test,testall}_caps.txt` hold one caption per line, five consecutive lines per image, in
the order of the features in the same folder. `*_ids.txt`, where present, hold an image's id once,
or once for each caption. `id_mapping.json`, in the folder or its parent, gives the file of an id.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.image_files import Image, Line
from manymatch.util.errors import DataError
from manymatch.util.json_file import read_object
from manymatch.util.text_lines import numbered_lines

CAPTIONS_PER_IMAGE = 5
_SPLITS = {"train": ("train",), "validation": ("dev",), "test": ("testall", "test")}
"""Split -> names of its files; the first that exists counts. COCO's `testall` has all 5,000 images,
its `test` has 1,000 of them."""
MAPPING = "id_mapping.json"


def is_precomp(folder: Path) -> bool:
    """Return whether `folder` holds captions in SCAN's form."""
    return folder.is_dir() and any(folder.glob("*_caps.txt"))


def has_all_splits(path: Path) -> bool:
    """Return whether `path` is no folder in SCAN's form, or holds captions of every split."""
    return not is_precomp(path) or all(
        any((path / f"{name}_caps.txt").is_file() for name in names) for names in _SPLITS.values()
    )


def copy_precomp(source: Path, target: Path) -> None:
    """Copy the text files of a folder. Its features are not copied."""
    target.mkdir()
    for pattern in ("*_caps.txt", "*_ids.txt"):
        for path in sorted(source.glob(pattern)):
            copy_file(path, target / path.name)
    for folder in (source, source.parent):
        if (folder / MAPPING).is_file():
            copy_file(folder / MAPPING, target / MAPPING)
            return


def read_precomp(folder: Path) -> Iterator[Image]:
    """Yield the images of all splits, training first, in the order of the files.

    Without `*_ids.txt`, an id is SPLIT_NUMBER. Without `id_mapping.json`, `file` is empty.

    Raises:
        DataError: the number of captions is no multiple of five, or the ids do not fit them.
    """
    mapping = read_mapping(folder / MAPPING) if (folder / MAPPING).is_file() else {}
    for split, names in _SPLITS.items():
        files = [folder / f"{name}_caps.txt" for name in names]
        path = next((file for file in files if file.is_file()), None)
        if path is None:
            continue
        captions = caption_lines(path)
        count, rest = divmod(len(captions), CAPTIONS_PER_IMAGE)
        if rest:
            raise DataError(
                f"{path}: {len(captions)} lines; expected {CAPTIONS_PER_IMAGE} for each image"
            )
        listed = path.with_name(path.name.replace("_caps", "_ids"))
        ids = image_ids(listed, count) if listed.is_file() else None
        for number in range(count):
            name = ids[number] if ids else f"{split}_{number}"
            if ids and mapping and name not in mapping:
                where = f"{folder / MAPPING}: no file of the image {name!a:.60}"
                raise DataError(f"{where} in {listed.name}")
            file = PurePosixPath(mapping.get(name, "")).name
            first = number * CAPTIONS_PER_IMAGE
            yield Image(file, split, captions[first : first + CAPTIONS_PER_IMAGE], name)


def read_mapping(path: Path) -> dict[str, str]:
    """Read `id_mapping.json`: id -> file name."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    mapping = read_object(path)
    if not all(isinstance(file, str) for file in mapping.values()):
        raise DataError(f"{path}: not a mapping from ids to file names")
    return mapping


def caption_lines(path: Path) -> list[Line]:
    """Return the lines of a text file of the folder.

    Raises:
        DataError: the file is missing, or a line is empty.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    lines: list[Line] = []
    for number, text in numbered_lines(path):
        if number != len(lines) + 1:
            raise DataError(
                f"{path}:{number - 1}: an empty line, which would shift all later captions. "
                "Remove it"
            )
        lines.append(Line(text, f"{path}:{number}"))
    return lines


def image_ids(path: Path, images: int) -> list[str]:
    """Return the id of each image from a file with one id for each image, or for each caption.

    Raises:
        DataError: the file is missing, or its ids do not fit the images.
    """
    lines = caption_lines(path)
    if len(lines) not in (images, CAPTIONS_PER_IMAGE * images):
        captions = CAPTIONS_PER_IMAGE * images
        raise DataError(f"{path}: {len(lines)} ids do not fit {captions} captions")
    step = CAPTIONS_PER_IMAGE if len(lines) > images else 1
    ids = [line.text.strip() for line in lines]
    for number, line in enumerate(lines):
        if ids[number] != ids[number - number % step]:
            raise DataError(f"{line.where}: the id of another image between those of one image")
    return ids[::step]
