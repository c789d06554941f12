"""Forms, cells, names and folders that other programs and people really write, each of which is
read as meant or named."""

import json
import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from own_conventions import CONVENTIONS
from own_forms import counts, webdataset

from manymatch.datasets.own import record
from manymatch.datasets.own.splits import Lists
from manymatch.util.errors import DataError


@pytest.mark.parametrize("name", CONVENTIONS)
def test_all_pictures_and_captions_are_found(name, birds):
    expected = Counter(text for texts in birds.captions.values() for text in texts)
    collection = birds.collect(**CONVENTIONS[name](birds))
    pictures = collection.pictures.values()
    assert Counter(text for one in pictures for text in one.captions) == expected
    assert len(pictures) == 60 and not collection.left_out
    if name == "stray_files":
        assert "4 other files are not read" in "; ".join(collection.notes)


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("A portrait of <PERSON> on the wall", ["A portrait of person on the wall"]),
        ("<PERSON> and <PERSON_NAME>", ["person and person name"]),
        ("a <unk> bird, <NUM> eggs", ["a unk bird, num eggs"]),
        ("1 < 2 birds > 0", ["1 < 2 birds > 0"]),
        ("salt&pepper; birds", ["salt&pepper; birds"]),
        ("\ufeffa bird", ["a bird"]),
        ("a\u2028small\u0085bird", ["a small bird"]),
        # Without a visible sign:
        ("\u200b", []),
    ],
)
def test_conventions_of_published_captions(caption, expected, birds):
    birds.captions["bird7.jpg"] = [caption, "a bird"]
    (birds.photos / "metadata.jsonl").write_text("\n".join(map(json.dumps, birds.rows)))
    collection = birds.collect(allow=0.05)
    assert collection.pictures["bird7.jpg"].captions == [*expected, "a bird"]


def moved(birds, folder):
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
        (("train2017", "dev-images", "test images"), THIRDS, "names of folders"),
        (("train-birds-images", "val", "test-birds"), THIRDS, "names of folders"),
        (("birds_train", "cats_val", "cats_test"), DRAWN, "or have other words that differ"),
        (("birds", "birds_val", "birds_test"), DRAWN, "for 20 of 60 pictures. They are not used"),
        (("birds_train", "all", "birds_test"), DRAWN, "for 50 of 60 pictures. They are not used"),
        (("train room", "train room", "test room"), DRAWN, "seed 0 draws the splits: train"),
        (("a", "b", "test"), DRAWN, "say test for 10 of 60 pictures. They are not used"),
    ],
)
def test_folders_under_one_table(names, expected, note, birds):
    moved(birds, lambda n: names[0 if n < 40 else 1 if n < 50 else 2])
    collection = birds.collect()
    assert counts(collection) == expected
    assert note in "; ".join(collection.notes)


@pytest.mark.parametrize("ending", ["", ".JPG", ".png"])
def test_lists_name_pictures_with_and_without_endings(ending, birds):
    moved(birds, lambda n: "photos")
    paths = [birds.root / f"{split}.txt" for split in ("train", "val", "test")]
    for path, numbers in zip(paths, (range(40), range(40, 50), range(50, 60)), strict=True):
        path.write_text("".join(f"{n}{ending}\n" for n in numbers))
    assert counts(birds.collect(split=[str(path) for path in paths])) == THIRDS


def test_a_line_of_a_list_means_one_picture(tmp_path):
    path = tmp_path / "train.txt"
    for line, other, meant in (
        ("x/a.jpg", "a.jpg", "x/a.jpg"),
        ("/data/photos/x/a.jpg", "a.jpg", "x/a.jpg"),
        ("a.jpg", "x/a.jpg", "a.jpg"),
        ("x/a", "y/a.png", "x/a.png"),
    ):
        path.write_text(line)
        assert Lists([path]).splits([other, meant]) == [None, "train"]
    for line, files in (("a.jpg", ["x/a.jpg", "y/a.jpg"]), ("a", ["a.jpg", "a.png"])):
        path.write_text(line)
        with pytest.raises(DataError, match=f"'{line}' can mean {files[0]} and {files[1]}"):
            Lists([path]).splits(files)


def test_what_is_left_out_is_said(birds):
    for file, texts in list(birds.captions.items())[:20]:
        (birds.photos / file).with_suffix(".txt").write_text("\n".join(texts))
    (birds.photos / "phone.jxl").write_bytes(b"x")
    notes = "; ".join(birds.collect().notes)
    assert f"41 of 61 pictures in {birds.photos} have no caption" in notes


def test_names_that_are_not_utf8_are_listed(birds):
    birds.table(birds.root / "captions.csv")
    for file, texts in birds.captions.items():
        (birds.photos / file).with_suffix(".txt").write_text("\n".join(texts))
    name = os.fsencode(birds.photos) + b"/caf\xe9"
    Path(os.fsdecode(name + b".jpg")).write_bytes((birds.photos / "bird1.jpg").read_bytes())
    Path(os.fsdecode(name + b".txt")).write_text("a bird")
    collection = birds.collect(allow=0.05)
    assert len(collection.pictures) == 60
    assert "caf\\udce9.jpg" in (birds.root / "left_out.tsv").read_text("utf-8")


def test_download_names_the_list_where_it_lies(birds, capfd):
    birds.table(birds.photos / "metadata.csv")
    (birds.photos / "bird7.jpg").write_bytes(b"")
    birds.read(birds.root / "raw", allow=0.05)
    said = capfd.readouterr().err
    assert f"{birds.root}/raw/left_out.tsv: 1 pictures or captions were left out" in said
    assert (birds.root / "raw" / "left_out.tsv").is_file() and ".partial" not in said


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (
            "['a red bird'\n 'it\\'s blue' \"it's green\"]",
            ["a red bird", "it's blue", "it's green"],
        ),
        ("('a bird', 'two birds')", ["a bird", "two birds"]),
        ("['a bird', None]", ["a bird"]),
        ('["\\ud83d\\ude00 a bird", "b"]', ["\U0001f600 a bird", "b"]),
        ('("a bird" she said)', ['("a bird" she said)']),
        ("['a'[['b']]]", ["['a'[['b']]]"]),
        ("['" + r"\'" * 200_000 + "]", ["['" + r"\'" * 200_000 + "]"]),
    ],
)
def test_lists_that_are_written_as_text(cell, expected):
    assert record.texts(cell) == expected


def test_later_rows_may_have_more_columns_of_captions(birds):
    rows = [
        {"file_name": file} | {f"caption_{n}": text for n, text in enumerate(texts[: 1 + (n > 0)])}
        for n, (file, texts) in enumerate(birds.captions.items())
    ]
    path = birds.photos / "metadata.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pictures = birds.collect().pictures.values()
    assert sum(len(picture.captions) for picture in pictures) == 119
    rows[1] = {"file_name": "bird1.jpg", "text": "a bird"}
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [rows[1], rows[0]]))
    with pytest.raises(DataError, match=r"jsonl:2: a caption in 'caption_0', .* in 'text'.*--text"):
        birds.collect()


def test_a_status_of_another_program_leaves_no_picture_out(birds):
    settings = webdataset(birds)
    for path in (birds.root / "shards").glob("*.tar"):
        path.write_bytes(path.read_bytes().replace(b"success", b"checked"))
    assert len(birds.collect(**settings).pictures) == 60


@pytest.mark.parametrize("folder", ["photos/labels", "photos/../labels"])
def test_paths_with_dots_lead_to_the_pictures(folder, birds):
    """`../x` beside the pictures is relative to the table's folder."""
    (birds.root / folder).resolve().mkdir()
    up = "" if ".." in folder else "../"
    rows = [row | {"file_name": f"{up}./more/../{row['file_name']}"} for row in birds.rows]
    (birds.root / folder / "rows.json").write_text(json.dumps(rows))
    assert len(birds.collect(captions=str(birds.root / folder)).pictures) == 60


def pictures_called(birds, *names):
    """A table of pictures, the first of which have the names."""
    rows = []
    for number, row in enumerate(birds.rows):
        content = (birds.photos / row["file_name"]).read_bytes()
        name = names[number] if number < len(names) else row["file_name"]
        rows.append({"image": {"bytes": content, "path": name}, "caption": row["caption"]})
    pq.write_table(pa.Table.from_pylist(rows), birds.root / "pictures.parquet")


def test_the_name_of_a_picture_may_be_another_without_its_ending(birds):
    names = ["a.jpg", "a.png", "a.jpg.png"]
    pictures_called(birds, *names)
    rows = [*birds.collect(images=str(birds.root / "pictures.parquet")).rows()]
    assert {*names} <= {row.image_id for row in rows}
    assert len({row.image_id for row in rows}) == 60


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("é" * 130 + ".jpg",), "a name of more than 240 characters"),
        (("a.jpg", "a.jpg/b.jpg"), "that of a folder of another"),
        ((".",), "a name that leaves the folder"),
    ],
)
def test_names_that_no_file_can_have(names, reason, birds):
    pictures_called(birds, *names)
    collection = birds.collect(images=str(birds.root / "pictures.parquet"), allow=0.05)
    (left_out,) = collection.left_out
    assert reason in left_out.reason
    assert len(list((birds.root / "copied").rglob("*.*g"))) >= 59
