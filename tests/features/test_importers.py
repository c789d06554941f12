"""Importers of published features in their real formats, and damaged files of each format."""

import base64
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from manymatch.config.params import Published
from manymatch.datasets.base import CAPTIONS
from manymatch.features.importers.importing import import_features, read_image_table
from manymatch.features.store import FeatureStore
from manymatch.util.errors import DataError, SourceError

WIDTH = 8
SPLITS = {"train": "train", "validation": "dev", "test": "test"}


class ImportData:
    """A caption table whose images have COCO's file names, and a folder for published features."""

    splits = ("test", "train", "validation", "train", "test")
    numbers = tuple(1000 + 7 * k for k in range(5))
    ids = tuple(f"im{k}" for k in range(5))
    regions = np.random.default_rng(0).standard_normal((5, 3, WIDTH)).astype("<f4")

    def __init__(self, folder):
        self.folder, self.source = folder, folder / "published"
        self.captions, self.store = folder / "captions.parquet", folder / "out" / "butd.h5"
        self.source.mkdir()
        self.write_captions(self.rows())

    def file(self, k):
        return f"images/COCO_val2014_{self.numbers[k]:012}.jpg"

    def caption(self, k, number):
        return f"Picture {k}, seen the {number}th time."

    def rows(self):
        return [
            {"image_id": self.ids[k], "caption_id": f"{k}#{n}", "split": split, "labels": []}
            | {"caption": self.caption(k, n), "file": self.file(k)}
            for k, split in enumerate(self.splits)
            for n in range(6)  # some images of COCO have more than five
        ]

    def write_captions(self, rows):
        pq.write_table(pa.Table.from_pylist(rows, schema=CAPTIONS), self.captions)

    def run(self, format, max_regions=None):
        """Import the features; return what the store has."""
        settings = Published(format=format, path=str(self.source), max_regions=max_regions)
        import_features("butd", settings, self.captions, self.store)
        with FeatureStore(self.store) as store:
            assert store.image_ids == list(self.ids)
            assert store.attributes["preprocessing"].startswith(f"published, {format}: ")
            return store.read(range(5))


@pytest.fixture
def data(tmp_path):
    return ImportData(tmp_path)


def b64(values, dtype="<f4"):
    return base64.b64encode(values.astype(dtype).tobytes()).decode()


def tsv_line(name, features):
    """A line of bottom-up attention's files."""
    boxes = np.tile([64.0, 48.0, 640.0, 240.0], (len(features), 1))
    sizes = ["640", "480.0", str(len(features))]  # some programs write 480.0
    return "\t".join([str(name), *sizes, b64(boxes), b64(features)])


def write_tsv(data):
    lines = [tsv_line(data.numbers[k], data.regions[k]) for k in (3, 0, 4, 1, 2)]
    lines.insert(2, tsv_line(555, data.regions[0]))  # an image that the table has not
    (data.source / "trainval.tsv").write_text("\n".join(lines) + "\n")


def write_precomp(data, folder=None, splits=SPLITS):
    """As published: repeated rows except in train, in another order than the caption table."""
    (folder := folder or data.source).mkdir(exist_ok=True)
    for split, name in splits.items():
        images = [k for k, of in reversed(list(enumerate(data.splits))) if of == split]
        copies = 1 if name == "train" else 5
        array = np.repeat(data.regions[images], copies, axis=0)
        np.save(folder / f"{name}_ims.npy", array.astype(">f8" if name == "dev" else "<f4"))
        captions = [data.caption(k, n).upper() for k in images for n in (4, 1, 0, 3, 2)]
        (folder / f"{name}_caps.txt").write_text("\n".join(captions) + "\n")
        ids = [str(data.numbers[k]) for k in images for _ in range(copies)]
        (folder / f"{name}_ids.txt").write_text("\n".join(ids) + "\n")


def write_vse_infinity(data):
    write_precomp(data, data.source / "precomp")
    mapping = {str(number): Path(data.file(k)).name for k, number in enumerate(data.numbers)}
    (data.source / "id_mapping.json").write_text(json.dumps(mapping))


def write_npy_folder(data):
    """Files called by the number of an image, or by an id of `id_mapping.json`."""
    (data.source / "id_mapping.json").write_text(json.dumps({"x": Path(data.file(0)).name}))
    for name, k in zip(["x", *data.numbers[1:], 55], (0, 1, 2, 3, 4, 0), strict=True):
        np.save(data.source / f"{name}.npy", data.regions[k])


WRITERS = {
    "butd_tsv": write_tsv,
    "scan": write_precomp,
    "vse_infinity": write_vse_infinity,
    "npy_folder": write_npy_folder,
}


def testall(data):
    """The files of `testall`, whose first part is `test`."""
    write_precomp(data, splits={"test": "testall"})
    np.save(data.source / "test_ims.npy", np.load(data.source / "testall_ims.npy")[:5])
    captions = (data.source / "testall_caps.txt").read_text().splitlines()[:5]
    (data.source / "test_caps.txt").write_text("\n".join(captions))


@pytest.mark.parametrize(
    ("format", "change"), [*((format, None) for format in WRITERS), ("scan", testall)]
)
def test_every_image_gets_its_regions(data, format, change):
    WRITERS[format](data)
    if change:
        change(data)
    features, counts, boxes = data.run(format)
    assert set(counts.tolist()) == {3}
    np.testing.assert_array_equal(features, data.regions.astype(np.float16))
    assert (boxes is not None) == (format == "butd_tsv")
    if boxes is not None:
        np.testing.assert_allclose(boxes[2, 1], [0.1, 0.1, 1.0, 0.5])
    assert [path.name for path in data.store.parent.iterdir()] == ["butd.h5"]


def test_tsv_in_parts_with_10_to_100_regions(data):
    rng = np.random.default_rng(1)
    counts = [10, 100, 36, 11, 57]
    for part, rows in (("a.tsv.0", (0, 1, 2)), ("a.tsv.1", (3, 4))):
        lines = [tsv_line(data.file(k), rng.random((counts[k], WIDTH))) for k in rows]
        (data.source / part).write_text("\n".join(lines))
    for most in (None, 100):
        features, result, _ = data.run("butd_tsv", most)
        assert result.tolist() == counts and features.shape[1] == 100
    with pytest.raises(DataError, match=r"a.tsv.0:2: .*100 regions, the store has room for 1..36"):
        data.run("butd_tsv", max_regions=36)


def test_two_images_with_the_same_captions_keep_their_order(data):
    rows = data.rows()
    for row, twin in zip(rows[:6], rows[24:], strict=True):
        twin["caption"] = row["caption"]
    data.write_captions(rows)
    data.caption = lambda k, number, own=data.caption: own(k % 4, number)
    write_precomp(data)
    # The files hold image 4 before image 0, and nothing but the order tells them apart.
    expected = data.regions[[4, 1, 2, 3, 0]].astype(np.float16)
    np.testing.assert_array_equal(data.run("scan")[0], expected)


def content(name, change):
    return lambda data: (data.source / name).write_bytes(change((data.source / name).read_bytes()))


def lines_of(name, change):
    """Changes the list of lines of a text file."""
    return content(name, lambda text: "\n".join(change(text.decode().splitlines())).encode())


def line(value):
    """Another fourth line of the TSV file."""
    return lines_of(TSV, lambda rows: [*rows[:3], value, *rows[4:]])


def field(number, value):
    """Another field of the fourth line of the TSV file."""

    def change(rows):
        fields = rows[3].split("\t")
        fields[number] = value
        return [*rows[:3], "\t".join(fields), *rows[4:]]

    return lines_of(TSV, change)


def array(name, change):
    return lambda d: np.save(d.source / name, change(np.load(d.source / name)), allow_pickle=True)


def header(shape):
    """Changes the shape in the header of an array, whose length stays."""
    return content(IMS, lambda whole: whole.replace(b"(10, 3, 8), }".ljust(len(shape)), shape))


def gone(*names):
    return lambda data: [(data.source / name).unlink() for name in names]


REGIONS = np.random.default_rng(4).random((3, 8))
NARROW = np.random.default_rng(5).random((3, 2048))
BFLOAT16 = torch.tensor(NARROW).bfloat16().view(torch.int16).numpy()
TSV, CAPS, IMS = "trainval.tsv", "test_caps.txt", "test_ims.npy"
IDS, IM2 = "precomp/test_ids.txt", "1014.npy"
FAULTS = [
    ("butd_tsv", line("\t".join("x" * 10)), "10 columns between tabs, as LXMERT's files"),
    ("butd_tsv", line("1000\t{}"), "2 columns between tabs, as VinVL's files have"),
    ("butd_tsv", field(1, "640.5"), "tsv:4: image_w: '640.5' is not a whole number"),
    ("butd_tsv", field(3, "5"), "tsv:4: features: 24 numbers for 5 regions"),
    ("butd_tsv", field(3, "0"), "image '1028' has 0 boxes and 640 x 480 pixels. Give every image"),
    ("butd_tsv", field(5, "b'AAAA'"), "Leave out the b'...' of Python"),
    ("butd_tsv", field(5, b64(REGIONS, "<f2")), "numbers are as small or large as"),
    ("butd_tsv", field(5, b64(BFLOAT16, "<i2")), "look like those of float16 or bfloat16"),
    ("butd_tsv", field(5, b64(NARROW.round(1) * 10, "<f8")), "every second number is 0"),
    ("butd_tsv", field(5, base64.b64encode(b"abc").decode()), "features: not base64 of float32"),
    ("butd_tsv", field(5, b64(np.full(24, np.nan))), "tsv:4: .*features hold NaN"),
    ("butd_tsv", field(5, b64(np.zeros(48))), "the store has width 8"),
    ("butd_tsv", field(4, b64(np.zeros(9))), "boxes: not four finite"),
    ("butd_tsv", field(4, b64(np.full(12, 5000.0))), "boxes: not x1 <= x2"),
    ("butd_tsv", field(4, b64(np.tile([0.1, 0.1, 1, 0.9], 3))), "Write pixels, not fractions"),
    ("butd_tsv", content(TSV, lambda _: b"x" * 200_000), "tsv:1: a line of more than 100000 B"),
    ("butd_tsv", lines_of(TSV, lambda rows: [*rows, rows[0]]), ":7: image 'im3' is already in"),
    ("butd_tsv", lines_of(TSV, lambda rows: rows[1:]), "no features of image 'im3'"),
    ("butd_tsv", lines_of(TSV, lambda rows: rows[2:3]), "no line of an image of"),
    ("butd_tsv", lambda data: data.source.rename(data.folder / "away"), "no such file or folder"),
    ("scan", lines_of(CAPS, lambda rows: [*rows[:7], rows[0], *rows[8:]]), "caps.txt:6: no image"),
    ("scan", lines_of(CAPS, lambda rows: rows[:9]), "10 rows for the 9 captions of test_caps.txt"),
    ("scan", content(CAPS, lambda _: b"good\n\xff\xfe\n"), "test_caps.txt:2: byte 0xff"),
    ("scan", gone(CAPS), "test_caps.txt: no such file"),
    (
        "scan",
        array(IMS, lambda rows: rows + (np.arange(10) == 7)[:, None, None]),
        "test_ims.npy: row 7: not a copy of row 5",
    ),
    ("scan", gone(*(f"{name}_ims.npy" for name in SPLITS.values())), "no train_ims.npy"),
    ("scan", array(IMS, lambda _: np.array([Path("code")], object)), "Python objects"),
    ("scan", content(IMS, lambda whole: whole[:-50]), "test_ims.npy: not an array"),
    ("scan", header(b"(10, 3, 80000), }"), "not an array"),
    ("scan", array(IMS, lambda rows: rows.reshape(10, 24)), "not .images, regions, width."),
    ("scan", array(IMS, lambda rows: rows.astype(int)), "int64; save the array with .astype"),
    ("scan", array(IMS, lambda rows: np.where(rows == rows[5, 1, 1], np.nan, rows)), "row 5: "),
    ("vse_infinity", gone("id_mapping.json"), "id_mapping.json: no such file"),
    ("vse_infinity", lines_of(IDS, lambda ids: ids[::-1]), "caps.txt:1: not the captions of image"),
    ("vse_infinity", lines_of(IDS, lambda ids: ids[2:] + ids[:2]), "the id of another image"),
    ("vse_infinity", lines_of(IDS, lambda ids: ["77"] * 10), "has the id '77'"),
    ("npy_folder", array(IM2, lambda rows: rows[None]), "not .regions, width."),
    ("npy_folder", lambda data: np.save(data.source / "im2.npy", data.regions[2]), "is already in"),
]


@pytest.mark.parametrize(("format", "spoil", "words"), FAULTS, ids=[words for *_, words in FAULTS])
def test_a_fault_is_one_line_and_leaves_no_store(data, format, spoil, words, monkeypatch):
    monkeypatch.setattr("manymatch.features.importers.butd_tsv.MAX_LINE_BYTES", 100_000)
    WRITERS[format](data)
    spoil(data)
    with pytest.raises((DataError, SourceError), match=words) as fault:
        data.run(format)
    assert "\n" not in str(fault.value) and not data.store.exists()


def test_an_image_goes_by_id_file_and_number_of_its_own(data):
    images, number = read_image_table(data.captions), data.numbers[3]
    file = f"COCO_val2014_{number:012}"
    for name in ("im3", file, f"{file}.jpg", str(number), f"{number:012}"):
        assert images.row_named(name) == 3
    for name in (f"flickr_{number}", "55", ""):  # the first has the same number alone
        assert images.row_named(name) is None
    data.write_captions([row | {"file": row["file"].replace("7", "0")} for row in data.rows()])
    with pytest.raises(DataError, match="several images have the name '1000'"):
        read_image_table(data.captions).row_named("1000")
    data.write_captions([row | {"file": f"{row['image_id']}_58.7a.jpg"} for row in data.rows()])
    assert read_image_table(data.captions).row_named("58") is None, "a hash, not a number"
