"""Data of other files are not read through an HDF5 file, by any reader of HDF5."""

import h5py
import numpy as np
import pytest

from manymatch.evaluation.external.arrays import open_array
from manymatch.features.importers.clip_vectors import open_vectors, vector
from manymatch.features.store import FeatureStore
from manymatch.util.errors import DataError

SECRET = bytes(range(256))


def external(file):
    with (file.parent / "secret").open("wb") as secret:
        secret.write(SECRET)
    with h5py.File(file, "w") as opened:
        part = [(str(file.parent / "secret"), 0, h5py.h5f.UNLIMITED)]
        opened.create_dataset("features", (4, 16), "f4", external=part)


def virtual(file):
    source = file.with_name("source.h5")
    with h5py.File(source, "w") as opened:
        opened["x"] = np.ones((4, 16), np.float32)
    layout = h5py.VirtualLayout((4, 16), "f4")
    layout[:] = h5py.VirtualSource(source, "x", (4, 16))
    with h5py.File(file, "w") as opened:
        opened.create_virtual_dataset("features", layout)


def empty(file):
    """A few bytes that claim terabytes."""
    with h5py.File(file, "w") as opened:
        opened.create_dataset("features", (4, 2**40), "f4", chunks=(1, 1024))


def large_chunk(file):
    with h5py.File(file, "w") as opened:
        opened.create_dataset("features", (4, 2**28), "f4", chunks=(4, 2**27), compression="gzip")


def read_scores(path):
    return open_array(str(path)).read(slice(0, 4))


def read_vectors(path):
    with open_vectors(path) as (stream,):
        return vector(stream["features"], "features")


@pytest.mark.parametrize("make", [external, virtual, empty, large_chunk])
def test_data_elsewhere_and_false_sizes_are_refused(tmp_path, make):
    make(tmp_path / "file.h5")
    for read in (read_scores, read_vectors, FeatureStore):
        if read is FeatureStore:
            _complete(tmp_path / "file.h5")
        with pytest.raises(DataError, match=r"in another file|claims"):
            read(tmp_path / "file.h5")


def _complete(path):
    """Add the attributes of a feature store."""
    with h5py.File(path, "r+") as file:
        for name, value in {"format": b"manymatch-features", "version": b"2"}.items():
            file.attrs.create(name, value, dtype=h5py.string_dtype("utf-8", len(value)))


def test_links_are_not_followed(tmp_path):
    external(tmp_path / "other.h5")
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["features"] = h5py.ExternalLink("other.h5", "features")
        file["soft"] = h5py.SoftLink("/features")
    for name in ("features", "soft"):
        with pytest.raises(DataError, match="no array"):
            open_array(f"{tmp_path / 'file.h5'}:{name}")
    with pytest.raises(DataError, match="a link"):
        read_vectors(tmp_path / "file.h5")


def test_groups_inside_each_other_end(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("a/b")
        group["array"] = [[1.0]]
        group["circle"] = file["a"]
        file["twin"] = group["array"]
    assert open_array(str(path)).read().tolist() == [[1.0]]
    with h5py.File(path, "r+") as file:
        for _ in range(200):
            group = (group or file).create_group("c")
    with pytest.raises(DataError, match="groups inside each other"):
        open_array(str(path))
