"""The stage `shards`: features, captions and scene graphs of every image in WebDataset files."""

import functools
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import PIL

from manymatch.batch.scene_graph import PARSER
from manymatch.datasets.image_files import image_path, read_image_folder
from manymatch.features.store import FeatureStore, Rows
from manymatch.shards.index import INDEX, Index, Split, read_index
from manymatch.shards.sample import Sample
from manymatch.shards.split_writer import ShardWriter
from manymatch.shards.tables import Image, distinct, read_images
from manymatch.util.code_hash import code_hash
from manymatch.util.errors import DataError
from manymatch.util.files import sha256, write_json
from manymatch.util.images import decoding, opened, small_jpeg
from manymatch.util.parquet_file import metadata_of
from manymatch.util.parts import WHOLE, Part, Parts, identity_of
from manymatch.util.prefetch import ahead
from manymatch.util.progress import track
from manymatch.util.seal import open_sealed, sealed

_BLOCK = 16  # images whose features are read together
_JPEG_QUALITY = 80


@dataclass(frozen=True)
class Inputs:
    """What shards are made from, and their sizes.

    Attributes:
        captions, graphs: the caption table and the scene graphs. Equal rows of both must describe
            the same caption.
        store: HDF5 feature store with exactly the images of the caption table.
        raw: folder that contains the image files of the caption table. An image without a file
            (published features) gets no thumbnail.
        images_per_shard: images in every shard but the last of a split.
        thumbnail: longest side of the thumbnails in pixels.
    """

    captions: Path
    graphs: Path
    store: Path
    raw: Path
    images_per_shard: int
    thumbnail: int


def write_shards(inputs: Inputs, folder: Path, *, parts: Parts) -> None:
    """Write the shards to `folder`, or one part of them: `SPLIT-%06d.tar` and `index.json`.

    The images are in the order of the caption table. Equal inputs give equal bytes. The memory
    that is used does not grow with the number of features.

    Raises:
        DataError: the tables and the store do not belong together, or contain values that networks
            cannot use.
    """
    images = distinct(inputs.captions, "image_id")
    with FeatureStore(inputs.store) as features:
        shards = Shards(inputs, features, store_rows(images, inputs.captions, features))
        identity = functools.cache(shards.identity)
        if parts.wanted:
            with parts.making(lambda part: identity()) as path:
                if path:
                    shards.write(path, parts.wanted)
            return
        with parts.joining(lambda part: identity()) as joined:
            if joined:
                join(joined, folder)
            else:
                shards.write(folder, WHOLE)


@dataclass(frozen=True)
class Shards:
    """The shards of opened inputs, and the row of the feature store by image id."""

    inputs: Inputs
    features: FeatureStore
    rows: dict[str, int]

    @functools.cached_property
    def pictures(self) -> "PictureFiles":
        return PictureFiles(self.inputs.raw)

    def identity(self) -> str:
        """The hash of everything that determines the shards. All parts have the same hash.

        Only the size of a picture counts, because a picture changes nothing but the thumbnail.
        """
        inputs = self.inputs
        pictures = map(self.pictures.path, distinct(inputs.captions, "file"))
        return identity_of(
            code_hash(__name__),
            [sha256(inputs.captions), sha256(inputs.graphs), self.features.sha256],
            [path and path.stat().st_size for path in pictures],
            [inputs.captions.stem, self.features.path.stem],
            [inputs.images_per_shard, inputs.thumbnail, PIL.__version__],
        )

    def write(self, folder: Path, part: Part) -> None:
        """Write the shards of one part and their index."""
        hashes: dict[str, str] = {}
        inputs, size = self.inputs, self.inputs.images_per_shard
        with sealed(folder, known=hashes) as partial:
            partial.mkdir()
            read = read_images(inputs.captions, inputs.graphs)
            images = track(read, f"shards {folder}", len(self.rows))
            blocks = self._blocks(numbered(images, size, part))
            writer = ShardWriter(partial, size, hashes)
            with closing(writer), closing(ahead(blocks, depth=1)) as prepared:
                for split, number, sample in itertools.chain.from_iterable(prepared):
                    writer.write(split, number, sample)
            part.refuse_empty(writer.splits(), "shards")
            write_json(partial / INDEX, self._index(writer.splits()).model_dump())

    def _blocks(
        self, images: Iterable[tuple[int, Image]]
    ) -> Iterator[list[tuple[str, int, Sample]]]:
        """Blocks of images: the split, the number in the split and the sample of every image."""
        remaining = iter(images)
        while block := list(itertools.islice(remaining, _BLOCK)):
            rows = self.features.read([self.rows[image.image_id] for _, image in block])
            yield [
                (image.split, number, self._sample(number, image, rows, at))
                for at, (number, image) in enumerate(block)
            ]

    def _sample(self, number: int, image: Image, rows: Rows, at: int) -> Sample:
        """The sample of an image. `at` is the place of its features in `rows`."""
        features, counts, boxes = rows
        return Sample(
            key=f"{number:08d}",
            image_id=image.image_id,
            file=image.file,
            labels=image.labels,
            captions=image.captions,
            features=features[at, : counts[at]],
            boxes=None if boxes is None else boxes[at, : counts[at]].astype("<f4"),
            thumbnail=self.pictures.thumbnail(image.file, self.inputs.thumbnail),
        )

    def _index(self, splits: dict[str, Split]) -> Index:
        return Index(
            dataset=self.inputs.captions.stem,
            features=self.features.path.stem,
            width=self.features.width,
            max_regions=self.features.max_regions,
            dtype=self.features.dtype,
            boxes=self.features.has_boxes,
            attributes=self.features.attributes,
            parser=metadata_of(self.inputs.graphs, PARSER, "scene_graphs"),
            splits=splits,
        )


class PictureFiles:
    """The picture files of a raw folder."""

    def __init__(self, raw: Path) -> None:
        self._raw = raw
        self._folder = read_image_folder(raw)

    def path(self, file: str) -> Path | None:
        """The path of `file`; None if the file does not exist."""
        if not file or self._folder.absent:
            return None
        path = image_path(self._raw, file, self._folder)
        return path if path.is_file() else None

    def thumbnail(self, file: str, side: int) -> bytes | None:
        """`file` as a JPEG with at most `side` pixels on its longest side; None without a file."""
        path = self.path(file)
        if path is None:
            return None
        with decoding(path), opened(path) as image:
            return small_jpeg(image, side, _JPEG_QUALITY)


def join(parts: Sequence[Path], folder: Path) -> None:
    """Write all shards of `parts`, which have no shard in common, to `folder` with one index.

    Raises:
        DataError: a part is damaged.
    """
    indexes = {part: read_index(part) for part in parts}
    hashes: dict[str, str] = {}
    with sealed(folder, known=hashes) as partial:
        partial.mkdir()
        for part, index in indexes.items():
            seal = open_sealed(part, f"Remove {part} and make this part again", whole_bytes=None)
            for name in itertools.chain.from_iterable(s.shards for s in index.splits.values()):
                try:
                    os.link(seal.check(name), partial / name)
                except OSError:  # another disk
                    shutil.copyfile(seal.check(name), partial / name)
                hashes[name] = seal.hashes[name]
        write_json(partial / INDEX, joined_index(list(indexes.values())).model_dump())


def joined_index(indexes: Sequence[Index]) -> Index:
    """The index of all parts, which have the same settings, with the shards in order."""
    splits: dict[str, Split] = {}
    for name in {name for index in indexes for name in index.splits}:
        parts = [index.splits[name] for index in indexes if name in index.splits]
        columns = (zip(part.shards, part.shard_images, strict=True) for part in parts)
        shards = sorted(itertools.chain.from_iterable(columns))
        splits[name] = Split(
            shards=[shard for shard, _ in shards],
            shard_images=[images for _, images in shards],
            images=sum(part.images for part in parts),
            captions=sum(part.captions for part in parts),
        )
    return indexes[0].model_copy(update={"splits": splits})


def store_rows(images: Sequence[str], table: Path, store: FeatureStore) -> dict[str, int]:
    """Row of the store by image id. The `images` of the table must be those of the store."""
    if not images:
        raise DataError(f"{table}: no captions. Run the stage 'captions' again")
    rows = {image_id: row for row, image_id in enumerate(store.image_ids)}
    known = set(images)
    for missing, where in (
        ([name for name in images if name not in rows], f"in {table} but not in {store.path}"),
        ([name for name in rows if name not in known], f"in {store.path} but not in {table}"),
    ):
        if missing:
            raise DataError(
                f"{len(missing)} images are {where}, such as '{missing[0]}'. "
                "Run the stage 'features' again"
            )
    return rows


def numbered(
    images: Iterable[Image], images_per_shard: int, part: Part
) -> Iterator[tuple[int, Image]]:
    """The images whose shard is in `part`, each with its number in its split."""
    images_of: Counter[str] = Counter()
    shards = itertools.count()
    in_part: dict[str, bool] = {}
    for image in images:
        number = images_of[image.split]
        images_of[image.split] += 1
        if number % images_per_shard == 0:
            in_part[image.split] = part.takes(next(shards))
        if in_part[image.split]:
            yield number, image
