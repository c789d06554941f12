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


def test_a_list_names_pictures_by_their_paths(birds):
    """Pictures of one name in several folders are different pictures."""
    for n, file in enumerate(list(birds.captions)):
        target = birds.photos / f"kind{n % 2}" / f"{n // 2}.jpg"
        target.parent.mkdir(exist_ok=True)
        (birds.photos / file).rename(target)
        birds.captions[target.relative_to(birds.photos).as_posix()] = birds.captions.pop(file)
    birds.table(birds.photos / "metadata.csv")
    lists = [birds.root / f"{split}.txt" for split in ("train", "val", "test")]
    for path, numbers in zip(lists, (range(20), range(20, 25), range(25, 29)), strict=True):
        path.write_text("".join(f"photos/kind{k}/{n}.jpg\n" for k in (0, 1) for n in numbers))
    lists[2].write_text(lists[2].read_text() + "kind0/29.jpg")
    table = birds.read(birds.root / "raw", split=[str(path) for path in lists])
    rows = pq.read_table(io.BytesIO(table)).to_pylist()
    assert Counter(row["split"] for row in rows) == {"train": 80, "validation": 20, "test": 18}
    assert {row["image_id"] for row in rows if "29" in row["image_id"]} == {"kind0/29"}


def test_quotes_in_a_table_of_tokens_are_letters(birds):
    lines = (f'{file}#0\t"Fly, image number {n}\n' for n, file in enumerate(birds.captions))
    (birds.root / "all.token.txt").write_text("".join(lines))
    table = birds.read(birds.root / "raw", captions=str(birds.root / "all.token.txt"))
    captions = pq.read_table(io.BytesIO(table))["caption"].to_pylist()
    assert sorted(captions) == sorted(f'"Fly, image number {n}' for n in range(60))


def test_cocos_folders_of_2017(birds):
    """`train2017` and `val2017` with a file of captions each; the test split is drawn."""
    root, files = birds.root / "coco", list(birds.captions)
    (root / "annotations").mkdir(parents=True)
    for split, part in (("train", range(45)), ("val", range(45, 60))):
        folder = root / f"{split}2017"
        folder.mkdir()
        images = [{"id": n, "file_name": f"{n:012}.jpg"} for n in part]
        for n in part:
            (birds.photos / files[n]).rename(folder / f"{n:012}.jpg")
        annotations = [{"id": n, "image_id": n, "caption": f"bird {n}"} for n in part]
        value = {"images": images, "annotations": annotations}
        (root / "annotations" / f"captions_{split}2017.json").write_text(json.dumps(value))
    rows = pq.read_table(io.BytesIO(birds.read(birds.root / "raw", images=str(root)))).to_pylist()
    assert Counter(row["split"] for row in rows) == {"train": 39, "validation": 15, "test": 6}
    folders = {row["file"].split("/")[1] for row in rows if row["split"] == "validation"}
    assert folders == {"val2017"}
