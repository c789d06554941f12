"""Forms that other programs and people really write, each of which gives the usual table."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from own_conventions import FORMS, stray_files
from own_forms import Birds, counts
from PIL import Image


@pytest.mark.parametrize("name", FORMS)
def test_all_pictures_and_captions_are_found(name: str, birds: Birds) -> None:
    expected = Counter(text for texts in birds.captions.values() for text in texts)
    collection = birds.collect(**FORMS[name](birds))
    pictures = collection.pictures.values()
    assert Counter(text for one in pictures for text in one.captions) == expected
    assert len(pictures) == 60 and not collection.left_out


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A portrait of <PERSON> on the wall", ["A portrait of person on the wall"]),
        ("<PERSON> and <PERSON_NAME>", ["person and person name"]),
        ("a <unk> bird, <NUM> eggs", ["a unk bird, num eggs"]),
        ("<s> a bird </s>", ["a bird"]),
        ("1 < 2 birds > 0", ["1 < 2 birds > 0"]),
        ("salt&pepper; birds", ["salt&pepper; birds"]),
        ("\ufeffa bird", ["a bird"]),
        ("a\u2028small\u0085bird", ["a small bird"]),
        # Without a visible sign:
        ("\u200b", []),
        ("\u200e \ufeff", []),
        ("\u3000", []),
    ],
)
def test_conventions_of_published_captions(caption: str, expected: list[str], birds: Birds) -> None:
    birds.captions["bird7.jpg"] = [caption, "a bird"]
    (birds.photos / "metadata.jsonl").write_text("\n".join(map(json.dumps, birds.rows)))
    collection = birds.collect(allow=0.05)
    assert collection.pictures["bird7.jpg"].captions == [*expected, "a bird"]


def moved(birds: Birds, folder: Callable[[int], str]) -> None:
    """Each picture in the folder that its number gives, under one table."""
    captions = {}
    for n, (file, texts) in enumerate(birds.captions.items()):
        target = birds.photos / folder(n) / f"{n}.jpg"
        target.parent.mkdir(exist_ok=True)
        (birds.photos / file).rename(target)
        captions[f"{folder(n)}/{n}.jpg"] = texts
    birds.captions = captions
    birds.table(birds.photos / "metadata.csv")


THIRDS = {"train": 40, "validation": 10, "test": 10}
DRAWN = {"train": 48, "validation": 6, "test": 6}


@pytest.mark.parametrize(
    ("names", "expected", "note"),
    [
        (("train", "val", "test"), THIRDS, "names of folders"),
        (("train2017", "val2017", "test2017"), THIRDS, "names of folders"),
        (("train_images", "dev-images", "test images"), THIRDS, "names of folders"),
        (("birds_train", "birds_val", "birds_test"), THIRDS, "names of folders"),
        (("train-birds-images", "val", "test-birds"), THIRDS, "names of folders"),
        (("birds_train", "cats_val", "cats_test"), DRAWN, "or have other words that differ"),
        (("birds", "birds_val", "birds_test"), DRAWN, "for 20 of 60 pictures. They are not used"),
        (("birds_train", "all", "birds_test"), DRAWN, "for 50 of 60 pictures. They are not used"),
        (("train station", "val d'or", "test bench"), DRAWN, "seed 0 draws the splits: train"),
        (("train room", "train room", "test room"), DRAWN, "seed 0 draws the splits: train"),
        (("a", "b", "test"), DRAWN, "say test for 10 of 60 pictures. They are not used"),
    ],
)
def test_folders_under_one_table(
    names: tuple[str, str, str], expected: dict[str, int], note: str, birds: Birds
) -> None:
    moved(birds, lambda n: names[0 if n < 40 else 1 if n < 50 else 2])
    collection = birds.collect()
    assert counts(collection) == expected
    assert note in "; ".join(collection.notes)


@pytest.mark.parametrize("ending", ["", ".jpg", ".JPG", ".png"])
def test_lists_name_pictures_with_and_without_endings(ending: str, birds: Birds) -> None:
    moved(birds, lambda n: "photos")
    paths = [birds.root / f"{split}.txt" for split in ("train", "val", "test")]
    for path, numbers in zip(paths, (range(40), range(40, 50), range(50, 60)), strict=True):
        path.write_text("".join(f"{n}{ending}\n" for n in numbers))
    assert counts(birds.collect(split=[str(path) for path in paths])) == THIRDS


def test_an_exact_name_in_a_list_comes_first(birds: Birds) -> None:
    """`7.jpg` trains, `7.png` validates."""
    moved(birds, lambda n: "photos")
    Image.open(birds.photos / "photos" / "7.jpg").rotate(90).save(birds.photos / "photos/7.png")
    birds.captions["photos/7.png"] = ["a turned bird"]
    birds.table(birds.photos / "metadata.csv")
    train, val = birds.root / "train.txt", birds.root / "val.txt"
    train.write_text("".join(f"{n}.jpg\n" for n in range(58)))
    val.write_text("7.png\n58\n59\n")
    collection = birds.collect(split=[str(train), str(val)])
    assert collection.pictures["photos/7.png"].split == "validation"
    assert collection.pictures["photos/7.jpg"].split != "validation"


def test_what_is_left_out_is_said(birds: Birds) -> None:
    for file, texts in list(birds.captions.items())[:20]:
        (birds.photos / file).with_suffix(".txt").write_text("\n".join(texts))
    (birds.photos / "phone.heic").write_bytes(b"x")
    notes = "; ".join(birds.collect().notes)
    assert f"41 of 61 pictures in {birds.photos} have no caption" in notes


def test_ignored_files_are_said(birds: Birds) -> None:
    notes = "; ".join(birds.collect(**stray_files(birds)).notes)
    assert "4 other files are not read" in notes


def test_names_that_are_not_utf8_are_listed(birds: Birds) -> None:
    birds.table(birds.root / "captions.csv")
    for file, texts in birds.captions.items():
        (birds.photos / file).with_suffix(".txt").write_text("\n".join(texts))
    name = os.fsencode(birds.photos) + b"/caf\xe9"
    Path(os.fsdecode(name + b".jpg")).write_bytes((birds.photos / "bird1.jpg").read_bytes())
    Path(os.fsdecode(name + b".txt")).write_text("a bird")
    collection = birds.collect(allow=0.05)
    assert len(collection.pictures) == 60
    assert "caf\\udce9.jpg" in (birds.root / "left_out.tsv").read_text("utf-8")


def test_download_names_the_list_where_it_lies(
    birds: Birds, capfd: pytest.CaptureFixture[str]
) -> None:
    birds.table(birds.photos / "metadata.csv")
    (birds.photos / "bird7.jpg").write_bytes(b"")
    birds.read(birds.root / "raw", allow=0.05)
    said = capfd.readouterr().err
    assert f"{birds.root}/raw/left_out.tsv: 1 pictures or captions were left out" in said
    assert (birds.root / "raw" / "left_out.tsv").is_file() and ".partial" not in said
