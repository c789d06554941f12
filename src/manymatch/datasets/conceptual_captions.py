"""Conceptual Captions (Sharma et al. 2018): images from the web with one caption each, to pre-train
on.

Only captions and addresses are published. The tool `img2dataset` downloads the images and writes
WebDataset shards, which are read here. An image's id is its key in the shards, the caption's id is
KEY#0. A hash of the key draws the validation and test splits; no paper reports results on them.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, ClassVar, TextIO

from pydantic import Field

from manymatch.batch.caption_text import caption_fault, placeholders_as_words
from manymatch.datasets.base import Caption
from manymatch.datasets.fetching import gather
from manymatch.datasets.fetching.archives import extract, whole_archive
from manymatch.datasets.image_files import IMAGES, is_hidden, single_spaced
from manymatch.datasets.rows import tab_rows
from manymatch.util.errors import DataError, SourceError
from manymatch.util.files import remove
from manymatch.util.images import read_image
from manymatch.util.json_file import read_object
from manymatch.util.progress import say, track
from manymatch.util.regular_file import read_regular

TABLE = "captions.tsv"
"""File under the raw folder with the image file, split and caption of each image."""
_ADVICE = (
    "the images are not published: download them with img2dataset from the published list "
    "(https://ai.google.com/research/ConceptualCaptions), with --output_format webdataset, and set "
    "folder to its output"
)


class ConceptualCaptionsSettings(gather.SourceSettings):
    """`sources.conceptual_captions` of params.yaml: a folder with all shards, or each shard."""

    shards: gather.Sources | None = None
    """Tar files with KEY.jpg, KEY.txt and KEY.json, as `img2dataset` writes them."""
    limit: Annotated[int, Field(ge=1)] | None = 1_000_000
    """The maximum number of training images. Further shards are neither fetched nor read. Null: no
    limit."""
    held_out: Annotated[float, Field(gt=0, lt=0.5)] = 0.005
    """The share of all images in the validation split, and the equal share in the test split."""


class ConceptualCaptions(gather.PublishedDataset):
    settings_model = ConceptualCaptionsSettings
    usual: ClassVar[gather.Usual] = {"shards": ("[0-9]*.tar", "*.tar")}
    advice: ClassVar[dict[str, str]] = {"shards": _ADVICE}

    def collect(
        self, gatherer: gather.Gatherer, settings: ConceptualCaptionsSettings, raw: Path
    ) -> None:
        """Put the images of the usable samples under `raw/images`, and their captions beside.

        Shards are unpacked one after another until there are `limit` training images. Unusable
        samples are left out and counted. Memory grows only with the keys.

        Raises:
            SourceError, ConfigError: a shard is missing or damaged, or no sample is usable.
        """
        samples = _Samples(settings)
        with (raw / TABLE).open("w", encoding="utf-8", newline="\n") as table:
            for number, shard in enumerate(gatherer.each("shards", whole_archive)):
                samples.unpack(shard, raw / IMAGES / f"{number:05d}", table)
                if samples.is_full:
                    break
        left_out = samples.left_out
        reasons = [f"{count:,} with {reason}" for reason, count in left_out.most_common()]
        counts = f"{samples.splits.total():,} samples kept, {left_out.total():,} left out"
        summary = "; ".join([counts, *reasons])
        say(f"conceptual_captions: {summary}")
        if not samples.splits["train"]:
            raise SourceError(f"conceptual_captions: no training image in the shards ({summary})")

    def captions(self, raw: Path) -> Iterator[Caption]:
        """Yield one row for each image, in the order of the shards and of the keys in a shard."""
        for where, (file, split, text) in tab_rows(raw / TABLE, 3):
            key = key_of(Path(file).name)
            yield Caption(key, f"{key}#0", split, text, file, where=where)


class _Unusable(Exception):
    """The reason why a sample is left out."""


class _Samples:
    """The samples to keep: their splits, and how many samples were left out for each reason."""

    def __init__(self, settings: ConceptualCaptionsSettings) -> None:
        self._settings, self._keys = settings, set[str]()
        self.splits, self.left_out = Counter[str](), Counter[str]()

    @property
    def is_full(self) -> bool:
        return self.splits["train"] == self._settings.limit

    def unpack(self, shard: Path, folder: Path, table: TextIO) -> None:
        """Unpack the images of usable samples from `shard` to `folder`; add their rows to `table`.

        The files of a sample are in one folder. A key in a second folder is another sample.
        """
        endings = (*_IMAGES, _TEXT, _METADATA)
        extract(shard, folder, lambda n: not is_hidden(PurePosixPath(n)) and _suffix(n) in endings)
        samples: dict[tuple[str, Path], dict[str, Path]] = {}
        for path in sorted(filter(Path.is_file, folder.rglob("*"))):
            samples.setdefault((key_of(path.name), path.parent), {})[_suffix(path.name)] = path
        for (key, _), files in track(sorted(samples.items()), f"samples of {folder.name}"):
            image = None
            try:
                if not self.is_full:
                    if key in self._keys:
                        raise _Unusable("the key of an earlier sample")
                    image, caption = _read_sample(key, files)
                    split = split_of(key, self._settings.held_out)
                    self._keys.add(key)
                    self.splits[split] += 1
                    name = image.relative_to(folder.parents[1]).as_posix()
                    table.write(f"{name}\t{split}\t{caption}\n")
            except _Unusable as reason:
                self.left_out[str(reason)] += 1
            for path in files.values():
                if path != image:
                    remove(path)


def split_of(key: str, held_out: float) -> str:
    """Return the split of a sample, which depends only on its key.

    A share `held_out` of all keys is in `validation`, and an equal share in `test`.
    """
    uniform = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64
    if uniform < 2 * held_out:
        return "validation" if uniform < held_out else "test"
    return "train"


_IMAGES = ("jpg", "jpeg", "png", "webp")
_TEXT, _METADATA = "txt", "json"
_MAX_BYTES = 2**20
"""The maximum size of a text or JSON file. Usual ones have some hundred bytes."""


def key_of(name: str) -> str:
    """Return a member's key: its name before the first dot, as in WebDataset."""
    return name.partition(".")[0]


def _suffix(name: str) -> str:
    return PurePosixPath(name).name.partition(".")[2].lower()


def _read_sample(key: str, files: Mapping[str, Path]) -> tuple[Path, str]:
    """Return the image file, after decoding it once as a check, and the caption in single spaces:
    the text of KEY.txt, or without that file the `caption` in KEY.json."""
    if not key.isprintable() or len(key.split()) != 1:
        raise _Unusable("a key that is not one printable word")
    image = next((files[suffix] for suffix in _IMAGES if suffix in files), None)
    if image is None:
        raise _Unusable("no image")
    for suffix in (_TEXT, _METADATA):
        if suffix in files and files[suffix].stat().st_size > _MAX_BYTES:
            raise _Unusable(f"a {suffix} file of more than a million bytes")
    text = None
    if _METADATA in files:
        try:
            metadata = read_object(files[_METADATA])
        except DataError:
            raise _Unusable("a damaged json file") from None
        if metadata.get("status", "success") != "success":
            raise _Unusable("an image that was not downloaded")
        text = metadata.get("caption")
    if _TEXT in files:
        try:
            text = read_regular(files[_TEXT]).decode("utf-8-sig")
        except ValueError:
            raise _Unusable("a caption that is not UTF-8") from None
    if not isinstance(text, str):
        raise _Unusable("no caption")
    caption = single_spaced(placeholders_as_words(text))
    if caption_fault(caption):
        raise _Unusable("a caption that is empty, too long or not clean text")
    try:
        read_image(image)
    except DataError:
        raise _Unusable("an image that cannot be read") from None
    return image, caption
