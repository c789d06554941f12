"""What is wrong with a source is said in one line, before anything is computed from it."""

import os
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from own_damage import (
    all_alike,
    caption,
    coco_of,
    cut_parquet,
    damaged_in_tar,
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
from own_forms import coco, webdataset
from PIL import Image

from manymatch.datasets.own.record import texts
from manymatch.util.errors import ManyMatchError


def test_a_list_that_is_written_as_text_warns_of_nothing():
    with warnings.catch_warnings(action="error"):
        assert texts(r"['a \d dog', 'a bird']") == [r"a \d dog", "a bird"]


BIG = b"a bird " * 750_000
SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'
FAULTS = [
    (text("file_name,size\na.jpg,3\n"), "no column of captions.*--text"),
    (lambda b: (table(str)(b), {"text": ["title"]})[1], "no column 'title'"),
    (lambda b: (table(str)(b), {"text": ["caption"] * 2})[1], "text: 'caption' is given twice"),
    (table(lambda rows: rows.replace(",", "#")), "no column of file names"),
    (
        lambda b: {"images": f"{b.photos}/bird1.jpg", "captions": str(b.table(b.root / "c.csv"))},
        "bird1.jpg: not a folder",
    ),
    (lambda b: (table(str)(b), {"encoding": "utf-16"})[1], "utf-16.*--encoding"),
    (lambda b: (table(str)(b), {"encoding": "hex"})[1], "no encoding of text"),
    (table(lambda rows: rows.encode("latin-1")), r":3:.*not UTF-8"),
    (text("<!DOCTYPE html><html>"), "web page"),
    (text("file_name,caption\n"), "no rows"),
    (table(lambda rows: rows + 'bird7.jpg,"a bird" flies'), r":122: .*quote"),
    (
        table(lambda rows: rows.replace('"', "")),
        "3 columns.*header has 2.* 60 of 60 .*Correct them$",
    ),
    (table(lambda rows: rows.replace("\n", "\r")), "carriage return"),
    (named("/etc/bird7.jpg"), "out of the folder"),
    (named("http://host/bird7.jpg"), "address"),
    (named("bird700.jpg"), "no such picture"),
    (other_case, "only in case"),
    (same_in_folders, "3 files|2 files"),
    (caption(""), "empty caption"),
    (caption(BIG.decode()), "million bytes|field limit"),
    (caption("bird " * 500), "2,49. characters"),
    (caption("a <b>bird</b>"), "HTML"),
    (caption("b'a bird'"), "bytes"),
    (caption("a \x07bird"), "U\\+0007"),
    (split(lambda n: "holdout"), "unknown split 'holdout'"),
    (split(lambda n: "test" if n == 3 else "train"), "one picture"),
    (one_of_two, "the split test has one picture"),
    (split(lambda n: "test"), "no training"),
    (
        lambda b: text(
            '{"file_name":"bird1.jpg","caption":"a","split":"train"}\n'
            '{"file_name":"bird1.jpg","caption":"b","split":"test"}',
            "metadata.jsonl",
        )(b),
        "two splits",
    ),
    (lists(train=in_lists(1, 2), test=in_lists(2, 3)), "test.txt:1: .* train"),
    (lists(train=in_lists(1, 2), val=""), "list is empty"),
    (lists(first=in_lists(1)), "first.txt: .*no split"),
    (lists(train=in_lists(1), test="photos/bird1.jpg"), "bird1.jpg is in the lists of"),
    (
        text(
            '{"file_name":"bird1.jpg","caption":"a"}\n'
            '{"file_name":"bird2.jpg","caption":"b","split":"test"}',
            "metadata.jsonl",
        ),
        "jsonl:1: bird1.jpg has no split",
    ),
    (text("file_name,caption,caption\nbird1.jpg,a,b\n"), "csv:1: two columns"),
    (lambda b: (table(str)(b), {"split": ["test.txt"]})[1], "no column 'test.txt'"),
    (all_alike, "too few"),
    (picture(lambda path: path.write_bytes(path.read_bytes()[:300])), "bird7.*decoded"),
    (picture(lambda path: Image.new("1", (20_000, 10_000)).save(path, "PNG")), "pixels"),
    (picture(lambda path: Image.new("RGB", (1, 1)).save(path)), "1 x 1 pixels"),
    (picture(lambda path: path.write_text(SVG)), "not an image"),
    (picture(lambda path: path.write_bytes(b"")), "is empty"),
    (picture(link("bird7.jpg")), "bird7.jpg.*symbolic links"),
    (picture(link("nowhere.jpg")), "bird7.jpg"),
    (picture(link("/dev/zero")), "a device"),
    (picture(lambda path: (path.unlink(), os.mkfifo(path))), "a pipe"),
    (lambda b: None, "no captions; expected"),
    (two_forms, "several forms, coco and table"),
    (lambda b: {"format": "tars"}, "no form 'tars'"),
    (lambda b: {"format": "tar"}, "format"),
    (lambda b: {"captions": str(b.root / "c.csv")}, "c.csv: no such"),
    (tar([("a.jpg", b"x" * 2000)], 1000), "damaged or cut off"),
    (tar([("a.jpg", b"x"), ("b.jpg", b"y")]), "no caption"),
    (tar([("a.txt", b"x"), ("b.txt", b"y")]), "no picture"),
    (damaged_in_tar, "bird7.*decoded"),
    (text('{"images": [', "captions_train.json"), "not valid JSON"),
    (text('{"images": []}', "captions_train.json"), "'annotations'"),
    (text('{"file_name": 1', "metadata.jsonl"), "metadata.jsonl:1: not valid JSON"),
    (no_utf8(pa.string()), "parquet: a damaged cell.*UTF-8"),
    (
        coco_of(
            [{"id": 5, "file_name": "bird1.jpg"}, {"id": 5, "file_name": "bird2.jpg"}],
            [{"id": 1, "image_id": 5, "caption": "a"}],
        ),
        r"images\[1\]: a second image with the id 5: bird2.jpg, after bird1.jpg",
    ),
    (
        coco_of([{"id": 5, "file_name": "bird1.jpg"}], [{"id": 1, "image_id": 6, "caption": "a"}]),
        "no image of the file has the id 6",
    ),
    (
        text('{"file_name":"bird1.jpg","caption":"a","caption":"b"}', "metadata.jsonl"),
        "jsonl:1: .*'caption' occurs twice",
    ),
    (
        text(f'{{"file_name":"bird1.jpg","caption":{"[" * 900}{"]" * 900}}}', "metadata.jsonl"),
        "more than 20 lists inside each other",
    ),
    (
        lambda b: pq.write_table(
            pa.table({"file_name": ["bird1.jpg"] * 4, "caption": ["a bird " * 300_000] * 4}),
            b.photos / "metadata.parquet",
            compression="zstd",
        ),
        "a text of 2,100,000 characters",
    ),
    (
        lambda b: pq.write_table(
            pa.table(
                {
                    "file_name": ["bird1.jpg"],
                    "caption": pa.array([[("en", "a bird")]], pa.map_(pa.string(), pa.string())),
                }
            ),
            b.photos / "metadata.parquet",
        ),
        "a map, whose keys are no captions",
    ),
    (
        text('{"file_name":"bird1.jpg","caption":{"en":"a bird"}}', "metadata.jsonl"),
        "an object with the keys en as a caption",
    ),
    (lists(train=in_lists(*range(40)), val="0040\n0041\n0042\n"), "val.txt: 3 of 3 names"),
    (
        lists(train=in_lists(*range(40)), val="41\n42\n43\n" + in_lists(44, 45)),
        "val.txt: 3 of 5 names",
    ),
    (lambda b: {**(coco(b) or {}), "text": ["title"]}, r"--text .*no such column"),
    (
        lambda b: (
            text('[{"file_name": "bird1.jpg", "caption": "a"}]', "metadata.json")(b),
            {"encoding": "cp1252"},
        )[1],
        r"--encoding cp1252: .*metadata.json",
    ),
    (lambda b: {**(webdataset(b) or {}), "file": "name"}, r"--file name: .*form 'tars'"),
    (lambda b: {**(webdataset(b) or {}), "split": ["fold"]}, "no 'fold'.* 60 of 60"),
    (renamed(".jxl"), "the ending .jxl cannot be read"),
    (renamed(".jpg_large"), "the ending '.jpg_large' is none of a picture"),
    (tar([("a.jpg", picture_bytes()), ("a.txt", b"y"), ("a.png", b"z")]), "a second picture of a"),
    (cut_parquet, "not a Parquet table"),
    (
        lambda b: pq.write_table(
            pa.Table.from_arrays([pa.array(["a"])] * 3, names=["file", "caption", "caption"]),
            b.photos / "metadata.parquet",
        ),
        "metadata.parquet: two columns are called 'caption'",
    ),
    *(
        (
            lambda b, key=key: {key: [""] if key in ("split", "text") else ""},
            f"{key}.*at least 1 char",
        )
        for key in ("split", "text", "file", "captions", "parser")
    ),
]


@pytest.mark.parametrize(("damage", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_a_fault_is_one_line(damage, words, birds):
    with pytest.raises(ManyMatchError, match=words) as caught:
        birds.collect(**(damage(birds) or {}))
    assert "\n" not in str(caught.value)


def test_few_faults_are_listed_and_left_out(birds):
    table(lambda rows: rows.replace("bird7.jpg", "bird77.jpg"))(birds)
    (birds.photos / "bird8.jpg").write_bytes(b"")
    listed = birds.root / "left_out.tsv"
    assert len(birds.collect(allow=0.05).pictures) == 58
    lines = listed.read_text().splitlines()
    assert [line.split("\t")[2] for line in lines] == ["name", *["bird77.jpg"] * 2, "bird8.jpg"]
    text("file_name,caption\n" + "".join(f"bird{n}.jpg,a\n" for n in range(10, 58)))(birds)
    birds.collect(allow=0.05)
    assert not listed.exists(), "the list of an earlier run"
