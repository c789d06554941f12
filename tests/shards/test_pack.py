"""Tar files are those that webdataset's own writer makes, byte for byte."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from webdataset import TarWriter

from manymatch.shards.background_writer import Disk
from manymatch.shards.pack import Pack

SAMPLES = {
    "no sample": {},
    "an empty member": {"00000000": {"json": b""}},
    "full blocks": {"00000000": {"a": b"x" * 512, "b": b"y" * 1024}},
    "the last record just full": {"00000000": {"a": b"x" * (10240 - 512 - 1024)}},
    "the last record just too full": {"00000000": {"a": b"x" * (10240 - 512 - 1023)}},
    "several": {
        f"{number:08d}": {
            "json": b"{}" * number,
            "features.npy": random.Random(number).randbytes(number * 997),
            "jpg": b"\xff" * 3,
        }
        for number in range(40)
    },
    "the longest name": {"0" * 90: {"features9": b"x"}},
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_bytes_are_webdatasets(name: str, tmp_path: Path) -> None:
    wanted = io.BytesIO()
    with TarWriter(wanted, encoder=False, mtime=0, user="", group="") as writer:
        for key, members in SAMPLES[name].items():
            writer.write({"__key__": key, **members})
    disk = Disk()
    pack = Pack(disk.file(tmp_path / "x.tar"))
    for key, members in SAMPLES[name].items():
        pieces = {suffix: [data[:7], memoryview(data)[7:]] for suffix, data in members.items()}
        pack.write(key, pieces)
    pack.close()
    disk.close()
    assert (tmp_path / "x.tar").read_bytes() == wanted.getvalue()
