"""Damaged and hostile files of every format: a `ManyMatchError`, or a right result."""

import base64
import gzip
import io
import pickle
import struct
import tarfile
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.torch
import torch
from hypothesis import given
from mutations import mutated
from PIL import Image

from manymatch.evaluation.external.arrays import open_array
from manymatch.evaluation.external.split_table import read_ids, read_split
from manymatch.evaluation.protocols.relevance import RELEVANCE
from manymatch.features.importers.butd_tsv import open_butd_tsv
from manymatch.features.importers.image_table import ImageTable
from manymatch.features.importers.npy_rows import NpyRows
from manymatch.features.importers.vector_files import open_vectors, vector
from manymatch.features.store import FeatureStore, FeatureWriter
from manymatch.fetching.archives import count_whole, extract, is_archive
from manymatch.foreign.images import read_image
from manymatch.foreign.json_file import read_object
from manymatch.foreign.json_stream import elements
from manymatch.foreign.numpy_file import load_array
from manymatch.foreign.parquet_file import open_table, read_table
from manymatch.foreign.pickles import PickledArray, read_pickle
from manymatch.foreign.text_lines import numbered_lines
from manymatch.foreign.torch_file import load_tensors
from manymatch.system.errors import ManyMatchError

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)
IDS = ["a", "b", "c", "d"]
FILES = {"a.txt": b"first", "folder/b.txt": b"second" * 300, "folder/deep/c.bin": bytes(2000)}


def written(write, name="file"):
    """The bytes that `write(path)` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def streamed(write):
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def tar(form, name="long" * 60):
    def write(stream):
        with tarfile.open(fileobj=stream, mode="w", format=form) as opened:
            for member, content in {**FILES, name: b"x"}.items():
                info = tarfile.TarInfo(member)
                info.size = len(content)
                opened.addfile(info, io.BytesIO(content))

    return streamed(write)


def tars():
    yield tar(tarfile.USTAR_FORMAT, "short")
    yield tar(tarfile.GNU_FORMAT)
    yield tar(tarfile.PAX_FORMAT)
    yield from special_tars()


def special_tars():
    """Links, devices, sparse files and paths out of the folder."""
    kinds = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.GNUTYPE_SPARSE]
    headers = [
        ("../evil", tarfile.REGTYPE),
        *((f"m{number}", kind) for number, kind in enumerate(kinds)),
    ]
    for name, kind in headers:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, "/etc/passwd"
        yield info.tobuf(tarfile.GNU_FORMAT) + tar(tarfile.GNU_FORMAT)


def with_checksums(content):
    """The tar with right checksums of all headers, or else `tarfile` reads no further."""
    fixed = bytearray(content)
    for at in range(0, len(fixed) - 511, 512):
        if fixed[at + 257 : at + 262] == b"ustar":
            block = bytearray(fixed[at : at + 512])
            block[148:156] = b" " * 8
            fixed[at + 148 : at + 156] = b"%06o\0 " % sum(struct.unpack("512B", block))
    return bytes(fixed)


def zips():
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):

        def write(stream, compression=compression):
            with zipfile.ZipFile(stream, "w", compression) as opened:
                for name, content in FILES.items():
                    opened.writestr(name, content)

        yield streamed(write)


def hdf5(form, **options):
    def write(path):
        with h5py.File(path, "w", libver=form) as file:
            for name in IDS:
                file.create_dataset(name, data=VALUES, **options)

    return written(write)


def hdf5s():
    yield hdf5("earliest")
    yield hdf5("latest")
    yield hdf5("earliest", chunks=(2, 3), compression="gzip", shuffle=True)
    yield hdf5("latest", chunks=(2, 3), compression="lzf", fletcher32=True)


def one_array(form, **options):
    def write(path):
        with h5py.File(path, "w", libver=form) as file:
            file.create_dataset("a", data=VALUES, **options)

    return written(write)


@cache
def store():
    def write(path):
        with FeatureWriter(path, IDS, max_regions=2, width=6, boxes=True) as writer:
            for row, values in enumerate(VALUES):
                box = np.tile(np.array([0, 0, 1, 1], np.float32), (2, 1))
                writer.write(row, np.stack([values, values + 1]), box)

    return written(write)


def parquets():
    """A table of relevance with and without compression and dictionaries."""
    columns = {
        field.name: pa.array([[1], [2, 3], []], field.type)
        if pa.types.is_list(field.type)
        else pa.array(["1", "2", "3"]).cast(field.type)
        for field in RELEVANCE
    }
    for compression in ("none", "snappy", "zstd"):
        yield streamed(
            lambda stream, compression=compression: pq.write_table(
                pa.table(columns), stream, compression=compression
            )
        )


def npys():
    yield streamed(lambda stream: np.save(stream, VALUES))
    yield streamed(lambda stream: np.save(stream, np.array(IDS)))
    yield streamed(lambda stream: np.save(stream, np.array(IDS, object), allow_pickle=True))
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%s, 6), }"
    for size in (b"9" * 20, b"-4", b"4" * 5000, b"(" * 300):
        text = header % size + b"\n"
        yield b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text + VALUES.tobytes()


def npzs():
    for save in (np.savez, np.savez_compressed):
        yield streamed(lambda stream, save=save: save(stream, **dict.fromkeys(IDS, VALUES)))
        yield streamed(lambda stream, save=save: save(stream, a=VALUES))


class Hostile:
    def __reduce__(self):
        return (print, ("code of a pickle ran",))


def pickles():
    howto = [{"id": name, "2d": VALUES[0], "3d": VALUES[1]} for name in IDS]
    values = [
        dict(zip(IDS, VALUES, strict=True)),
        howto,
        {"a": np.float32(2), "b": b"x"},
        Hostile(),
    ]
    for value in values:
        for protocol in (0, 2, 4, 5):
            yield pickle.dumps(value, protocol)
    yield b"\x80\x04" + b"]" * 20_000 + b"a" * 19_999 + b"."
    yield b"\x80\x04X\xff\xff\xff\x7fabc."
    yield b"\x80\x02K\x01r\xff\xff\xff\x7f."


def torches():
    for new in (True, False):
        tensors = dict(zip(IDS, torch.from_numpy(VALUES), strict=True))
        yield streamed(
            lambda stream, tensors=tensors, new=new: torch.save(
                tensors, stream, _use_new_zipfile_serialization=new
            )
        )


def jsons():
    yield b'{"images": [{"filename": "a.jpg", "sentences": ["\\u00e4", 1.5e3]}, {}], "b": null}'
    yield b'\xef\xbb\xbf{"images": [' + b'{"a": [' * 300 + b"]}" * 300 + b"]}"
    yield b'{"a": ' * 5000
    yield b'{"images": [' + b"9" * 6000 + b", 1e999999, NaN]}"
    yield b'{"images": ["\\ud800", "' + bytes(range(256)) + b'"]}'


def images():
    picture = Image.fromarray((np.arange(3072) % 256).astype(np.uint8).reshape(32, 32, 3))
    for form in ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF"):
        yield streamed(lambda stream, form=form: picture.save(stream, form))
    yield streamed(lambda stream: picture.save(stream, "TIFF", compression="tiff_lzw"))
    yield b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"


def lines():
    text = b"image.jpg#0\ta caption\nimage.jpg#1\t\xc3\xa4\r\n"
    yield gzip.compress(text)
    yield gzip.compress(b"x" * 2**21)


def tsvs():
    boxes = base64.b64encode(np.array([[0, 0, 5, 5]], "<f4").tobytes())
    features = base64.b64encode(VALUES[:1].astype("<f4").tobytes())
    yield b"".join(
        b"\t".join([name.encode(), b"10", b"10", b"1", boxes, features]) + b"\n" for name in IDS
    )


def csvs():
    yield b"image_id,caption_id,split,labels\n" + b"".join(
        f"{name},{name}0,test,1 2\n".encode() for name in IDS
    )


def read_archive(path):
    out = path.with_name("out")
    if is_archive(path):
        extract(path, out)
        assert count_whole(path) == sum(item.is_file() for item in out.rglob("*"))
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
    rows = NpyRows(path)
    for row in range(min(len(rows), 8)):
        rows.read(row)
    rows.read_all()
    rows.close()


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
    list(published.rows(lambda row: True))


def read_images(path):
    assert read_image(path).ndim == 3


FORMATS = {
    "tar": ("x.tar", tars, read_archive, with_checksums),
    "tar.gz": (
        "x.tgz",
        tars,
        read_archive,
        lambda content: gzip.compress(with_checksums(content), 1),
    ),
    "damaged gzip": ("x.tgz", lambda: map(gzip.compress, tars()), read_archive, bytes),
    "zip": ("x.zip", zips, read_zip, bytes),
    "feature store": ("x.h5", lambda: [store()], read_store, bytes),
    "vectors.h5": ("x.h5", hdf5s, read_vectors, bytes),
    "scores.h5": (
        "x.h5",
        lambda: [one_array("earliest"), one_array("latest", chunks=(2, 3), compression="gzip")],
        read_scores,
        bytes,
    ),
    "Parquet": ("x.parquet", parquets, read_parquet, bytes),
    "scores.npy": ("x.npy", npys, read_scores, bytes),
    "ids.npy": ("x.npy", npys, read_ids, bytes),
    "array": ("x.npy", npys, load_array, bytes),
    "rows.npy": ("x.npy", npys, read_rows, bytes),
    "scores.npz": ("x.npz", npzs, read_scores, bytes),
    "vectors.npz": ("x.npz", npzs, read_vectors, bytes),
    "scores.safetensors": (
        "x.safetensors",
        lambda: [safetensors.torch.save({"a": torch.from_numpy(VALUES)})],
        read_scores,
        bytes,
    ),
    "pickle": ("x.pkl", pickles, read_plain, bytes),
    "vectors.pkl": ("x.pkl", pickles, read_vectors, bytes),
    "tensors": ("x.pt", torches, load_tensors, bytes),
    "vectors.pt": ("x.pt", torches, read_vectors, bytes),
    "JSON": ("x.json", jsons, read_object, bytes),
    "JSON stream": ("x.json", jsons, lambda path: list(elements(path, ["images"])), bytes),
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
        except ManyMatchError as error:
            assert len(str(error)) < 10_000
            return False
        finally:
            assert {path.name for path in room.iterdir()} <= {name, "out"}
            assert [path.name for path in Path(folder).iterdir()] == ["room"]
