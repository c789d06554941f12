"""The store: what goes in comes out, and nothing damaged gets through."""

import os
import signal

import h5py
import numpy as np
import pytest
from full_disk import error_on_full_disk

from manymatch.features import layout
from manymatch.features.layout import Layout
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


def padded(arrays):
    return np.stack([np.pad(part, ((0, REGIONS - len(part)), (0, 0))) for part in arrays])


def writer(path, ids=IDS, fingerprint=None, **settings):
    settings = {"has_boxes": True, "attributes": {"backbone": "test"}, **settings}
    return FeatureWriter(path, Layout(ids, REGIONS, WIDTH, **settings), fingerprint)


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
    np.testing.assert_array_equal(read, padded(features)[rows])
    np.testing.assert_array_equal(read_boxes, padded(boxes)[rows])


@pytest.mark.parametrize("settings", [{}, {"chunks": (1, REGIONS, WIDTH), "compression": "gzip"}])
def test_any_hdf5_program_reads_and_writes_a_store(store, tmp_path, settings):
    """The rows of the other program have no checksum, or have another size in the file."""
    with h5py.File(store) as file:
        assert file["features"].shape == (len(IDS), REGIONS, WIDTH)
        assert file["features"].chunks == (1, REGIONS, WIDTH) and file["features"].fletcher32
        np.testing.assert_array_equal(file["features"][0, :3], arrays()[0][0])
        assert file["n_regions"][:].tolist() == COUNTS
        assert [value.decode() for value in file["image_id"]] == IDS
        written = {name: file[name][:] for name in file}
        attributes = dict(file.attrs)
    hashes = []
    for change in (0, 0, 1):
        written["features"][2, 0, 0] += change
        with h5py.File(tmp_path / "other.h5", "w") as file:
            for name, values in written.items():
                file.create_dataset(name, data=values, **(settings if name == "features" else {}))
            for name, value in attributes.items():
                file.attrs.create(name, value, dtype=h5py.string_dtype("utf-8", len(value)))
        with FeatureStore(tmp_path / "other.h5") as other, FeatureStore(store) as own:
            np.testing.assert_array_equal(other.read([1, 3])[0], own.read([1, 3])[0])
            hashes.append(other.sha256)
    assert hashes[0] == hashes[1] != hashes[2]


def test_equal_content_gives_equal_bytes_and_one_hash(store):
    hashes, contents = [], [store.read_bytes()]
    for change in (0, 0, 1):
        features, boxes = arrays()
        features[1][0, 0] += change
        with writer(store) as out:
            for row in (3, 0, 2, 1):
                out.write(row, features[row], boxes[row])
        with FeatureStore(store) as result:
            hashes.append(result.sha256)
        contents.append(store.read_bytes())
    assert hashes[0] == hashes[1] != hashes[2] and len({*contents[:3]}) == 1


def changed(change):
    """Changes a store by h5py."""

    def damage(path):
        with h5py.File(path, "r+") as file:
            change(file)

    return damage


def replaced(values):
    return changed(lambda file: (file.pop("features"), file.__setitem__("features", values)))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), "no such feature store"),
        (lambda path: path.write_text("not HDF5"), "damaged or not an HDF5 file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-700]), "cut off|damaged|truncated"),
        (lambda path: flip(path, offset(path, 1) + 7), "image 'bé': wrong checksum"),
        (
            changed(lambda file: file.attrs.modify("version", b"1")),
            "store of version 2.*'features'",
        ),
        (changed(lambda file: file.pop("image_id")), "not a feature store"),
        (replaced(np.ones((len(IDS), REGIONS, WIDTH))), "is float64"),
        (replaced(h5py.ExternalLink("secret.h5", "/x")), "is a link"),
        (changed(lambda file: file["features"].__setitem__((1, 2, 3), np.inf)), "'bé': .*NaN"),
    ],
)
def test_what_is_no_store_or_damaged_is_one_line(store, damage, words):
    damage(store)
    with pytest.raises(DataError, match=words) as fault:
        read_all(store)
    assert "store.h5" in str(fault.value) and "\n" not in str(fault.value)


def test_the_checksum_is_the_one_of_hdf5(tmp_path):
    for size in (1, 8, 100_001):
        data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
        with h5py.File(tmp_path / "file.h5", "w") as file:
            dataset = file.create_dataset("x", data=data, chunks=(size,), fletcher32=True)
            file.flush()
            _, chunk = dataset.id.read_direct_chunk((0,))
        assert chunk[-4:] == layout.checksum(data.tobytes())


def test_only_what_float16_holds_is_usable():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    expected = np.isfinite(halves)
    assert [layout.all_usable(halves[at : at + 1]) for at in range(2**16)] == expected.tolist()
    assert layout.all_usable(halves[expected])
    singles = np.array([0, -65504, 65504, np.nan, np.inf, -1e20, 65505], np.float32)
    usable = [layout.all_usable(singles[at : at + 1]) for at in range(7)]
    assert usable == [True] * 3 + [False] * 4


ROW, BOXES = np.ones((2, WIDTH)), np.ones((2, 4))


@pytest.mark.parametrize(
    ("ids", "features", "boxes", "words"),
    [
        (["a", "b", "a"], ROW, BOXES, "image id 'a' occurs 2 times"),
        ([], ROW, BOXES, "no images"),
        (["a", ""], ROW, BOXES, "empty"),
        (IDS, np.ones((2, WIDTH + 1)), BOXES, "image 'bé': .*the store has width 16"),
        (IDS, np.ones((REGIONS + 1, WIDTH)), np.ones((REGIONS + 1, 4)), "room for 1..5"),
        (IDS, ROW, None, "boxes are missing"),
        (IDS, ROW, np.ones((3, 4)), "the store expects"),
        *((IDS, ROW * value, BOXES, "'bé': features hold NaN") for value in (np.nan, np.inf, 1e6)),
        (IDS, ROW, BOXES, r"image 'a': no features \(3 images"),
    ],
)
def test_what_cannot_be_written_is_one_line_and_an_earlier_store_stays(
    store, ids, features, boxes, words
):
    before = store.read_bytes()
    with pytest.raises(DataError, match=words) as fault, writer(store, ids) as out:
        out.write(1, features, boxes)
    assert "\n" not in str(fault.value) and store.read_bytes() == before
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


def test_a_full_disk_is_one_line_and_leaves_the_old_store(store):
    def write_large():
        with FeatureWriter(store, Layout([str(k) for k in range(100)], 4, 64)) as out:
            for row in range(100):
                out.write(row, np.ones((4, 64)))

    before = store.read_bytes()
    line = error_on_full_disk(write_large, room=20_000)
    assert line.startswith("StorageError: ") and "no space left" in line and "\n" not in line
    assert store.read_bytes() == before
    assert [path.name for path in store.parent.iterdir()] == ["store.h5"]
