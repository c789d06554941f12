"""The published files of Flickr8k, if they are available (not part of the repository)."""

import os
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from manymatch.datasets.captions import write_captions
from manymatch.datasets.download import download
from manymatch.text.vocabulary import Vocabulary

SHARED = Path(os.environ.get("MANYMATCH_SHARED", Path(__file__).parents[2].parent / "shared"))
FLICKR8K = SHARED / "data" / "flickr8k"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FLICKR8K.is_dir(), reason="the Flickr8k files are not here"),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return the folder of the stage's outputs for each form of the caption files."""
    root = tmp_path_factory.mktemp("flickr8k")
    forms = {"tokens": {}, "karpathy": {"captions": str(FLICKR8K / "dataset_flickr8k.json")}}
    for form, settings in forms.items():
        raw, out = root / form / "flickr8k", root / form
        download("flickr8k", {"folder": str(FLICKR8K)} | settings, raw)
        write_captions("flickr8k", raw, out / "table", out / "words", out / "pairs", 1)
    return root


def test_the_splits_have_their_published_sizes(tables):
    rows = pq.read_table(tables / "tokens" / "table").to_pylist()
    images = {row["image_id"]: row["split"] for row in rows}
    assert Counter(images.values()) == {"train": 6000, "validation": 1000, "test": 1000}
    assert len(rows) == 40_000
    assert set(Counter(row["image_id"] for row in rows).values()) == {5}


def test_all_images_are_there(tables):
    assert len(list((tables / "tokens" / "flickr8k" / "images").iterdir())) == 8091


@pytest.mark.parametrize("name", ["table", "words", "pairs"])
def test_both_forms_give_the_same_file(tables, name):
    assert (tables / "tokens" / name).read_bytes() == (tables / "karpathy" / name).read_bytes()


def test_the_judged_pairs(tables):
    pairs = pq.read_table(tables / "tokens" / "pairs").to_pylist()
    assert len(pairs) == 2266
    assert len({pair["image_id"] for pair in pairs}) == 692
    assert len({pair["caption_id"] for pair in pairs}) == 575


def test_the_vocabulary_is_of_the_training_split(tables):
    assert len(Vocabulary.load(tables / "tokens" / "words")) == 7692
