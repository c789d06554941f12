"""The store: what goes in comes out, and nothing damaged gets through."""

import multiprocessing
import os
import signal

import h5py
import numpy as np
import pytest
from full_disk import error_on_full_disk

from manymatch.features import layout
from manymatch.features.store import FeatureStore
from manymatch.features.writer import FeatureWriter
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


def offset(path, row, name="features"):
    with h5py.File(path) as file:
        return int(layout.chunk_places(file, name)[row])


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


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
        for size in (1, 3, 100):
            blocks = list(result.blocks(size))
            assert [row for numbers, _ in blocks for row in numbers] == list(range(len(IDS)))
            whole = np.concatenate([block[0] for _, block in blocks])
            np.testing.assert_array_equal(whole[rows], read)
    assert n_regions.tolist() == [COUNTS[row] for row in rows]
    for position, row in enumerate(rows):
        count = COUNTS[row]
        np.testing.assert_array_equal(read[position, :count], features[row])
        np.testing.assert_array_equal(read_boxes[position, :count], boxes[row])
        assert not read[position, count:].any()
        assert not read_boxes[position, count:].any()


def test_any_hdf5_program_reads_and_writes_a_store(store, tmp_path):
    with h5py.File(store) as file:
        assert file["features"].shape == (len(IDS), REGIONS, WIDTH)
        assert file["features"].chunks == (1, REGIONS, WIDTH) and file["features"].fletcher32
        np.testing.assert_array_equal(file["features"][0, :3], arrays()[0][0])
        assert file["n_regions"][:].tolist() == COUNTS
        assert [value.decode() for value in file["image_id"]] == IDS
        written = {name: file[name][:] for name in file}
        attributes = dict(file.attrs)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        for name, values in written.items():
            file[name] = values
        for name, value in attributes.items():
            file.attrs.create(name, value, dtype=h5py.string_dtype("utf-8", len(value)))
    with FeatureStore(tmp_path / "other.h5") as other, FeatureStore(store) as own:
        np.testing.assert_array_equal(other.read([1, 3])[0], own.read([1, 3])[0])


@pytest.mark.parametrize(
    "settings", [{}, {"chunks": (1, REGIONS, WIDTH), "fletcher32": True, "compression": "gzip"}]
)
def test_a_store_of_another_program_has_a_hash_of_its_content(store, settings):
    """The chunks of such a store have no checksum, or have another size than the rows."""
    hashes = []
    for change in (0, 0, 1):
        with h5py.File(store, "r+") as file:
            features = file["features"][:]
            features[2, 0, 0] += change
            del file["features"]
            file.create_dataset("features", data=features, **settings)
        with FeatureStore(store) as result:
            hashes.append(result.sha256)
    assert hashes[0] == hashes[1] != hashes[2]


def test_equal_content_gives_equal_bytes_and_one_hash(store):
    before = store.read_bytes()
    with FeatureStore(store) as result:
        known = result.sha256
    features, boxes = arrays()
    with writer(store) as out:
        for row in (3, 0, 2, 1):
            out.write(row, features[row], boxes[row])
    assert store.read_bytes() == before
    features[1][0, 0] += 1
    with writer(store) as out:
        for row in range(len(IDS)):
            out.write(row, features[row], boxes[row])
    with FeatureStore(store) as result:
        assert result.sha256 != known


def test_every_flipped_byte_is_found_or_harmless(store):
    """HDF5's own structures too: the content that is read must be right, or the store refused."""
    data = store.read_bytes()
    features, boxes = arrays()
    offsets = range(0, len(data), 11)
    refused = 0
    for at in offsets:
        store.write_bytes(data)
        flip(store, at)
        try:
            with FeatureStore(store) as result:
                read, counts, read_boxes = result.read(range(len(IDS)))
                assert result.image_ids == IDS and counts.tolist() == COUNTS
            for row, count in enumerate(COUNTS):
                np.testing.assert_array_equal(read[row, :count], features[row])
                np.testing.assert_array_equal(read_boxes[row, :count], boxes[row])
        except DataError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 0.5 * len(offsets)  # the others are gaps that nobody reads


def test_a_flipped_bit_names_store_and_image(store):
    flip(store, offset(store, 1) + 7)
    with FeatureStore(store) as result:
        for _ in range(2):
            result.read([0, 2, 3])
        with pytest.raises(DataError, match=r"store\.h5: image 'bé': wrong checksum") as fault:
            result.read([0, 1])
    one_line(fault)


def older(path):
    with h5py.File(path, "r+") as file:
        file.attrs.modify("version", b"1")


def no_store(path):
    path.unlink()
    with h5py.File(path, "w") as file:
        file["features"] = np.zeros((2, 3, 4))


def another_type(path):
    with h5py.File(path, "r+") as file:
        del file["features"]
        file["features"] = np.ones((len(IDS), REGIONS, WIDTH))


def a_link(path):
    with h5py.File(path, "r+") as file:
        del file["features"]
        file["features"] = h5py.ExternalLink("secret.h5", "/x")


def cut(path):
    path.write_bytes(path.read_bytes()[:-700])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), "no such feature store"),
        (lambda path: path.write_text("not HDF5"), "damaged or not an HDF5 file"),
        (cut, "cut off|damaged|truncated"),
        (older, "not a feature store of version 2.*'features'"),
        (no_store, "not a feature store"),
        (another_type, "is float64"),
        (a_link, "is a link"),
    ],
)
def test_what_is_no_store_is_refused(store, damage, words):
    damage(store)
    with pytest.raises(DataError, match=words) as fault:
        read_all(store)
    assert "store.h5" in one_line(fault)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e6])
def test_nan_is_refused_on_writing_and_on_reading(tmp_path, store, value):
    features = np.ones((2, WIDTH), np.float32)
    features[1, 3] = value
    with (
        pytest.raises(DataError, match=r"new\.h5: image 'a': features hold NaN"),
        writer(tmp_path / "new.h5", boxes=False) as out,
    ):
        out.write(0, features)
    assert [path.name for path in tmp_path.iterdir()] == ["store.h5"]

    with h5py.File(store, "r+") as file, np.errstate(over="ignore"):
        file["features"][1, 2, 3] = value
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


@pytest.mark.parametrize("size", [1, 2, 7, 8, 1000, 100_001])
def test_the_checksum_is_the_one_of_hdf5(tmp_path, size):
    rng = np.random.default_rng(size)
    for data in (rng.integers(0, 256, size, np.uint8), np.full(size, 255, np.uint8)):
        with h5py.File(tmp_path / "file.h5", "w") as file:
            dataset = file.create_dataset("x", data=data, chunks=(size,), fletcher32=True)
            file.flush()
            _, chunk = dataset.id.read_direct_chunk((0,))
        assert chunk[-4:] == layout.checksum(data.tobytes())


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
    flip(path, offset(path, 1))
    with pytest.raises(DataError, match="image 'bé': wrong checksum"):
        read_all(path)


@pytest.mark.parametrize(
    ("features", "boxes", "fault"),
    [
        (np.ones((2, WIDTH + 1)), np.ones((2, 4)), "the store has width 16"),
        (np.ones((REGIONS + 1, WIDTH)), np.ones((REGIONS + 1, 4)), "room for 1..5"),
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


@pytest.mark.parametrize("damage", ["", "other fingerprint", "no mark", "damaged row"])
def test_a_resumed_run_keeps_whole_rows_and_gives_the_same_bytes(store, damage):
    features, boxes = arrays()
    before = store.read_bytes()
    pid = os.fork()
    if not pid:  # a process that is killed between two rows
        out = writer(store, fingerprint="f")
        for row in (0, 2):
            out.write(row, features[row], boxes[row])
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    partial = store.with_name("store.h5.partial")
    if damage == "no mark":
        store.with_name("store.h5.fingerprint.partial").unlink()
    if damage == "damaged row":
        flip(partial, offset(partial, 2))
    with writer(store, fingerprint="g" if damage == "other fingerprint" else "f") as out:
        kept = {"": [0, 2], "damaged row": [0]}.get(damage, [])
        assert np.flatnonzero(out.done).tolist() == kept
        for row in out.rows_left():
            out.write(row, features[row], boxes[row])
    assert store.read_bytes() == before
    assert [path.name for path in store.parent.iterdir()] == ["store.h5"]


_opened = []


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


@pytest.mark.parametrize("room", [0, 3000, 20_000])
def test_a_full_disk_is_one_line_and_leaves_the_old_store(store, room):
    before = store.read_bytes()
    line = error_on_full_disk(lambda: write_large(store), room)
    assert line.startswith("StorageError: ") and "no space left" in line and "\n" not in line
    assert store.read_bytes() == before
    assert [path.name for path in store.parent.iterdir()] == ["store.h5"]
