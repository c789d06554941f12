"""Sixty made-up pictures with two captions each, in every form."""

import csv
import json
import shutil
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from tars import tar_bytes

from manymatch.config.strict import validate
from manymatch.datasets import captions, download
from manymatch.datasets.own.collect import collect
from manymatch.datasets.own.forms import OwnSettings


class Birds:
    """A folder of pictures, two of them in a subfolder, and the captions of each file."""

    def __init__(self, root):
        self.root, self.photos = root, root / "photos"
        rng = np.random.default_rng(0)
        self.captions = {}
        for number in range(60):
            file = f"{'more/' if number > 57 else ''}bird{number}.jpg"
            path = self.photos / file
            path.parent.mkdir(parents=True, exist_ok=True)
            cells = rng.integers(0, 255, (4, 4, 3), np.uint8)
            Image.fromarray(cells).resize((48, 40), Image.Resampling.BICUBIC).save(path)
            self.captions[file] = [f"a bird, number {number}", f"Él ve {number} pájaros"]

    @property
    def rows(self):
        return [{"file_name": file, "caption": texts} for file, texts in self.captions.items()]

    @property
    def numbered(self):
        """A row for each caption: the file, the caption's number, the caption."""
        return [
            (file, n, text) for file, texts in self.captions.items() for n, text in enumerate(texts)
        ]

    def table(self, path, delimiter=",", encoding="utf-8"):
        """A table with a row for each caption."""
        with path.open("w", newline="", encoding=encoding) as stream:
            writer = csv.writer(stream, delimiter=delimiter)
            writer.writerow(["file_name", "caption"])
            writer.writerows([file, text] for file, _, text in self.numbered)
        return path

    def read(self, raw, **settings):
        """The caption table that the stages `download` and `captions` write."""
        source = {"kind": "own", "images": str(self.photos), **settings}
        shutil.rmtree(raw, ignore_errors=True)
        download.download("birds", source, raw)
        outputs = [raw.with_suffix(f".{name}") for name in ("table", "words", "pairs")]
        captions.write_captions("birds", raw, *outputs, minimum_count=1, kind="own")
        return outputs[0].read_bytes()

    def collect(self, **settings):
        """The pictures of the source before the stages; those of tars and tables are copied."""
        source = {"kind": "own", "images": str(self.photos), **settings}
        listed = self.root / "left_out.tsv"
        return collect(validate(OwnSettings, source, "test"), self.root / "copied", listed)


def among(forms):
    """Add a function to `forms`. It writes the captions, and returns settings of the source."""

    def add(write):
        forms[write.__name__] = write
        return write

    return add


def counts(collection):
    """The pictures in each split."""
    return dict(Counter(str(one.split) for one in collection.pictures.values()))


FORMS = {}
"""Forms that give the table of `metadata_csv`."""


@among(FORMS)
def metadata_csv(birds):
    birds.table(birds.photos / "metadata.csv")
    return {}


@among(FORMS)
def decomposed(birds):
    """Letters and their accents apart, as some systems write them."""
    path = birds.table(birds.photos / "metadata.csv")
    path.write_text(unicodedata.normalize("NFD", path.read_text(encoding="utf-8")), "utf-8")
    return {}


@among(FORMS)
def flickr30k_results(birds):
    lines = [f"{Path(file).name}| {number}| {text}" for file, number, text in birds.numbered]
    path = birds.root / "results.csv"
    path.write_text("\n".join(["image_name| comment_number| comment", *lines]))
    return {"captions": str(path)}


@among(FORMS)
def flickr30k_annotations(birds):
    with (birds.photos / "flickr_annotations.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["raw", "sentids", "filename", "img_id"])
        writer.writerows(
            [json.dumps(texts), [0, 1], file, 7] for file, texts in birds.captions.items()
        )
    return {}


@among(FORMS)
def tokens(birds):
    lines = [f"{file}#{number}\t{text}\n" for file, number, text in birds.numbered]
    (birds.root / "all.token.txt").write_text("".join(lines))
    return {"captions": str(birds.root / "all.token.txt")}


@among(FORMS)
def several_columns(birds):
    names = ("file_name", "first", "second")
    rows = [dict(zip(names, (file, *texts), strict=True)) for file, texts in birds.captions.items()]
    pq.write_table(pa.Table.from_pylist(rows), birds.photos / "metadata.parquet")
    return {"text": ["first", "second"]}


@among(FORMS)
def fewer_captions(birds):
    """A row with fewer captions than columns has an empty cell."""
    with (birds.photos / "metadata.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["file_name", "caption_1", "caption_2", "caption_3"])
        writer.writerows([file, "", *texts] for file, texts in birds.captions.items())
    return {}


@among(FORMS)
def pictures_in_parquet(birds):
    folder = birds.root / "data"
    folder.mkdir()
    rows = [
        {
            "image": {"bytes": (birds.photos / file).read_bytes(), "path": file},
            "caption": texts,
        }
        for file, texts in birds.captions.items()
    ]
    for part in (0, 1):
        pq.write_table(pa.Table.from_pylist(rows[part::2]), folder / f"{part}-of-2.parquet")
    return {"images": str(folder)}


@among(FORMS)
def parquet_of_addresses(birds):
    """Karpathy's columns in Parquet: `filepath` is a folder, and pictures are addresses."""
    rows = [
        {
            "filepath": "val2014",
            "sentids": [1, 2],
            "filename": Path(file).name,
            "sentences": texts,
            "url": f"http://images/{file}",
        }
        for file, texts in birds.captions.items()
    ]
    pq.write_table(pa.Table.from_pylist(rows), birds.root / "coco.parquet")
    return {"captions": str(birds.root / "coco.parquet")}


@among(FORMS)
def folder_of_captions(birds):
    for file, texts in birds.captions.items():
        path = (birds.root / "text" / file).with_suffix(".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(texts), encoding="cp1252")
    return {"captions": str(birds.root / "text"), "encoding": "cp1252"}


@among(FORMS)
def coco(birds):
    images = [{"id": n, "file_name": file} for n, file in enumerate(birds.captions)]
    annotations = [  # the numbers begin again at every picture
        {"id": k, "image_id": n, "caption": text}
        for n, texts in enumerate(birds.captions.values())
        for k, text in enumerate(texts)
    ]
    path = birds.photos / "annotations" / "captions_val2017.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"images": images, "annotations": annotations}))
    return {}


@among(FORMS)
def webdataset(birds):
    entries = []
    for file, texts in birds.captions.items():
        key = Path(file).with_suffix("").as_posix()
        entries += [
            (file, (birds.photos / file).read_bytes()),
            (f"{key}.json", b'{"status": "success"}'),
            (f"{key}.txt", "\n".join(texts).encode()),
        ]
    folder = birds.root / "shards"
    folder.mkdir()
    (folder / "00000.tar").write_bytes(tar_bytes(entries[:90]))
    (folder / "00001.tar").write_bytes(tar_bytes(entries[90:]))
    return {"images": str(folder)}
