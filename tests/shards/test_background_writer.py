"""Files written by a thread."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path

import pytest

from manymatch.shards.background_writer import Disk


def test_files_hold_what_was_written_in_order_and_know_their_digests(tmp_path: Path) -> None:
    pieces = [bytes([number % 251]) * (number * 997 % 70_000) for number in range(200)]
    disk = Disk()
    files = []
    for name, chosen in (("a", pieces), ("b", pieces[::-1]), ("empty", [])):
        file = disk.file(tmp_path / name)
        for piece in chosen:
            file.write(piece)
        file.close()
        files.append((name, b"".join(chosen), file))
    for name, wanted, file in files:
        assert file.sha256() == hashlib.sha256(wanted).hexdigest()
        assert (tmp_path / name).read_bytes() == wanted
    disk.close()


def test_a_full_disk_is_an_error_for_whoever_closes() -> None:
    disk = Disk()
    file = disk.file(Path("/dev/full"))
    file.write(b"x" * 10)
    file.close()
    with pytest.raises(OSError) as caught:
        disk.close()
    assert caught.value.errno == errno.ENOSPC


def test_a_full_disk_is_an_error_for_whoever_writes_on() -> None:
    disk = Disk()
    file = disk.file(Path("/dev/full"))
    with pytest.raises(OSError) as caught:
        for _ in range(100):
            file.write(b"x" * 2**20)
    assert caught.value.errno == errno.ENOSPC
