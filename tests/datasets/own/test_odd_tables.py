"""Cells, names and folders of other programs' tables, each of which is read as meant or named."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from own_forms import Birds, Settings, counts, tar_of

from manymatch.datasets.own.record import texts

SPLITS = {"train": 40, "validation": 10, "test": 10}
WORDS = ("train", "val", "test")


def split_word(number: int) -> str:
    return WORDS[0 if number < 40 else 1 if number < 50 else 2]


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
    ],
)
def test_lists_that_are_written_as_text(cell: str, expected: list[str]) -> None:
    assert texts(cell) == expected


@pytest.mark.parametrize("column", ["Split", "SPLIT"])
@pytest.mark.parametrize("ending", ["csv", "tar"])
def test_the_case_of_the_column_of_splits_does_not_count(
    column: str, ending: str, birds: Birds
) -> None:
    rows = [row | {column: split_word(number)} for number, row in enumerate(birds.rows)]
    path = birds.photos / f"metadata.{ending}"
    settings: Settings = {}
    if ending == "csv":
        lines = (f"{row['file_name']};{row['caption'][0]};{row[column]}" for row in rows)
        path.write_text("\n".join([f"file_name;caption;{column}", *lines]))
    else:
        members = []
        for number, row in enumerate(rows):
            picture = (birds.photos / row["file_name"]).read_bytes()
            text = json.dumps({"caption": row["caption"], column: row[column]})
            members += [(f"{number}.jpg", picture), (f"{number}.json", text.encode())]
        path = birds.root / "pictures.tar"
        tar_of(path, members)
        settings = {"images": str(path)}
    assert counts(birds.collect(**settings)) == SPLITS


def folder_of_tables(birds: Birds, word: str, numbers: list[int], folder: Path) -> None:
    rows = [birds.rows[number] for number in numbers]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))


def folder_of_coco(birds: Birds, word: str, numbers: list[int], folder: Path) -> None:
    images = [{"id": n, "file_name": birds.rows[n]["file_name"]} for n in numbers]
    annotations = [{"image_id": n, "caption": birds.rows[n]["caption"][0]} for n in numbers]
    value = {"images": images, "annotations": annotations}
    (folder / "captions.json").write_text(json.dumps(value))


def folder_of_tars(birds: Birds, word: str, numbers: list[int], folder: Path) -> None:
    members = []
    for number in numbers:
        row = birds.rows[number]
        members.append((f"{number}.jpg", (birds.photos / row["file_name"]).read_bytes()))
        members.append((f"{number}.txt", row["caption"][0].encode()))
    tar_of(folder / "0.tar", members)


@pytest.mark.parametrize("write", [folder_of_tables, folder_of_coco, folder_of_tars])
def test_folders_of_captions_say_the_splits(write: object, birds: Birds) -> None:
    assert callable(write)
    root = birds.root / "test"  # the folder that the user names says nothing
    for word in WORDS:
        (root / word).mkdir(parents=True)
        write(birds, word, [n for n in range(60) if split_word(n) == word], root / word)
    of_tars = {"images": str(root)} if write is folder_of_tars else {}
    collection = birds.collect(**{"captions": str(root)} | of_tars)
    assert counts(collection) == SPLITS


def test_the_column_split_comes_before_others_of_the_name(birds: Birds) -> None:
    rows = [{"Split": "A", "split": split_word(n)} | row for n, row in enumerate(birds.rows)]
    (birds.photos / "metadata.json").write_text(json.dumps(rows))
    assert counts(birds.collect()) == SPLITS


@pytest.mark.parametrize("folder", ["photos/labels", "photos/../labels"])
def test_paths_with_dots_lead_to_the_pictures(folder: str, birds: Birds) -> None:
    """`../x` beside the pictures is relative to the table's folder."""
    (birds.root / folder).resolve().mkdir()
    up = "" if ".." in folder else "../"
    rows = [row | {"file_name": f"{up}./more/../{row['file_name']}"} for row in birds.rows]
    (birds.root / folder / "rows.json").write_text(json.dumps(rows))
    assert len(birds.collect(captions=str(birds.root / folder)).pictures) == 60


def pictures_called(birds: Birds, *names: str) -> None:
    """A table of pictures, the first of which have the names."""
    rows = []
    for number, row in enumerate(birds.rows):
        content = (birds.photos / row["file_name"]).read_bytes()
        name = names[number] if number < len(names) else row["file_name"]
        rows.append({"image": {"bytes": content, "path": name}, "caption": row["caption"]})
    pq.write_table(pa.Table.from_pylist(rows), birds.root / "pictures.parquet")


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("é" * 130 + ".jpg",), "a name of more than 240 characters"),
        (("a" * 250 + ".jpg",), "a name of more than 240 characters"),
        (("a.jpg", "a.jpg/b.jpg"), "that of a folder of another"),
        (("a.jpg/b.jpg", "A.jpg"), "that of a folder of another"),
        ((".",), "a name that leaves the folder"),
    ],
)
def test_names_that_no_file_can_have(names: tuple[str, ...], reason: str, birds: Birds) -> None:
    pictures_called(birds, *names)
    collection = birds.collect(images=str(birds.root / "pictures.parquet"), allow=0.05)
    (left_out,) = collection.left_out
    assert reason in left_out.reason
    assert len(list((birds.root / "copied").rglob("*.*g"))) >= 59


def test_a_very_long_name_in_a_table_is_left_out(birds: Birds) -> None:
    rows = [*birds.rows, {"file_name": "a" * 5000 + ".jpg", "caption": ["a bird"]}]
    (birds.photos / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    collection = birds.collect(allow=0.05)
    assert [one.reason[:15] for one in collection.left_out] == ["no such picture"]


def test_a_table_that_another_table_replaces_is_named(birds: Birds) -> None:
    birds.table(birds.photos / "metadata.csv")
    birds.table(birds.photos / "more.csv")
    assert f"1 other files are not read, such as {birds.photos}/more.csv" in birds.collect().notes
