"""Forms that other programs and people really write, each of which gives the usual table."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from own_forms import Birds, Settings, tar_of
from PIL import Image

from manymatch.config.strict import validate
from manymatch.datasets.own.collect import Collection, collect
from manymatch.datasets.own.forms import OwnSettings

Write = Callable[[Birds], Settings]
FORMS: dict[str, Write] = {}


def form(write: Write) -> Write:
    FORMS[write.__name__] = write
    return write


def collected(birds: Birds, settings: Settings) -> Collection:
    value = {"kind": "own", "images": str(birds.photos)} | settings
    listed = birds.root / "left_out.tsv"
    return collect(validate(OwnSettings, value, "test"), None, listed)


def stats(folder: Path) -> None:
    """The files that img2dataset writes beside each shard."""
    (folder / "00000_stats.json").write_text('{"count": 60, "successes": 60}')
    rows = {"url": ["http://a"], "caption": ["a bird"], "key": ["0"], "status": ["success"]}
    pq.write_table(pa.table(rows), folder / "00000.parquet")


def samples(birds: Birds) -> list[tuple[str, bytes]]:
    members = []
    for n, (file, texts) in enumerate(birds.captions.items()):
        members += [
            (f"{n:09}.jpg", (birds.photos / file).read_bytes()),
            (f"{n:09}.json", json.dumps({"caption": texts[0], "status": "success"}).encode()),
            (f"{n:09}.txt", "\n".join(texts).encode()),
        ]
    return members


def tars(birds: Birds, members: list[tuple[str, bytes]]) -> Settings:
    folder = birds.root / "out"
    folder.mkdir()
    tar_of(folder / "00000.tar", members)
    return {"images": str(folder)}


@form
def img2dataset_webdataset(birds: Birds) -> Settings:
    settings = tars(birds, samples(birds))
    stats(birds.root / "out")
    return settings


@form
def img2dataset_files(birds: Birds) -> Settings:
    folder = birds.root / "out" / "00000"
    folder.mkdir(parents=True)
    for name, content in samples(birds):
        (folder / name).write_bytes(content)
    stats(folder.parent)
    return {"images": str(folder.parent)}


@form
def img2dataset_parquet(birds: Birds) -> Settings:
    """Failed addresses have a row without a picture."""
    folder = birds.root / "out"
    folder.mkdir()
    (folder / "00000_stats.json").write_text("{}")
    rows: list[dict[str, Any]] = [
        {"key": f"{n:09}", "caption": texts, "status": "success", "url": "http://a"}
        | {"jpg": (birds.photos / file).read_bytes()}
        for n, (file, texts) in enumerate(birds.captions.items())
    ]
    rows += [{"key": "1", "caption": ["x"], "status": "failed_to_download", "jpg": None}] * 30
    pq.write_table(pa.Table.from_pylist(rows), folder / "00000.parquet")
    return {"images": str(folder)}


@form
def tar_of_macos(birds: Birds) -> Settings:
    members = []
    for name, content in samples(birds):
        members += [(f"./._{name}", b"\0\5\x16\7"), (f"./{name}", content)]
    return tars(birds, [("./.DS_Store", b"x"), ("__MACOSX/._0.txt", b"x"), *members])


@form
def tar_by_ending(birds: Birds) -> Settings:
    """All pictures, then all texts."""
    return tars(birds, sorted(samples(birds), key=lambda member: member[0][-3:] != "jpg"))


@form
def folder_of_macos(birds: Birds) -> Settings:
    for file, texts in birds.captions.items():
        path = birds.photos / file
        path.with_suffix(".txt").write_text("\n".join(texts))
        path.with_name(f"._{path.name}").write_bytes(b"\0\5\x16\7")
        path.with_name(f"._{path.stem}.txt").write_bytes(b"\0\xff")
    return {}


@form
def upper_case(birds: Birds) -> Settings:
    for n, (file, texts) in enumerate(birds.captions.items()):
        path = birds.photos / file
        path.with_suffix(".TXT" if n % 2 else ".txt").write_text("\n".join(texts))
        path.rename(path.with_suffix(".JPG"))
    return {}


@form
def json_list(birds: Birds) -> Settings:
    """As BLIP and ALBEF have it."""
    rows = [
        {"image": file, "caption": texts, "image_id": f"coco_{n}"}
        for n, (file, texts) in enumerate(birds.captions.items())
    ]
    (birds.photos / "birds.json").write_text(json.dumps(rows))
    (birds.photos / "classes.json").write_text('["bird"]')
    return {}


@form
def stray_files(birds: Birds) -> Settings:
    birds.table(birds.photos / "captions.csv")
    (birds.photos / "licenses.csv").write_text("picture_id,license\n1,CC-BY\n")
    (birds.photos / "requirements.txt").write_text("pillow, numpy\n")
    (birds.photos / "LICENSE.txt").write_bytes(b"caf\xe9")
    (birds.photos / "captions_info.json").write_text('{"info": 1}')
    (birds.photos / "empty.csv").write_text("")
    tar_of(birds.photos / "pictures.tar", [("a.jpg", b"x")])
    return {}


@form
def kaggle_captions_txt(birds: Birds) -> Settings:
    birds.table(birds.photos / "table.csv").rename(birds.photos / "captions.txt")
    return {}


@form
def restarting_annotation_ids(birds: Birds) -> Settings:
    images = [{"id": n, "file_name": file} for n, file in enumerate(birds.captions)]
    annotations = [
        {"id": k, "image_id": n, "caption": text}
        for n, texts in enumerate(birds.captions.values())
        for k, text in enumerate(texts)
    ]
    value = {"images": images, "annotations": annotations}
    (birds.photos / "captions_all.json").write_text(json.dumps(value))
    return {}


@form
def karpathy_with_an_empty_image(birds: Birds) -> Settings:
    """Pictures of one name in two folders, and a picture without sentences."""
    for folder in ("cats", "dogs"):
        (birds.photos / folder).mkdir()
    images = []
    for n, (file, texts) in enumerate(birds.captions.items()):
        folder, name = ("cats", "dogs")[n % 2], f"{n // 2}.jpg"
        (birds.photos / file).rename(birds.photos / folder / name)
        image = {"filepath": folder, "filename": name, "split": "train"}
        images.append(image | {"sentences": [{"raw": text} for text in texts]})
    images.append({"filename": "none.jpg", "split": "train", "sentences": []})
    (birds.photos / "dataset_birds.json").write_text(json.dumps({"images": images}))
    return {}


@form
def german_headings(birds: Birds) -> Settings:
    path = birds.table(birds.root / "bilder.csv", ";", "utf-8-sig")
    text = path.read_text("utf-8-sig").replace("file_name;caption", "Foto;Beschreibung")
    path.write_text(text, "utf-8")
    return {"captions": str(path)}


@form
def named_columns(birds: Birds) -> Settings:
    path = birds.table(birds.root / "x.csv", ";")
    path.write_text(path.read_text().replace("file_name;caption", "Nr, Ablage;Was ist da"))
    return {"captions": str(path), "file": "Nr, Ablage", "text": ["Was ist da"]}


@form
def absolute_paths(birds: Birds) -> Settings:
    rows = (row | {"file_name": str(birds.photos / row["file_name"])} for row in birds.rows)
    (birds.photos / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (birds.root / "link").symlink_to(birds.photos)
    return {"images": str(birds.root / "link")}


@form
def rare_endings(birds: Birds) -> Settings:
    captions = {}
    for n, (file, texts) in enumerate(birds.captions.items()):
        name = Path(file).with_suffix((".jfif", ".jpe", ".JPG")[n % 3]).as_posix()
        (birds.photos / file).rename(birds.photos / name)
        captions[name] = texts
    birds.captions = captions
    birds.table(birds.photos / "metadata.csv")
    return {}


@pytest.mark.parametrize("name", FORMS)
def test_all_pictures_and_captions_are_found(name: str, birds: Birds) -> None:
    expected = Counter(text for texts in birds.captions.values() for text in texts)
    collection = collected(birds, FORMS[name](birds))
    pictures = collection.pictures.values()
    assert Counter(text for one in pictures for text in one.captions) == expected
    assert len(pictures) == 60 and not collection.left_out


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A portrait of <PERSON> on the wall", "A portrait of person on the wall"),
        ("<PERSON> and <PERSON_NAME>", "person and person name"),
        ("a <unk> bird, <NUM> eggs", "a unk bird, num eggs"),
        ("<s> a bird </s>", "a bird"),
        ("1 < 2 birds > 0", "1 < 2 birds > 0"),
        ("salt&pepper; birds", "salt&pepper; birds"),
        ("\ufeffa bird", "a bird"),
        ("a\u2028small\u0085bird", "a small bird"),
    ],
)
def test_conventions_of_published_captions(caption: str, expected: str, birds: Birds) -> None:
    birds.captions["bird7.jpg"] = [caption]
    (birds.photos / "metadata.jsonl").write_text("\n".join(map(json.dumps, birds.rows)))
    assert collected(birds, {}).pictures["bird7.jpg"].captions == [expected]


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


def counts(collection: Collection) -> dict[str, int]:
    return dict(Counter(str(one.split) for one in collection.pictures.values()))


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
        (("a", "b", "test"), DRAWN, "say test for 10 of 60 pictures. They are not used"),
    ],
)
def test_folders_under_one_table(
    names: tuple[str, str, str], expected: dict[str, int], note: str, birds: Birds
) -> None:
    moved(birds, lambda n: names[0 if n < 40 else 1 if n < 50 else 2])
    collection = collected(birds, {})
    assert counts(collection) == expected
    assert note in "; ".join(collection.notes)


@pytest.mark.parametrize("ending", ["", ".jpg", ".JPG", ".png"])
def test_lists_name_pictures_with_and_without_endings(ending: str, birds: Birds) -> None:
    moved(birds, lambda n: "photos")
    paths = [birds.root / f"{split}.txt" for split in ("train", "val", "test")]
    for path, numbers in zip(paths, (range(40), range(40, 50), range(50, 60)), strict=True):
        path.write_text("".join(f"{n}{ending}\n" for n in numbers))
    assert counts(collected(birds, {"split": [str(path) for path in paths]})) == THIRDS


def test_an_exact_name_in_a_list_comes_first(birds: Birds) -> None:
    """`7.jpg` trains, `7.png` validates."""
    moved(birds, lambda n: "photos")
    Image.open(birds.photos / "photos" / "7.jpg").rotate(90).save(birds.photos / "photos/7.png")
    birds.captions["photos/7.png"] = ["a turned bird"]
    birds.table(birds.photos / "metadata.csv")
    train, val = birds.root / "train.txt", birds.root / "val.txt"
    train.write_text("".join(f"{n}.jpg\n" for n in range(58)))
    val.write_text("7.png\n58\n59\n")
    collection = collected(birds, {"split": [str(train), str(val)]})
    assert collection.pictures["photos/7.png"].split == "validation"
    assert collection.pictures["photos/7.jpg"].split != "validation"


def test_what_is_left_out_is_said(birds: Birds) -> None:
    for file, texts in list(birds.captions.items())[:20]:
        (birds.photos / file).with_suffix(".txt").write_text("\n".join(texts))
    (birds.photos / "phone.heic").write_bytes(b"x")
    notes = "; ".join(collected(birds, {}).notes)
    assert f"41 of 61 pictures in {birds.photos} have no caption" in notes


def test_ignored_files_are_said(birds: Birds) -> None:
    notes = "; ".join(collected(birds, stray_files(birds)).notes)
    assert "4 other files are not read" in notes


def test_names_that_are_not_utf8_are_listed(birds: Birds) -> None:
    birds.table(birds.root / "captions.csv")
    for file, texts in birds.captions.items():
        (birds.photos / file).with_suffix(".txt").write_text("\n".join(texts))
    name = os.fsencode(birds.photos) + b"/caf\xe9"
    Path(os.fsdecode(name + b".jpg")).write_bytes((birds.photos / "bird1.jpg").read_bytes())
    Path(os.fsdecode(name + b".txt")).write_text("a bird")
    collection = collected(birds, {"allow": 0.05})
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
