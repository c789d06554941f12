"""What is wrong with a source is said in one line, before anything is computed from it."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from own_damage import (
    Damage,
    all_alike,
    caption,
    coco_of,
    cut_parquet,
    damaged_in_tar,
    few,
    in_lists,
    link,
    lists,
    named,
    no_utf8,
    one_of_two,
    other_case,
    picture,
    picture_bytes,
    renamed,
    same_in_folders,
    split,
    table,
    tar,
    text,
    two_forms,
)
from own_forms import Birds, coco, webdataset
from PIL import Image

from manymatch.util.errors import ManyMatchError

BIG = b"a bird " * 750_000
SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'
FAULTS: dict[str, tuple[Damage, str]] = {
    "no captions": (text("file_name,size\na.jpg,3\n"), "no column of captions.*--text"),
    "no names": (text("thing,caption\na.jpg,b\n"), "no column of file names.*thing.*--file"),
    "no such column": (lambda b: (table(str)(b), {"text": ["title"]})[1], "no column 'title'"),
    "delimiter": (table(lambda rows: rows.replace(",", "#")), "no column of file names"),
    "UTF-16": (table(lambda rows: rows.encode("utf-16")), "UTF-16"),
    "Latin-1": (table(lambda rows: rows.encode("latin-1")), r":3:.*not UTF-8"),
    "web page": (text("<!DOCTYPE html><html>"), "web page"),
    "empty table": (text(""), "no rows"),
    "header only": (text("file_name,caption\n"), "no rows"),
    "open quote": (table(lambda rows: rows + 'bird7.jpg,"a bird'), r":122: .*quote"),
    "quote inside": (table(lambda rows: rows + 'bird7.jpg,"a bird" flies'), r":122: .*quote"),
    "comma": (
        table(lambda rows: rows.replace('"', "")),
        "3 columns.*header has 2.* 60 of 60 .*Correct them$",
    ),
    "old line ends": (table(lambda rows: rows.replace("\n", "\r")), "carriage return"),
    "absolute": (named("/etc/bird7.jpg"), "out of the folder"),
    "above": (named("../photos/bird7.jpg"), "out of the folder"),
    "drive": (named("C:\\photos\\bird7.jpg"), "out of the folder"),
    "address": (named("http://host/bird7.jpg"), "address"),
    "missing": (named("bird700.jpg"), "no such picture"),
    "case": (other_case, "only in case"),
    "same name": (same_in_folders, "3 files|2 files"),
    "unprintable": (named("bird7\x07.jpg"), "no such picture"),
    "empty caption": (caption(""), "empty caption"),
    "5 MB caption": (caption(BIG.decode()), "million bytes|field limit"),
    "long caption": (caption("bird " * 500), "2,49. characters"),
    "HTML caption": (caption("a <b>bird</b>"), "HTML"),
    "entity": (caption("dog &amp; bird"), "HTML"),
    "bytes": (caption("b'a bird'"), "bytes"),
    "control": (caption("a \x07bird"), "U\\+0007"),
    "lost": (caption("a b\ufffdrd"), "U\\+FFFD"),
    "unknown split": (split(lambda n: "holdout"), "unknown split 'holdout'"),
    "one picture": (split(lambda n: "test" if n == 3 else "train"), "one picture"),
    "one whole picture": (one_of_two, "the split test has one picture"),
    "no training": (split(lambda n: "test"), "no training"),
    "two splits": (
        lambda b: text(
            '{"file_name":"bird1.jpg","caption":"a","split":"train"}\n'
            '{"file_name":"bird1.jpg","caption":"b","split":"test"}',
            "metadata.jsonl",
        )(b),
        "two splits",
    ),
    "overlap": (lists(train=in_lists(1, 2), test=in_lists(2, 3)), "test.txt:1: .* train"),
    "empty list": (lists(train=in_lists(1, 2), val=""), "list is empty"),
    "list of what": (lists(first=in_lists(1)), "first.txt: .*no split"),
    "overlap of paths": (
        lists(train=in_lists(1), test="photos/bird1.jpg"),
        "bird1.jpg is in the lists of test and train",
    ),
    "split in some rows": (
        text(
            '{"file_name":"bird1.jpg","caption":"a"}\n'
            '{"file_name":"bird2.jpg","caption":"b","split":"test"}',
            "metadata.jsonl",
        ),
        "jsonl:1: bird1.jpg has no split",
    ),
    "overlap of stems": (
        lists(train=in_lists(1, 2), test="bird1\n" + in_lists(3)),
        "bird1.jpg is in the lists of test and train",
    ),
    "one name of two columns": (
        text("file_name,caption,caption\nbird1.jpg,a,b\n"),
        "csv:1: two columns are called 'caption'",
    ),
    "no column of splits": (
        lambda b: (table(str)(b), {"split": ["test.txt"]})[1],
        "no column 'test.txt'",
    ),
    "few": (few, "too few"),
    "all alike": (all_alike, "too few"),
    "truncated": (
        picture(lambda path: path.write_bytes(path.read_bytes()[:300])),
        "bird7.*decoded",
    ),
    "huge": (picture(lambda path: Image.new("1", (20_000, 10_000)).save(path, "PNG")), "pixels"),
    "tiny": (picture(lambda path: Image.new("RGB", (1, 1)).save(path)), "1 x 1 pixels"),
    "SVG": (picture(lambda path: path.write_text(SVG)), "not an image"),
    "no bytes": (picture(lambda path: path.write_bytes(b"")), "is empty"),
    "web page as picture": (
        picture(lambda path: path.write_text("<html>404</html>")),
        "not an image.*--allow 0.02",
    ),
    "link to itself": (picture(link("bird7.jpg")), "bird7.jpg.*symbolic links"),
    "dangling link": (picture(link("nowhere.jpg")), "bird7.jpg"),
    "device": (picture(link("/dev/zero")), "a device"),
    "pipe": (picture(lambda path: (path.unlink(), os.mkfifo(path))), "a pipe"),
    "nothing": (lambda b: None, "no captions; expected"),
    "two forms": (two_forms, "several forms, coco and table"),
    "packed table": (
        lambda b: {"captions": str(b.table(b.root / "captions.csv.gz"))},
        "csv.gz: no captions; expected",
    ),
    "no form": (lambda b: {"format": "tars"}, "no form 'tars'"),
    "unknown form": (lambda b: {"format": "tar"}, "format"),
    "no folder": (lambda b: {"images": str(b.root / "pics")}, "pics: no such"),
    "no file": (lambda b: {"captions": str(b.root / "c.csv")}, "c.csv: no such"),
    "cut tar": (tar([("a.jpg", b"x" * 2000)], 1000), "damaged or cut off"),
    "tar of pictures": (tar([("a.jpg", b"x"), ("b.jpg", b"y")]), "no caption"),
    "tar of texts": (tar([("a.txt", b"x"), ("b.txt", b"y")]), "no picture"),
    "out of the tar": (tar([("../a.jpg", b"x"), ("../a.txt", b"y")]), "leaves the folder"),
    "damaged in a tar": (damaged_in_tar, "bird7.*decoded"),
    "JSON": (text('{"images": [', "captions_train.json"), "not valid JSON"),
    "JSON list": (text("[1]", "captions_train.json"), "expected a JSON object"),
    "JSON lists": (text('{"images": []}', "captions_train.json"), "'annotations'"),
    "JSON lines": (text('{"file_name": 1', "metadata.jsonl"), "metadata.jsonl:1: not valid JSON"),
    "JSON values": (text("3", "metadata.jsonl"), "metadata.jsonl:1: expected a JSON object"),
    "bytes in Parquet": (no_utf8(pa.binary()), "U\\+FFFD"),
    "no UTF-8 in Parquet": (no_utf8(pa.string()), "parquet: a damaged cell.*UTF-8"),
    "images of one id": (
        coco_of(
            [{"id": 5, "file_name": "bird1.jpg"}, {"id": 5, "file_name": "bird2.jpg"}],
            [{"id": 1, "image_id": 5, "caption": "a"}],
        ),
        r"images\[1\]: a second image with the id 5: bird2.jpg, after bird1.jpg",
    ),
    "caption of no image": (
        coco_of([{"id": 5, "file_name": "bird1.jpg"}], [{"id": 1, "image_id": 6, "caption": "a"}]),
        "no image of the file has the id 6",
    ),
    "key twice": (
        text('{"file_name":"bird1.jpg","caption":"a","caption":"b"}', "metadata.jsonl"),
        "jsonl:1: .*'caption' stands twice",
    ),
    "NaN in one line": (
        text('{"images": [{"id": NaN}], "annotations": []}', "captions_train.json"),
        "json:1: not valid JSON at byte ",
    ),
    "nested captions": (
        text(f'{{"file_name":"bird1.jpg","caption":{"[" * 900}{"]" * 900}}}', "metadata.jsonl"),
        "more than 20 lists inside each other",
    ),
    "2 MB of captions": (
        lambda b: pq.write_table(
            pa.table({"file_name": ["bird1.jpg"] * 4, "caption": ["a bird " * 300_000] * 4}),
            b.photos / "metadata.parquet",
            compression="zstd",
        ),
        "a text of 2,100,000 characters",
    ),
    "list of no picture": (
        lists(train=in_lists(*range(40)), val="0040\n0041\n0042\n"),
        "val.txt: 3 of 3 names are no picture with a caption, such as 0040",
    ),
    "list of few pictures": (
        lists(train=in_lists(*range(40)), val="41\n42\n43\n" + in_lists(44, 45)),
        "val.txt: 3 of 5 names",
    ),
    "list of a valley": (lists(valley=in_lists(1)), "valley.txt: .*no split"),
    "column without columns": (
        lambda b: {**(coco(b) or {}), "text": ["title"]},
        r"--text .*form 'coco' have no such column",
    ),
    "split column without columns": (
        lambda b: {**(coco(b) or {}), "split": ["fold"]},
        r"--split fold: .*form 'coco'",
    ),
    "file column of tars": (
        lambda b: {**(webdataset(b) or {}), "file": "name"},
        r"--file name: .*form 'tars'",
    ),
    "split of no sample": (
        lambda b: {**(webdataset(b) or {}), "split": ["fold"]},
        "no 'fold' in the JSON file. In all 60 of 60",
    ),
    "no such file column": (
        lambda b: (table(str)(b), {"file": "Photo"})[1],
        "no column 'Photo'. The columns are 'file_name', 'caption'",
    ),
    "unreadable ending": (
        picture(lambda path: path.rename(path.with_suffix(".xyz"))),
        "no such picture",
    ),
    "HEIC": (renamed(".heic"), "pictures with the ending .heic cannot be read"),
    "other ending": (renamed(".jpg_large"), "the ending '.jpg_large' is none of a picture"),
    "picture twice in a tar": (
        tar([("a.jpg", picture_bytes()), ("a.txt", b"y"), ("a.png", b"z")]),
        "a second picture of a",
    ),
    "text twice in a tar": (
        tar([("a.jpg", b"x"), ("a.txt", b"y"), ("a.txt", b"z")]),
        "a second file a.txt",
    ),
    "unknown split in a tar": (
        tar([("a.jpg", b"x"), ("a.json", b'{"caption": "a", "split": "holdout"}')]),
        "unknown split 'holdout'",
    ),
    "cut Parquet": (cut_parquet, "not a Parquet table"),
    "one name of two columns in Parquet": (
        lambda b: pq.write_table(
            pa.Table.from_arrays([pa.array(["a"])] * 3, names=["file", "caption", "caption"]),
            b.photos / "metadata.parquet",
        ),
        "metadata.parquet: two columns are called 'caption'",
    ),
    "key twice in JSON": (
        text('{"images": [{"id": 1, "id": 2}], "annotations": []}', "birds.json"),
        r"birds.json: images\[0\]: the key 'id' stands twice",
    ),
    **{
        f"empty {key}": (lambda b, key=key, value=value: {key: value}, f"{key}.*at least 1 char")
        for key, value in {
            "split": [""],
            "text": [""],
            "file": "",
            "captions": "",
            "parser": "",
        }.items()
    },
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line(name: str, birds: Birds) -> None:
    damage, words = FAULTS[name]
    with pytest.raises(ManyMatchError, match=words) as caught:
        birds.collect(**(damage(birds) or {}))
    assert "\n" not in str(caught.value)


def test_few_faults_are_listed_and_left_out(birds: Birds) -> None:
    table(lambda rows: rows.replace("bird7.jpg", "bird77.jpg"))(birds)
    (birds.photos / "bird8.jpg").write_bytes(b"")
    listed = birds.root / "left_out.tsv"
    assert len(birds.collect(allow=0.05).pictures) == 58
    lines = listed.read_text().splitlines()
    assert [line.split("\t")[2] for line in lines] == ["name", *["bird77.jpg"] * 2, "bird8.jpg"]
    text("file_name,caption\n" + "".join(f"bird{n}.jpg,a\n" for n in range(10, 58)))(birds)
    birds.collect(allow=0.05)
    assert not listed.exists(), "the list of an earlier run"
