"""Damaged and hostile files of every format: a `ManyMatchError`, or a right result."""

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hostile_files import (
    FILES,
    IDS,
    VALUES,
    add_checksums,
    csvs,
    hdf5_scores,
    hdf5s,
    images,
    jsons,
    lines,
    npys,
    npzs,
    parquets,
    pickles,
    safetensor_files,
    stores,
    tars,
    torches,
    tsvs,
    zips,
)
from hypothesis import given
from mutations import mutated

from manymatch.datasets.fetching.archives import extract, is_archive, whole_archive
from manymatch.evaluation.external.arrays import open_array
from manymatch.evaluation.external.split_table import read_ids, read_split
from manymatch.evaluation.protocols.relevance import RELEVANCE
from manymatch.features.importers.butd_tsv import open_butd_tsv
from manymatch.features.importers.clip_vectors import open_vectors, vector
from manymatch.features.importers.importing import ImageTable
from manymatch.features.store import FeatureStore
from manymatch.networks.torch_file import load_tensors
from manymatch.util.errors import ManyMatchError
from manymatch.util.images import read_image
from manymatch.util.json_file import read_object
from manymatch.util.json_stream import elements, nested_numbers
from manymatch.util.numpy_file import feature_array, load_array
from manymatch.util.parquet_file import open_table, read_table
from manymatch.util.pickles import PickledArray, read_pickle
from manymatch.util.text_lines import numbered_lines


def read_archive(path):
    out = path.with_name("out")
    if is_archive(path):
        extract(path, out)
        if any(item.is_file() for item in out.rglob("*")):
            whole_archive(path)
        assert not any(item.is_symlink() for item in out.rglob("*"))
    else:
        extract(path, out)


def read_zip(path):
    read_archive(path)
    for name, content in FILES.items():  # zip has checksums
        file = path.parent / "out" / name
        assert not file.exists() or file.read_bytes() == content


def read_store(path):
    with FeatureStore(path) as opened:
        features, _, _ = opened.read(range(len(opened)))
        for name, row in zip(opened.image_ids, features, strict=True):
            assert (row[0] == VALUES[IDS.index(name)]).all()
        list(opened.blocks())


def read_vectors(path):
    with open_vectors(path) as streams:
        for stream in streams:
            for name in list(stream)[:8]:
                vector(stream[name], str(name))


def read_scores(path):
    array = open_array(str(path) if path.suffix == ".npy" else f"{path}:a")
    if array.shape and array.shape[0] == len(VALUES):
        array.read(slice(0, len(VALUES)))


def read_rows(path):
    np.array(feature_array(path, "images", "width"))


def read_parquet(path):
    read_table(path, RELEVANCE)
    open_table(path, RELEVANCE.names, "captions").read()


def read_plain(path):
    value = read_pickle(path)
    for item in value.values() if isinstance(value, dict) else [value]:
        if isinstance(item, PickledArray):
            np.asarray(item)


def read_regions(path):
    table = ImageTable(path)
    for name in IDS:
        table.add(name, f"{name}.jpg")
    published = open_butd_tsv(path, table, None)
    [row.read() for row in published.rows()]


def read_images(path):
    assert read_image(path).ndim == 3


FORMATS = {
    "tar": ("x.tar", tars, read_archive, add_checksums),
    "tar.gz": (
        "x.tgz",
        tars,
        read_archive,
        lambda content: gzip.compress(add_checksums(content), 1),
    ),
    "damaged gzip": ("x.tgz", lambda: map(gzip.compress, tars()), read_archive, bytes),
    "zip": ("x.zip", zips, read_zip, bytes),
    "feature store": ("x.h5", stores, read_store, bytes),
    "vectors.h5": ("x.h5", hdf5s, read_vectors, bytes),
    "scores.h5": ("x.h5", hdf5_scores, read_scores, bytes),
    "Parquet": ("x.parquet", parquets, read_parquet, bytes),
    "scores.npy": ("x.npy", npys, read_scores, bytes),
    "ids.npy": ("x.npy", npys, read_ids, bytes),
    "array": ("x.npy", npys, load_array, bytes),
    "rows.npy": ("x.npy", npys, read_rows, bytes),
    "scores.npz": ("x.npz", npzs, read_scores, bytes),
    "vectors.npz": ("x.npz", npzs, read_vectors, bytes),
    "scores.safetensors": ("x.safetensors", safetensor_files, read_scores, bytes),
    "pickle": ("x.pkl", pickles, read_plain, bytes),
    "vectors.pkl": ("x.pkl", pickles, read_vectors, bytes),
    "tensors": ("x.pt", torches, load_tensors, bytes),
    "vectors.pt": ("x.pt", torches, read_vectors, bytes),
    "scores.pt": ("x.pt", torches, read_scores, bytes),
    "JSON": ("x.json", jsons, read_object, bytes),
    "JSON stream": ("x.json", jsons, lambda path: list(elements(path, ["images"])), bytes),
    "JSON numbers": ("x.json", jsons, lambda path: list(nested_numbers(path, 1)), bytes),
    "images": ("x.jpg", images, read_images, bytes),
    "lines": ("x.gz", lines, lambda path: list(numbered_lines(path)), bytes),
    "regions": ("x.tsv", tsvs, read_regions, bytes),
    "captions.csv": ("x.csv", csvs, lambda path: read_split(path, "test"), bytes),
}
"""File name, valid and hostile files, the reader, and what makes a damaged file plausible."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_file_is_refused_or_read_rightly(form, limits, capfd):
    name, make_seeds, read, finish = FORMATS[form]
    seeds = list(make_seeds())
    outcomes = [attempt(name, finish(seed), read, limits) for seed in seeds]
    assert True in outcomes  # the reader reads a valid file

    @given(mutated(seeds))
    def check(content):
        attempt(name, finish(content), read, limits)

    check()
    assert "code of a pickle ran" not in capfd.readouterr().out


def attempt(name, content, read, limits):
    """Whether the file is read. Nothing may appear outside its folder."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder) / "room"
        room.mkdir()
        (room / name).write_bytes(content)
        try:
            with limits():
                read(room / name)
            return True
        except ManyMatchError:
            return False
        finally:
            assert {path.name for path in room.iterdir()} <= {name, "out"}
            assert [path.name for path in Path(folder).iterdir()] == ["room"]
