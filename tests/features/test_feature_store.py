"""The store: what goes in comes out, and nothing damaged gets through."""

from __future__ import annotations

import multiprocessing

import h5py
import numpy as np
import pytest
from full_disk import error_on_full_disk

from manymatch.features import layout, rows
from manymatch.features.store import FeatureStore, FeatureWriter
from manymatch.util.errors import DataError

IDS = ["a", "bé", "c d", "e"]
COUNTS = [3, 5, 1, 2]
REGIONS, WIDTH = 5, 16


def arrays():
    rng = np.random.default_rng(0)
    features = [rng.standard_normal((count, WIDTH)).astype(np.float16) for count in COUNTS]
    return features, [rng.random((count, 4), dtype=np.float32) for count in COUNTS]


def writer(path, ids=IDS, **settings):
    settings = {"boxes": True, "attributes": {"backbone": "test"}, **settings}
    return FeatureWriter(path, ids, max_regions=REGIONS, width=WIDTH, **settings)


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store.h5"
    with writer(path) as out:
        for row, (features, boxes) in enumerate(zip(*arrays(), strict=True)):
            out.write(row, features, boxes)
    return path


def read_all(path):
    with FeatureStore(path) as result:
        list(result.blocks())


def one_line(fault):
    message = str(fault.value)
    assert message and "\n" not in message
    return message


def test_rows_come_back_padded_in_the_asked_order(store):
    features, boxes = arrays()
    with FeatureStore(store) as result:
        assert (result.image_ids, result.width, result.max_regions) == (IDS, WIDTH, REGIONS)
        assert result.attributes == {"backbone": "test"}
        rows = [2, 0, 1, 2, 3]
        read, n_regions, read_boxes = result.read(rows)
        assert result.read([])[0].shape == (0, REGIONS, WIDTH)
        for row in (-1, len(IDS)):
            with pytest.raises(IndexError):
                result.read([row])
    assert n_regions.tolist() == [COUNTS[row] for row in rows]
    for position, row in enumerate(rows):
        count = COUNTS[row]
        np.testing.assert_array_equal(read[position, :count], features[row])
        np.testing.assert_array_equal(read_boxes[position, :count], boxes[row])
        assert not read[position, count:].any()
        assert not read_boxes[position, count:].any()


@pytest.mark.parametrize("size", [1, 3, 100])
def test_blocks_cover_all_rows_in_order(store, size):
    features, _ = arrays()
    with FeatureStore(store) as result:
        blocks = list(result.blocks(size))
    assert [row for rows, _ in blocks for row in rows] == list(range(len(IDS)))
    whole = np.concatenate([block[0] for _, block in blocks])
    for row, expected in enumerate(features):
        np.testing.assert_array_equal(whole[row, : len(expected)], expected)


def test_a_plain_hdf5_reader_sees_the_same(store):
    with h5py.File(store) as file:
        assert file["features"].shape == (len(IDS), REGIONS, WIDTH)
        assert file["features"].dtype == np.float16
        np.testing.assert_array_equal(file["features"][0, :3], arrays()[0][0])
        assert file["n_regions"][:].tolist() == COUNTS
        assert [value.decode() for value in file["image_id"]] == IDS


def test_equal_content_gives_equal_bytes(store):
    before = store.read_bytes()
    with writer(store) as out:
        for row, (features, boxes) in reversed(list(enumerate(zip(*arrays(), strict=True)))):
            out.write(row, features, boxes)
    assert store.read_bytes() == before


def test_every_flipped_byte_is_found_or_harmless(store):
    """HDF5's own structures too: the content that is read must be right, or the store refused."""
    data = bytearray(store.read_bytes())
    offsets = range(0, len(data), 11)
    refused = 0
    for at in offsets:
        data[at] ^= 0x10
        store.write_bytes(data)
        data[at] ^= 0x10
        try:
            with FeatureStore(store) as result:
                list(result.blocks())
                assert result.image_ids == IDS
                assert result.n_regions.tolist() == COUNTS
        except DataError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 0.8 * len(offsets)  # the others are gaps that nobody reads


def test_a_flipped_bit_names_store_and_image(store):
    offset = layout.inspect(store).offsets["features"]
    with store.open("r+b") as file:
        file.seek(offset + 1 * REGIONS * WIDTH * 2 + 7)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    with FeatureStore(store) as result:
        for _ in range(2):
            result.read([0, 2, 3])
        with pytest.raises(DataError, match=r"store\.h5: image 'bé': wrong checksum") as fault:
            result.read([0, 1])
    one_line(fault)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.9, 0.999])
def test_a_store_cut_off_is_refused(store, share):
    data = store.read_bytes()
    store.write_bytes(data[: int(share * len(data))])
    with pytest.raises(DataError, match=r"store\.h5") as fault:
        read_all(store)
    one_line(fault)


def test_missing_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="no such feature store"):
        FeatureStore(tmp_path / "none.h5")
    text = tmp_path / "text.h5"
    text.write_text("not HDF5")
    with pytest.raises(DataError, match="damaged or not an HDF5 file") as fault:
        FeatureStore(text)
    one_line(fault)
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["features"] = np.zeros((2, 3, 4))
    with pytest.raises(DataError, match="not a feature store") as fault:
        FeatureStore(other)
    one_line(fault)


def test_nan_is_refused_on_writing(tmp_path):
    for value in (np.nan, np.inf, -np.inf, 1e6):
        features = np.ones((2, WIDTH), np.float32)
        features[1, 3] = value
        with (
            pytest.raises(DataError, match=r"store\.h5: image 'a': features hold NaN"),
            writer(tmp_path / "store.h5", boxes=False) as out,
        ):
            out.write(0, features)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_is_refused_on_reading_though_the_checksum_is_right(store, monkeypatch, value):
    features, boxes = arrays()
    features[1][2, 3] = value
    with monkeypatch.context() as patch:
        patch.setattr(rows, "all_finite", lambda values: True)
        with writer(store) as out:
            for row in range(len(IDS)):
                out.write(row, features[row], boxes[row])
    with (
        FeatureStore(store) as result,
        pytest.raises(DataError, match=r"store\.h5: image 'bé': features hold NaN") as fault,
    ):
        list(result.blocks())
    one_line(fault)


def test_all_finite_agrees_with_numpy_on_every_half():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    expected = np.isfinite(halves)
    assert [layout.all_finite(halves[at : at + 1]) for at in range(2**16)] == expected.tolist()
    assert layout.all_finite(halves[expected])


def test_a_store_of_bytes(tmp_path):
    """Pixels: a byte a value, checked by their checksum alone, since any byte is a number."""
    path = tmp_path / "pixels.h5"
    images = np.random.default_rng(0).integers(0, 256, (len(IDS), REGIONS, 3), dtype=np.uint8)
    with FeatureWriter(path, IDS, max_regions=REGIONS, width=3, dtype="uint8") as out:
        for row, pixels in enumerate(images):
            out.write(row, pixels)
        with pytest.raises(DataError, match="image 'a': features are float64, but the store"):
            out.write(0, images[0] / 255)
    with FeatureStore(path) as result:
        assert result.dtype == "uint8" and not result.has_boxes
        features, n_regions, _ = result.read(range(len(IDS)))
    assert features.dtype == np.uint8 and n_regions.tolist() == [REGIONS] * len(IDS)
    np.testing.assert_array_equal(features, images)
    with h5py.File(path) as file:
        assert file["features"].dtype == np.uint8
    data = bytearray(path.read_bytes())
    data[layout.inspect(path).offsets["features"] + REGIONS * 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="image 'bé': wrong checksum"):
        read_all(path)


def test_links_and_features_of_another_type_are_no_store(store, tmp_path):
    for features, words in (
        (np.ones((len(IDS), REGIONS, WIDTH)), "dataset 'features' is float64"),
        (h5py.ExternalLink(str(tmp_path / "secret.h5"), "/x"), "'features' is a link"),
    ):
        with h5py.File(store, "r+") as file:
            del file["features"]
            file["features"] = features
        with pytest.raises(DataError, match=words):
            FeatureStore(store)


@pytest.mark.parametrize(
    ("features", "boxes", "fault"),
    [
        (np.ones((2, WIDTH + 1)), np.ones((2, 4)), "the store has width 16"),
        (np.ones(WIDTH), np.ones((1, 4)), "the store has width 16"),
        (np.ones((REGIONS + 1, WIDTH)), np.ones((REGIONS + 1, 4)), "room for 1..5"),
        (np.ones((0, WIDTH)), np.ones((0, 4)), "room for 1..5"),
        (np.ones((2, WIDTH)), None, "boxes are missing"),
        (np.ones((2, WIDTH)), np.ones((3, 4)), "the store expects"),
    ],
)
def test_wrong_shapes_are_refused(tmp_path, features, boxes, fault):
    with pytest.raises(DataError, match=fault) as result, writer(tmp_path / "store.h5") as out:
        out.write(1, features, boxes)
    assert "image 'bé'" in one_line(result)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("ids", "fault"),
    [(["a", "b", "a"], "image id 'a' occurs 2 times"), ([], "no images"), (["a", ""], "empty")],
)
def test_bad_image_ids_are_refused(tmp_path, ids, fault):
    with pytest.raises(DataError, match=fault):
        writer(tmp_path / "store.h5", ids)
    assert not list(tmp_path.iterdir())


def test_an_unfinished_store_never_replaces_a_whole_one(store):
    before = store.read_bytes()
    with (
        pytest.raises(DataError, match=r"image 'bé': no features \(3 images") as fault,
        writer(store) as out,
    ):
        out.write(0, np.ones((1, WIDTH)), np.ones((1, 4)))
    one_line(fault)
    assert store.read_bytes() == before
    assert [path.name for path in store.parent.iterdir()] == ["store.h5"]


def test_resume_keeps_rows_and_gives_the_same_bytes(store):
    features, boxes = arrays()
    before = store.read_bytes()
    with pytest.raises(KeyboardInterrupt), writer(store, fingerprint="f") as out:
        for row in (0, 2):
            out.write(row, features[row], boxes[row])
        raise KeyboardInterrupt
    with writer(store, fingerprint="f") as out:
        assert out.done.tolist() == [True, False, True, False]
        for row in (1, 3):
            out.write(row, features[row], boxes[row])
    assert store.read_bytes() == before
    assert [path.name for path in store.parent.iterdir()] == ["store.h5"]


@pytest.mark.parametrize("damage", ["other fingerprint", "no mark", "damaged row"])
def test_stale_or_damaged_partial_state_is_not_trusted(store, damage):
    features, boxes = arrays()
    with pytest.raises(KeyboardInterrupt), writer(store, fingerprint="f") as out:
        out.write(0, features[0], boxes[0])
        out.write(1, features[1], boxes[1])
        raise KeyboardInterrupt
    if damage == "no mark":
        store.with_name("store.h5.fingerprint.partial").unlink()
    if damage == "damaged row":
        partial = store.with_name("store.h5.partial")
        with partial.open("r+b") as file:
            file.seek(layout.inspect(partial).offsets["features"])
            file.write(b"\x55\x15")
    other = "g" if damage == "other fingerprint" else "f"
    resumed = writer(store, fingerprint=other)
    assert resumed.done.tolist() == [False, damage == "damaged row", False, False]


def _read_in_process(path, seed):
    rows = np.random.default_rng(seed).integers(0, len(IDS), 200)
    with FeatureStore(path) as result:
        return float(sum(result.read([row])[0].astype(np.float64).sum() for row in rows))


def test_two_processes_read_at_once(store):
    jobs = [(store, 1), (store, 2)]
    with FeatureStore(store), multiprocessing.get_context("fork").Pool(2) as pool:
        together = pool.starmap(_read_in_process, jobs)
    assert together == [_read_in_process(*job) for job in jobs]


_opened: list[FeatureStore] = []


def _sum_of_opened(rows):
    return float(_opened[0].read(rows)[0].sum())


def test_forked_processes_share_an_open_store(store):
    with FeatureStore(store) as result:
        _opened[:] = [result]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            sums = pool.map(_sum_of_opened, [[0, 1], [2, 3]] * 20)
        assert sums == [_sum_of_opened([0, 1]), _sum_of_opened([2, 3])] * 20


def write_large(store):
    with FeatureWriter(store, [str(k) for k in range(100)], max_regions=4, width=64) as out:
        for row in range(100):
            out.write(row, np.ones((4, 64)))


@pytest.mark.parametrize("room", [0, 100, 3000, 20_000])
def test_a_full_disk_is_one_line_and_leaves_the_old_store(store, room):
    before = store.read_bytes()
    line = error_on_full_disk(lambda: write_large(store), room)
    assert line.startswith("StorageError: ") and "no space left" in line and "\n" not in line
    assert store.read_bytes() == before
    assert [path.name for path in store.parent.iterdir()] == ["store.h5"]
