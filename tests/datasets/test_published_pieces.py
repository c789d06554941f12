"""Flickr8k and real parts of COCO, Flickr30K and CUB, if available (not in the repository)."""

from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest
from dataset_stages import split_of

from manymatch.batch.vocabulary import Vocabulary
from manymatch.datasets import dataset
from manymatch.datasets.captions import write_captions
from manymatch.datasets.download import download

pytestmark = pytest.mark.slow


@pytest.fixture
def rows_of(tmp_path):
    """Return the rows without the table's checks, because some parts have no training images."""

    def read(name, settings):
        raw = tmp_path / "raw" / name
        download(name, {"instances": None} | settings, raw)
        return [vars(row) for row in dataset(name).captions(raw)]

    return read


def letters(text):
    """Characters that tokenisers keep."""
    return "".join(sign for sign in text.lower() if sign.isalnum())


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_cocos_captions_ids_and_scans_test_captions_agree(real_data, rows_of):
    coco = real_data / "coco"
    own = rows_of(
        "coco",
        {
            "captions": str(coco / "captions_val2017.json"),
            "caption_ids": str(coco / "ids"),
            "without_images": True,
            "only_present": True,
        },
    )
    scan = rows_of("coco", {"captions": str(coco / "coco_precomp"), "without_images": True})
    scan = [row["caption"] for row in scan if row["split"] == "test"]
    ids = np.load(coco / "ids" / "coco_test_ids.npy")
    assert len(scan) == len(ids) == 25_000
    row_of = {str(number): row for row, number in enumerate(ids)}
    shared = [row for row in own if row["split"] == "test"]
    assert len(shared) == 2965
    assert Counter(Counter(row["image_id"] for row in shared).values()) == {5: 593}
    places = [row_of[row["caption_id"]] for row in shared]
    assert places == sorted(places)
    assert [letters(row["caption"]) for row in shared] == [letters(scan[p]) for p in places]


def test_both_forms_of_flickr8k_give_the_published_sizes(real_data, tmp_path):
    given = real_data / "flickr8k"
    unpacked = {"images": str(tmp_path / "tokens" / "flickr8k" / "images")}
    karpathy = unpacked | {"captions": str(given / "dataset_flickr8k.json")}
    for form, settings in {"tokens": {}, "karpathy": karpathy}.items():
        raw, out = tmp_path / form / "flickr8k", tmp_path / form
        download("flickr8k", {"folder": str(given)} | settings, raw)
        write_captions("flickr8k", raw, out / "table", out / "words", out / "pairs", 1)
    tokens, karpathy = (tmp_path / form for form in ("tokens", "karpathy"))
    for name in ("table", "words", "pairs"):
        assert (tokens / name).read_bytes() == (karpathy / name).read_bytes()
    rows = pq.read_table(tokens / "table").to_pylist()
    assert Counter(split_of(rows).values()) == {"train": 6000, "validation": 1000, "test": 1000}
    assert set(Counter(row["image_id"] for row in rows).values()) == {5}
    assert len(list((tokens / "flickr8k" / "images").iterdir())) == 8091
    assert len(Vocabulary.load(tokens / "words")) == 7692
    judged = pq.read_table(tokens / "pairs").to_pylist()
    pairs = [pair for pair in judged if pair["relevant"]]
    assert len(judged) - len(pairs) == 48_335
    counts = [len({pair[key] for pair in pairs}) for key in ("image_id", "caption_id")]
    assert (len(pairs), *counts) == (2266, 692, 575)


def test_all_captions_of_flickr30k(real_data, stages_of):
    flickr = real_data / "flickr30k"
    settings = {"captions": str(flickr / "multi30k_task2"), "without_images": True}
    rows = stages_of("flickr30k")(settings)
    counts = Counter(split_of(rows).values())
    assert counts == {"train": 29_000, "validation": 1014, "test": 1000}
    for split, name, odd in (("test", "test", 7), ("validation", "dev", 1)):
        ours = [row["caption"] for row in rows if row["split"] == split]
        scan = lines(flickr / "f30k_precomp" / f"{name}_caps.txt")
        differ = [(a, b) for a, b in zip(ours, scan, strict=True) if letters(a) != letters(b)]
        # Multi30K mended the spelling of a few.
        assert len(differ) == odd, differ
