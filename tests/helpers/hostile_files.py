"""Valid files of every format from elsewhere, and hostile ones that no damage would make."""

import base64
import gzip
import io
import pickle
import struct
import tarfile
import tempfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.torch
import torch
from PIL import Image
from tars import tar_bytes

from manymatch.evaluation.protocols.relevance import RELEVANCE
from manymatch.features.layout import Layout
from manymatch.features.writer import FeatureWriter

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
    return tar_bytes({**FILES, name: b"x"}.items(), form=form)


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


def add_checksums(content):
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


def hdf5(form, names=IDS, **options):
    def write(path):
        with h5py.File(path, "w", libver=form) as file:
            for name in names:
                file.create_dataset(name, data=VALUES, **options)

    return written(write)


def hdf5s():
    yield hdf5("earliest")
    yield hdf5("latest")
    yield hdf5("earliest", chunks=(2, 3), compression="gzip", shuffle=True)
    yield hdf5("latest", chunks=(2, 3), compression="lzf", fletcher32=True)


def hdf5_scores():
    yield hdf5("earliest", "a")
    yield hdf5("latest", "a", chunks=(2, 3), compression="gzip")


def stores():
    def write(path):
        with FeatureWriter(path, Layout(IDS, 2, 6, has_boxes=True)) as writer:
            for row, values in enumerate(VALUES):
                box = np.tile(np.array([0, 0, 1, 1], np.float32), (2, 1))
                writer.write(row, np.stack([values, values + 1]), box)

    yield written(write)


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


def safetensor_files():
    yield safetensors.torch.save({"a": torch.from_numpy(VALUES)})
