"""Every form of the same pictures and captions gives the same caption table."""

import io
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from own_forms import FORMS

from manymatch.features.image_list import list_images


@pytest.fixture
def expected(birds):
    table = birds.read(birds.root / "expected", captions=str(birds.table(birds.root / "c.csv")))
    (birds.root / "c.csv").unlink()
    return table


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_table_and_pictures(name, birds, expected):
    raw = birds.root / "raw"
    assert birds.read(raw, **FORMS[name](birds)) == expected
    for image in list_images(raw.with_suffix(".table"), raw):
        (file,) = birds.photos.rglob(f"{Path(image.image_id).name}.jpg")
        assert image.source.read_bytes() == file.read_bytes()


def test_karpathys_splits_are_used(birds, expected):
    """The drawn splits, written to Karpathy's file or to a column, give the table of the draw."""
    rows = pq.read_table(io.BytesIO(expected)).to_pylist()
    splits = {row["file"].removeprefix("images/"): row["split"] for row in rows}
    assert Counter(splits.values()) == {"train": 48, "validation": 6, "test": 6}
    images = [
        {
            "filename": Path(file).name,
            "filepath": "anywhere",
            "split": split.replace("idation", ""),
            "sentences": [{"raw": text} for text in birds.captions[file]],
        }
        for file, split in splits.items()
    ]
    (birds.photos / "dataset_birds.json").write_text(json.dumps({"images": images}))
    assert birds.read(birds.root / "raw", seed=1) == expected
