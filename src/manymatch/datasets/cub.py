"""CUB-200-2011 (Wah et al. 2011): 11,788 photographs of 200 kinds of birds, with ten captions each
by Reed et al. 2016, in the class splits that PCME uses (Xian et al. 2017).

An image's id is the stem of its file name, a caption's id is IMAGE#k, and the label is the number
of the class, 1 to 200. The test split holds all images of the 50 test classes, which are never seen
in training, and some images of the other classes ("seen test"). Both settings, seen and unseen
classes, are scored from this split: a test image belongs to an unseen class if no training or
validation image has its label.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import ClassVar

from manymatch.datasets.base import SPLITS, Caption
from manymatch.datasets.fetching import gather
from manymatch.datasets.fetching.archives import extract, require_archive, whole_archive
from manymatch.datasets.fetching.disk import copy_file
from manymatch.datasets.fetching.sources import Source
from manymatch.datasets.image_files import (
    Image,
    Line,
    caption_rows,
    image_files,
    is_hidden,
    read_image_folder,
    settle_images,
)
from manymatch.util.errors import DataError, SourceError
from manymatch.util.files import remove
from manymatch.util.progress import say
from manymatch.util.text_lines import numbered_lines

TEXT = "text"
LISTS = {
    "train_classes": "trainvalclasses.txt",
    "validation_classes": "valclasses.txt",
    "test_classes": "testclasses.txt",
    "seen_test": "seen_test_images.txt",
}
"""Setting -> name under the raw folder."""
_OPTIONAL = "validation_classes"
_SPLIT_OF = {
    name: key.removesuffix("_classes") for key, name in LISTS.items() if key != "seen_test"
}
"""List of classes -> split."""
VALIDATION_EVERY = 10
"""Without validation classes, every 10th image of a training class is held out for validation, so
that no test image selects the checkpoint."""

_CLASS = re.compile(r"\d{3}\.[A-Za-z_]+")
_CLASS_NUMBER = re.compile(r"(\d{1,3})\.")
_LOST = re.compile("\ufffd+")


_PCME = "7224f04e4f780545176e3bc5040ad9b9e78a5049", "datasets/annotations/cub"
_RELEASE = "https://data.caltech.edu"
_DRIVE = "https://drive.usercontent.google.com/download?id=0B0ywwgffWnLLZW9uVHNjb2JmNlE"


def _list(name: str, size: int, sha256: str) -> Source:
    """A list of PCME's authors."""
    commit, folder = _PCME
    return Source(
        url=f"https://raw.githubusercontent.com/naver-ai/pcme/{commit}/{folder}/{name}",
        mirrors=(f"https://cdn.jsdelivr.net/gh/naver-ai/pcme@{commit}/{folder}/{name}",),
        size=size,
        sha256=sha256,
    )


class CubSettings(gather.SourceSettings):
    """`sources.cub` of params.yaml."""

    images: gather.Sources | None = (
        Source(
            url=f"{_RELEASE}/records/65de6-vp158/files/CUB_200_2011.tgz",
            mirrors=(
                f"{_RELEASE}/api/records/65de6-vp158/files/CUB_200_2011.tgz/content",
                "https://s3.amazonaws.com/fast-ai-imageclas/CUB_200_2011.tgz",
            ),
            size=1150585339,
            sha256="0c685df5597a8b24909f6a7c9db6d11e008733779a671760afef78feb49bf081",
        ),
    )
    """`CUB_200_2011.tgz`, or a folder, which is used in place."""
    captions: Source | None = Source(
        url=f"{_DRIVE}&resourcekey=0-8y2UVmBHAlG26HafWYNoFQ&export=download&confirm=t",
        mirrors=(f"{_DRIVE}&export=download&confirm=t",),
    )
    """Reed's captions: an archive or folder that holds CLASS/IMAGE.txt at any depth. The host may
    require a browser; then set the key to the file that the host gives you."""
    train_classes: Source | None = _list(
        "trainvalclasses.txt",
        3058,
        "54fc017c4c0cd2ad40fa13143f70e19b51fa18c61cd64b7783af1b9d1b74baa3",
    )
    test_classes: Source | None = _list(
        "testclasses.txt", 1074, "2adcf5ae19ee338ef46ae938c13c4a94d36c30dfc75981edf4fc6dd7f856ef3c"
    )
    validation_classes: Source | None = None
    """Without this list, every 10th image of each training class is held out. PCME's authors
    publish folds: `trainclasses1.txt` for `train_classes`, and here `valclasses1.txt`."""
    seen_test: Source | None = _list(
        "seen_test_images.txt",
        92652,
        "730c15fcdd2a3324f998dea2a3a25ec777aa1e1c22626302fa8256e1f6c127a0",
    )
    """Images of the training classes that belong to the test split."""
    only_present: bool = False
    """Leave out images whose image file is missing."""


class Cub(gather.PublishedDataset):
    """Files have the names in the releases, or those common in text-to-image work."""

    settings_model = CubSettings
    may_lack = (_OPTIONAL,)
    usual: ClassVar[gather.Usual] = {
        "images": ("CUB_200_2011/images", "images", "CUB_200_2011.tgz", "cub_mini*.tar"),
        "captions": (
            "cvpr2016_cub/text_c10",
            "text_c10",
            "text",
            "cvpr2016_cub.tar.gz",
            "text.zip",
            "cub_mini*.tar",
        ),
        **{key: (name, f"splits/{name}") for key, name in LISTS.items() if key != _OPTIONAL},
        _OPTIONAL: (),
    }
    advice: ClassVar[dict[str, str]] = {
        "images": "set it to CUB_200_2011.tgz or its unpacked folder"
    }

    def collect(self, gatherer: gather.Gatherer, settings: CubSettings, raw: Path) -> None:
        """Put the captions and lists under `raw`, and the images or a record of where they are."""
        gatherer.copy(LISTS, raw, self.may_lack)
        _copy_captions(gatherer.one("captions", whole_archive), raw)
        settle_images(gatherer.each("images", whole_archive), raw, settings.only_present)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """Yield the rows by split, class and image."""
        # U+FFFD, the sign for an undecodable byte, stands for spaces in some captions.
        return caption_rows(raw, _images(raw), clean=lambda text: _LOST.sub(" ", text).strip())


def _copy_captions(source: Path, raw: Path) -> None:
    """Copy the files CLASS/IMAGE.txt at any depth of `source` to `raw/text/CLASS/IMAGE.txt`."""
    folder = source
    if not source.is_dir():
        require_archive(source)
        folder = raw / "unpacked"
        extract(source, folder, lambda member: _is_caption_file(PurePosixPath(member)))
    count = 0
    for path in image_files(folder, (".txt",)):
        if not _is_caption_file(PurePosixPath(path.relative_to(folder.parent))):
            continue
        target = raw / TEXT / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            raise SourceError(f"{source}: captions of {path.parent.name}/{path.name} twice")
        copy_file(path, target)
        count += 1
    if not count:
        raise SourceError(f"{source}: no captions; expected files CLASS/IMAGE.txt")
    remove(raw / "unpacked")


def _is_caption_file(name: PurePosixPath) -> bool:
    is_text = name.suffix == ".txt" and not is_hidden(name)
    return is_text and bool(_CLASS.fullmatch(name.parent.name))


def _images(raw: Path) -> Iterator[Image]:
    """Yield the images of all splits; images of classes in no list are left out and counted."""
    list_of, seen_test = read_splits(raw)
    counts, present = Counter[int](), set[str | int]()
    validates = LISTS[_OPTIONAL] in list_of.values()
    paths: dict[str | None, list[tuple[int, Path]]] = {split: [] for split in (*SPLITS, None)}
    for path in sorted((raw / TEXT).glob("*/*.txt")):
        number = _class_number(path.parent.name, str(path))
        split = "test" if path.stem in seen_test else _SPLIT_OF.get(list_of.get(number, ""))
        counts[number] += split == "train"
        if split == "train" and not validates and counts[number] % VALIDATION_EVERY == 0:
            split = "validation"
        paths[split].append((number, path))
        present |= {number, path.stem}
    if not read_image_folder(raw).only_present:  # else the classes of a list may all be missing
        for name in LISTS.values():
            classes = {number for number, of in list_of.items() if of == name}
            members = classes if name in _SPLIT_OF else seen_test
            if members and present.isdisjoint(members):
                raise DataError(f"{raw / name}: names nothing that has captions. Check the list")
    if paths[None]:
        say(f"cub: left out {len(paths[None])} images of classes that are in no list")
    for split in SPLITS:
        for number, path in paths[split]:
            lines = [
                Line(text, f"{path}:{line}", f"{path.stem}#{order}")
                for order, (line, text) in enumerate(numbered_lines(path))
            ]
            yield Image(f"{path.stem}.jpg", split, lines, labels=(number,))


def read_splits(raw: Path) -> tuple[dict[int, str], set[str]]:
    """Return the list in which each class is, and the stems of the seen test images.

    Raises:
        DataError: a class is in two lists.
    """
    list_of: dict[int, str] = {}
    for name in _SPLIT_OF:
        path = raw / name
        for line, text in numbered_lines(path) if path.is_file() else ():
            number = _class_number(text, f"{path}:{line}")
            if list_of.setdefault(number, name) != name:
                raise DataError(f"{raw}: class {number} is in {list_of[number]} and {name}")
    seen_test = {Path(text.strip()).stem for _, text in numbered_lines(raw / LISTS["seen_test"])}
    return list_of, seen_test


def _class_number(name: str, where: str) -> int:
    """Return the number of a class such as `004.Groove_billed_Ani`."""
    match = _CLASS_NUMBER.match(name.strip())
    if match is None:
        raise DataError(f"{where}: expected a class such as 004.Groove_billed_Ani, found {name!a}")
    return int(match[1])
