"""Importers of published features in their real formats, and damaged files of each format."""

import base64
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from manymatch.cli import commands
from manymatch.config.params import Published, read_params
from manymatch.datasets.base import CAPTIONS
from manymatch.features.importers.importing import halves, import_features, read_image_table
from manymatch.features.store import FeatureStore
from manymatch.util.errors import DataError, SourceError

ROOT = Path(__file__).parents[2]
WIDTH = 8
SPLITS = {"train": "train", "validation": "dev", "test": "test"}


class ImportData:
    """A caption table whose images have COCO's file names, and a folder for published features."""

    def __init__(self, folder, splits):
        self.folder, self.source = folder, folder / "published"
        self.captions, self.store = folder / "captions.parquet", folder / "out" / "butd.h5"
        self.source.mkdir()
        self.splits = splits
        self.numbers = [1000 + 7 * k for k in range(len(splits))]
        self.ids = [f"im{k}" for k in range(len(splits))]
        rng = np.random.default_rng(0)
        self.regions = rng.standard_normal((len(splits), 3, WIDTH)).astype("<f4")
        pq.write_table(pa.Table.from_pylist(self.rows(), schema=CAPTIONS), self.captions)

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

    def run(self, format, path=None, max_regions=None):
        import_features("butd", format, path or self.source, self.captions, self.store, max_regions)

    def read(self):
        with FeatureStore(self.store) as store:
            features, counts, boxes = store.read(range(len(store)))
            return store.image_ids, features, counts, boxes

    def refusal(self, format, path=None):
        """The message of the refused import, which leaves no store."""
        with pytest.raises((DataError, SourceError)) as fault:
            self.run(format, path)
        assert "\n" not in str(fault.value) and not self.store.exists()
        return str(fault.value)

    def check(self):
        """Check that every image has its own regions."""
        ids, features, counts, _ = self.read()
        assert ids == self.ids and set(counts.tolist()) == {3}
        np.testing.assert_array_equal(features, self.regions.astype(np.float16))


@pytest.fixture
def data(tmp_path):
    return ImportData(tmp_path, ["test", "train", "validation", "train", "test"])


# Bottom-up attention's TSV


def packed(values, dtype):
    return base64.b64encode(values.astype(dtype).tobytes()).decode()


def b64(values):
    return packed(values, "<f4")


def tsv_line(name, features, boxes=None, size=(640, 480)):
    k = len(features)
    if boxes is None:
        boxes = np.tile([64.0, 48.0, 640.0, 240.0], (k, 1))
    return "\t".join([str(name), str(size[0]), str(size[1]), str(k), b64(boxes), b64(features)])


def write_tsv(data, name="trainval.tsv"):
    lines = [tsv_line(data.numbers[k], data.regions[k]) for k in (3, 0, 4, 1, 2)]
    lines.insert(2, tsv_line(555, data.regions[0]))  # an image that the table has not
    path = data.source / name
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("sizes", ["\t640\t480\t3\t", "\t640.0\t480.0\t3.0\t"])
def test_tsv_gives_every_image_its_regions_and_boxes(data, sizes):
    path = write_tsv(data)
    path.write_text(path.read_text().replace("\t640\t480\t3\t", sizes))
    data.run("butd_tsv", path)
    data.check()
    np.testing.assert_allclose(data.read()[3][2, 1], [0.1, 0.1, 1.0, 0.5])
    with FeatureStore(data.store) as store:
        assert store.attributes["preprocessing"] == "published, butd_tsv: trainval.tsv"
    assert [path.name for path in data.store.parent.iterdir()] == ["butd.h5"]


def test_tsv_in_parts_with_10_to_100_regions(data):
    rng = np.random.default_rng(1)
    counts = [10, 100, 36, 11, 57]
    for part, rows in (("a.tsv.0", (0, 1, 2)), ("a.tsv.1", (3, 4))):
        lines = [tsv_line(data.file(k), rng.random((counts[k], WIDTH))) for k in rows]
        (data.source / part).write_text("\n".join(lines))
    data.run("butd_tsv")
    ids, features, result, _ = data.read()
    assert ids == data.ids and result.tolist() == counts and features.shape[1] == 100
    whole = data.store.read_bytes()
    data.run("butd_tsv", max_regions=100)
    assert data.store.read_bytes() == whole
    with pytest.raises(DataError, match=r"a.tsv.0:2: .*100 regions, the store has room for 1..36"):
        data.run("butd_tsv", max_regions=36)


REGIONS = np.random.default_rng(4).random((3, 8))
NARROW = np.random.default_rng(5).random((3, 2048))
BFLOAT16 = torch.tensor(NARROW).bfloat16().view(torch.int16).numpy()
OF_HALVES = "look like those of float16 or bfloat16. Write base64 of float32"
DAMAGES = {
    "few fields": (None, "1000\t640\t480", "3 columns between tabs, or cut off. Write 6"),
    "LXMERT": (None, "\t".join("x" * 10), "10 columns between tabs, as LXMERT's files have"),
    "VinVL": (None, "1000\t{}", "2 columns between tabs, as VinVL's files have"),
    "part of a pixel": (1, "640.5", "image_w: '640.5' is not a whole number"),
    "count": (3, "5", "24 numbers for 5 regions"),
    "none": (3, "0", "image '1028' has 0 boxes and 640 x 480 pixels. Give every image"),
    "bytes of Python": (5, "b'AAAA'", "Leave out the b'...' of Python"),
    "halves": (5, packed(REGIONS, "<f2"), "numbers are as small or large as"),
    "doubles": (5, packed(REGIONS, "<f8"), "Write base64 of float32, not of another type"),
    "bfloat16": (5, packed(BFLOAT16, "<i2"), OF_HALVES),
    "doubles of whole numbers": (
        5,
        packed(NARROW.round(1) * 10, "<f8"),
        "every second number is 0",
    ),
    "not base64": (5, "AAAA*AAA", "features: not base64"),
    "half a number": (5, base64.b64encode(b"abc").decode(), "features: not base64 of float32"),
    "NaN": (5, b64(np.full(24, np.nan)), "features hold NaN"),
    "too great": (5, b64(np.full(24, 1e5)), "more than float16"),
    "other width": (5, b64(np.zeros(48)), "the store has width 8"),
    "boxes": (4, b64(np.zeros(9)), "boxes: not four finite"),
    "outside": (4, b64(np.full(12, 5000.0)), "boxes: not x1 <= x2"),
    "fractions": (4, b64(np.tile([0.1, 0.1, 1.0, 0.9], 3)), "Write pixels, not fractions"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_lines_are_told_with_their_number(data, damage):
    field, value, message = damage
    path = write_tsv(data)
    lines = path.read_text().split("\n")
    fields = lines[3].split("\t")
    if field is not None:
        fields[field] = value
        value = "\t".join(fields)
    lines[3] = value
    path.write_text("\n".join(lines))
    line = data.refusal("butd_tsv")
    assert "trainval.tsv:4: " in line and message in line


def test_tsv_of_other_or_too_few_images(data):
    path = write_tsv(data)
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:-1], lines[0]]))
    assert ":7: image 'im3' is already in" in data.refusal("butd_tsv")
    path.write_text("\n".join(lines[1:]))
    assert "no features of image 'im3'" in data.refusal("butd_tsv")
    path.write_text(tsv_line(5, data.regions[0]))
    assert "no line of an image of" in data.refusal("butd_tsv")
    path.unlink()
    assert "no such file or folder" in data.refusal("butd_tsv", path)


def test_an_endless_line_is_not_read_to_its_end(data, monkeypatch):
    monkeypatch.setattr("manymatch.features.importers.butd_tsv.MAX_LINE_BYTES", 1000)
    (data.source / "a.tsv").write_bytes(b"x" * 5000)
    assert "a.tsv:1: a line of more than 1000 B" in data.refusal("butd_tsv")


# SCAN's precomputed arrays


def write_precomp(data, folder, splits=SPLITS):
    """As published: repeated rows except in train, in another order than the caption table."""
    folder.mkdir(exist_ok=True)
    for split, name in splits.items():
        images = [k for k, of in reversed(list(enumerate(data.splits))) if of == split]
        copies = 1 if name == "train" else 5
        array = np.repeat(data.regions[images], copies, axis=0)
        np.save(folder / f"{name}_ims.npy", array)
        captions = [data.caption(k, n).upper() for k in images for n in (4, 1, 0, 3, 2)]
        (folder / f"{name}_caps.txt").write_text("\n".join(captions) + "\n")
        ids = [str(data.numbers[k]) for k in images for _ in range(copies)]
        (folder / f"{name}_ids.txt").write_text("\n".join(ids) + "\n")


def test_scan_undoes_the_repetition_and_goes_by_captions(data):
    write_precomp(data, data.source)
    assert len(np.load(data.source / "test_ims.npy")) == 10
    data.run("scan")
    data.check()
    assert data.read()[3] is None
    for path in data.source.glob("*.npy"):
        np.save(path, np.load(path).astype(">f8"))
    data.run("scan")
    data.check()


def test_scan_takes_testall_for_test(data):
    write_precomp(data, data.source, SPLITS | {"test": "testall"})
    part = np.load(data.source / "testall_ims.npy")[:5]
    np.save(data.source / "test_ims.npy", part)
    captions = (data.source / "testall_caps.txt").read_text().splitlines()[:5]
    (data.source / "test_caps.txt").write_text("\n".join(captions))
    data.run("scan")
    data.check()


def test_two_images_with_the_same_captions_keep_their_order(data):
    rows = data.rows()
    for row, twin in zip(rows[:6], rows[24:], strict=True):
        twin["caption"] = row["caption"]
    pq.write_table(pa.Table.from_pylist(rows, schema=CAPTIONS), data.captions)
    data.caption = lambda k, number, own=data.caption: own(k % 4, number)
    write_precomp(data, data.source)
    data.run("scan")
    features = data.read()[1]
    # The files hold image 4 before image 0, and nothing but the order tells them apart.
    np.testing.assert_array_equal(features[0], data.regions[4].astype(np.float16))
    np.testing.assert_array_equal(features[4], data.regions[0].astype(np.float16))


def test_scan_with_captions_of_other_images(data):
    write_precomp(data, data.source)
    path = data.source / "test_caps.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:7], lines[0], *lines[8:]]))
    assert "test_caps.txt:6: no image of" in data.refusal("scan")
    path.write_text("\n".join(lines[:9]))
    assert "10 rows for the 9 captions of test_caps.txt" in data.refusal("scan")
    path.write_bytes(b"good\n\xff\xfe\n")
    assert "test_caps.txt:2: byte 0xff" in data.refusal("scan")
    path.unlink()
    assert "test_caps.txt: no such file" in data.refusal("scan")


def test_scan_whose_rows_are_no_copies_or_that_lacks_images(data):
    write_precomp(data, data.source)
    array = np.load(data.source / "test_ims.npy")
    array[7, 0, 0] += 1
    np.save(data.source / "test_ims.npy", array)
    assert "test_ims.npy: row 7: not a copy of row 5" in data.refusal("scan")
    for file in data.source.iterdir():
        file.unlink()
    write_precomp(data, data.source, {"train": "train", "test": "test"})
    assert "no features of image 'im2'" in data.refusal("scan")
    for file in data.source.iterdir():
        file.unlink()
    assert "no train_ims.npy" in data.refusal("scan")


def saved(change):
    """Replaces the array in a file."""
    return lambda path: np.save(path, change(np.load(path)), allow_pickle=True)


def header(shape):
    """Changes the shape in the header of a file, whose length stays."""
    return lambda path: path.write_bytes(
        path.read_bytes().replace(b"(10, 3, 8), }".ljust(len(shape)), shape)
    )


ARRAYS = {
    "pickled": (saved(lambda array: np.array([Path("code")], object)), "pickled objects"),
    "fortran": (saved(np.asfortranarray), "columns first; save np.ascontiguousarray"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-50]), "row 9: cut off"),
    "huge": (header(b"(10, 3, 80000), }"), "row 0: cut off"),
    "wide": (header(b"(10, 3, 80000000000), }"), "not an array of features"),
    "flat": (saved(lambda array: array.reshape(10, 24)), "not (images, regions, width)"),
    "integers": (saved(lambda array: array.astype(np.int64)), "int64; save the array with .astype"),
    "NaN": (saved(lambda array: np.where(array == array[5, 1, 1], np.nan, array)), "row 5: "),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_damaged_arrays_are_told(data, name):
    damage, message = ARRAYS[name]
    write_precomp(data, data.source)
    damage(data.source / "test_ims.npy")
    line = data.refusal("scan")
    assert "test_ims.npy" in line and message in line


# VSE-infinity's folder, and one file an image


def write_mapping(data):
    mapping = {str(number): Path(data.file(k)).name for k, number in enumerate(data.numbers)}
    (data.source / "id_mapping.json").write_text(json.dumps(mapping))


def test_vse_infinity_goes_by_ids_and_verifies_captions(data):
    write_precomp(data, data.source / "precomp")
    write_mapping(data)
    data.run("vse_infinity")
    data.check()


def test_vse_infinity_with_wrong_ids(data):
    write_precomp(data, data.source / "precomp")
    assert "id_mapping.json: no such file" in data.refusal("vse_infinity")
    write_mapping(data)
    path = data.source / "precomp" / "test_ids.txt"
    ids = path.read_text().split()
    path.write_text("\n".join(reversed(ids)))
    assert "test_caps.txt:1: not the captions of image 'im0'" in data.refusal("vse_infinity")
    path.write_text("\n".join(ids[2:] + ids[:2]))
    assert "the id of another image" in data.refusal("vse_infinity")
    path.write_text("\n".join(["77"] * 10))
    assert "has the id '77'" in data.refusal("vse_infinity")
    path.write_text("\n".join(ids[:4]))
    assert "4 ids do not fit 10 captions" in data.refusal("vse_infinity")
    (data.source / "id_mapping.json").write_text("[1]")
    assert "JSON object" in data.refusal("vse_infinity")


@pytest.mark.parametrize("mapped", [True, False])
def test_one_file_an_image(data, mapped):
    if mapped:
        write_mapping(data)
    folder = data.source / "features"
    folder.mkdir()
    for k in range(5):
        np.save(folder / f"{data.numbers[k]}.npy", data.regions[k])
    np.save(folder / "55.npy", data.regions[0])
    data.run("npy_folder", folder)
    data.check()
    data.store.unlink()
    np.save(folder / f"{data.numbers[2]}.npy", data.regions)
    assert "not (regions, width)" in data.refusal("npy_folder", folder)
    np.save(folder / "im2.npy", data.regions[2])
    assert "im2.npy: image 'im2' is already in" in data.refusal("npy_folder", folder)
    (folder / "im2.npy").unlink()
    (folder / f"{data.numbers[2]}.npy").unlink()
    assert "no features of image 'im2'" in data.refusal("npy_folder", folder)


# Names, configuration and the command


def test_an_image_goes_by_id_file_and_number(data):
    images = read_image_table(data.captions)
    number = data.numbers[3]
    names = ["im3", f"COCO_val2014_{number:012}", f"COCO_val2014_{number:012}.jpg"]
    assert [images.row_named(name) for name in [*names, str(number), f"{number:012}"]] == [3] * 5
    assert images.row_named(f"flickr_{number}") is None, "only the number is the same"
    assert images.row_named("55") is None and images.row_named("") is None


def test_a_number_of_two_images_is_refused_and_hashes_in_names_are_no_numbers(data):
    rows = [{**row, "file": row["file"].replace("1007", "1000")} for row in data.rows()]
    pq.write_table(pa.Table.from_pylist(rows, schema=CAPTIONS), data.captions)
    assert "several images have the name '1000'" in data.refusal("butd_tsv", write_tsv(data))
    rows = [{**row, "file": f"{row['image_id']}_58{row['image_id']}.jpg"} for row in data.rows()]
    pq.write_table(pa.Table.from_pylist(rows, schema=CAPTIONS), data.captions)
    assert read_image_table(data.captions).row_named("58") is None


def test_halves_are_rounded_as_numpy_rounds():
    bits = np.random.default_rng(0).integers(0, 2**32, 20_000, dtype=np.uint32)
    values = bits.view(np.float32)[np.isfinite(bits.view(np.float32))]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(halves(values), values.astype(np.float16))


def test_the_command_imports_what_params_name(data, tmp_path, monkeypatch, capsys):
    write_precomp(data, data.source)
    published = {"format": "scan", "path": str(data.source)}
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    params["extraction"]["butd"] = {"published": {"coco": published}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    settings = read_params(tmp_path / "params.yaml").extraction_of("butd")
    assert settings.published == {"coco": Published(**published)}
    captions = tmp_path / "data" / "captions" / "coco.parquet"
    captions.parent.mkdir(parents=True)
    data.captions.rename(captions)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["manymatch", "features", "coco", "butd"])
    with pytest.raises(SystemExit) as done:
        commands.main()
    assert done.value.code == 0
    data.store = tmp_path / "data" / "features" / "coco" / "butd.h5"
    data.check()
    (data.source / "test_ims.npy").write_text("no array")
    with pytest.raises(SystemExit) as failed:
        commands.main()
    assert failed.value.code == 1 and "not a .npy file" in capsys.readouterr().err.splitlines()[-1]
