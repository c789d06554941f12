"""Pictures as cameras, scanners and painting programs write them, and near-duplicates."""

import re
import struct
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from manymatch.datasets.own.files import duplicate_groups, refuse_unreadable, signature
from manymatch.datasets.own.record import Unusable
from manymatch.datasets.own.splits import draw, near_duplicates
from manymatch.shards.write import PictureFiles
from manymatch.util.errors import DataError
from manymatch.util.images import read_image
from manymatch.util.regular_file import HEIC_READ

ORIENTATION = 0x0112


def blocks(seed=0, side=6):
    cells = np.random.default_rng(seed).integers(0, 255, (side, side, 3), np.uint8)
    return Image.fromarray(cells).resize((96, 64), Image.Resampling.NEAREST)


def turned(path):
    picture, exif = blocks(), Image.Exif()
    exif[ORIENTATION] = 6
    picture.transpose(Image.Transpose.ROTATE_90).save(path, "PNG", exif=exif)
    return picture


def broken_exif(path):
    blocks().save(path, "PNG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    return blocks()


def sixteen_bits(path):
    grey = np.asarray(blocks().convert("L"))
    Image.fromarray(grey.astype(np.uint16) * 257).save(path, "PNG")
    return Image.fromarray(grey).convert("RGB")


def integers_of_32_bits(path):
    expected = sixteen_bits(path)
    with Image.open(path) as picture:
        Image.fromarray(np.asarray(picture).astype(np.int32)).save(path, "TIFF")
    return expected


def floating_point(path):
    grey = np.asarray(blocks().convert("L"))
    Image.fromarray(grey.astype(np.float32)).save(path, "TIFF")
    return Image.fromarray(grey).convert("RGB")


def animated(path):
    frames = [blocks(n).quantize(200) for n in (0, 1)]
    frames[0].save(path, "GIF", save_all=True, append_images=frames[1:])
    return frames[0].convert("RGB")


def four_colours(path):
    blocks().convert("CMYK").save(path, "TIFF")
    return blocks().convert("CMYK").convert("RGB")


@pytest.mark.filterwarnings("error", "ignore:Corrupt EXIF data")
@pytest.mark.parametrize(
    "write",
    [
        *(turned, broken_exif, sixteen_bits, integers_of_32_bits, floating_point),
        *(animated, four_colours),
    ],
    ids=lambda f: f.__name__,
)
def test_a_picture_is_read_as_people_see_it(write, tmp_path):
    expected = np.asarray(write(tmp_path / "picture.png"))
    np.testing.assert_array_equal(read_image(tmp_path / "picture.png"), expected)
    thumbnail = PictureFiles(tmp_path).thumbnail("picture.png", 96)
    (tmp_path / "small.jpg").write_bytes(thumbnail)
    difference = np.abs(read_image(tmp_path / "small.jpg").astype(int) - expected)
    assert difference.mean() < 10


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.linspace(0, 1, 16, dtype=np.float32), "from 0 to 1;"),
        (np.array([np.nan, *range(15)], np.float32), "from nan to nan;"),
        (np.arange(-1, 15, dtype=np.float32), "from -1 to 14;"),
        (np.arange(16, dtype=np.int32) * 17, "from 0 to 255;"),
        (np.arange(16, dtype=np.int32) * 2**20, "from 0 to 1.57286e"),
    ],
)
def test_values_of_32_bits_that_would_be_black_are_refused(values, words, tmp_path):
    Image.fromarray(values.reshape(4, 4)).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match=f"a.tif: cannot be decoded .*{re.escape(words)}"):
        read_image(tmp_path / "a.tif")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
        (b"BM" + struct.pack("<13I", 54, 0, 54, 40, 8000, 8001, 1 | 24 << 16, *[0] * 6), "8001"),
    ],
)
def test_thumbnails_of_hostile_files_are_refused(content, words, tmp_path):
    (tmp_path / "picture.jpg").write_bytes(content)
    with pytest.raises(DataError, match=words):
        PictureFiles(tmp_path).thumbnail("picture.jpg", 96)


def test_pictures_of_telephones_are_read_with_the_extra_and_else_named(tmp_path):
    path = tmp_path / "phone.HEIC"
    if HEIC_READ:
        blocks().save(path, "HEIF", quality=100)
        expected = np.asarray(blocks(), np.int16)
        assert np.abs(read_image(path) - expected).mean() < 8
        refuse_unreadable(path.name)
    else:
        with pytest.raises(Unusable, match="install the extra 'heic'"):
            refuse_unreadable(path.name)


def groups_of(folder, pictures):
    paths = [folder / f"{n}.png" for n in range(len(pictures))]
    for path, picture in zip(paths, pictures, strict=True):
        picture.save(path)
    return duplicate_groups([signature(path) for path in paths])


def test_copies_are_found_and_others_are_not(tmp_path):
    photo = blocks(1).resize((300, 200), Image.Resampling.BICUBIC)
    photo.save(tmp_path / "again.jpg", quality=60)
    copies = [photo, photo.resize((150, 100)), Image.open(tmp_path / "again.jpg")]
    plain = [Image.new("RGB", (40, 40), colour) for colour in ("white", "silver", "red", "white")]
    others = [blocks(seed) for seed in range(2, 60)]
    groups = groups_of(tmp_path, [*copies, *plain, *others])
    assert len(set(groups[:3])) == 1 and groups[3] == groups[6]
    assert len(set(groups)) == len(groups) - 3


def test_all_pairs_are_found_in_small_blocks(monkeypatch):
    """The same groups as by comparing every pair."""
    rng = np.random.default_rng(0)
    hashes = rng.integers(0, 2**63, 40, np.uint64)
    near = [
        int(one) ^ (1 << int(bit)) for one, bit in zip(hashes, rng.integers(0, 64, 40), strict=True)
    ]
    signatures = [(int(one), bytes(192)) for one in (*hashes, *near)]
    whole = duplicate_groups(signatures)
    assert list(whole[:40]) == list(whole[40:]) and len(set(whole)) == 40
    monkeypatch.setattr("manymatch.datasets.own.files._PAIRS", 1)
    assert list(duplicate_groups(signatures)) == list(whole)


def test_many_copies_take_little_memory(monkeypatch):
    monkeypatch.setattr("manymatch.datasets.own.files._PAIRS", 1)
    copies = [(0, bytes([number % 2, number // 2]) + bytes(190)) for number in range(300)]
    tracemalloc.start()
    groups = duplicate_groups(copies)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not groups.any() and peak < 2e6  # 8 times all pairs take 6 MB


def test_drawn_splits_keep_copies_together():
    names = [f"{n}.jpg" for n in range(100)]
    groups = [n // 2 for n in range(100)]
    drawn = draw(names, [None] * 100, groups, seed=3)
    assert [drawn.count(split) for split in ("train", "validation", "test")] == [80, 10, 10]
    found = near_duplicates(names, drawn, groups)
    assert (found["copies"], found["crossing"], len(found["groups"])) == (50, 0, 50)
    crossing = near_duplicates(
        "abcde", ["train", "train", "test", "train", "test"], [0, 0, 1, 2, 2]
    )
    assert (crossing["copies"], crossing["crossing"]) == (2, 1)
    assert crossing["groups"][0] == [("e", "test"), ("d", "train")]
    assert crossing["of_split"] == {"train": 2, "validation": 0, "test": 1}
    pairs = [*[("train", "validation")] * 150, ("test", "test"), ("test", "train")]
    splits = [split for pair in pairs for split in pair]
    many = near_duplicates([*map(str, range(304))], splits, [n // 2 for n in range(304)])
    assert [len(many["groups"]), many["of_split"]["test"]] == [100, 2]
    assert many["groups"][0] == [("302", "test"), ("303", "train")]
    assert many["groups"][1] == [("300", "test"), ("301", "test")]
    assert (
        drawn == draw(names, [None] * 100, groups, seed=3) != draw(names, [None] * 100, groups, 4)
    )
