"""Files are whole or not there."""

import errno
import shutil
from pathlib import Path

import numpy as np
import pytest
from full_disk import error_on_full_disk

from manymatch.util import files
from manymatch.util.errors import StorageError, nearest
from manymatch.util.files import replacing, sha256, write_json, write_text, write_through


def test_a_fault_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    for fault in (RuntimeError("x"), KeyboardInterrupt(), OSError("broken")):
        with pytest.raises(type(fault)), replacing(target) as partial:
            partial.write_text("half")
            raise fault
        assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_a_fault_of_the_file_system_is_one_line_with_the_file(tmp_path):
    """HDF5 crashes on a full disk, and LanceDB says in words alone that the disk is full."""
    hdf5 = "Can't write data (file write failed: errno = 28, error message = 'N"
    for error in (
        *(OSError(getattr(errno, code), code) for code in ("EACCES", "EROFS", "EIO", "EMFILE")),
        *(OSError(getattr(errno, code), code) for code in ("ENOSPC", "EDQUOT", "EFBIG")),
        OSError(hdf5),
        OSError("LanceError(IO): No space left on device (os error 28)"),
    ):
        full = error.errno not in (errno.EACCES, errno.EROFS, errno.EIO, errno.EMFILE)
        words = f"{tmp_path / 'a.txt'}: {files._FULL}" if full else str(tmp_path)
        with pytest.raises(StorageError) as fault, replacing(tmp_path / "a.txt"):
            raise error
        assert words in str(fault.value) and "\n" not in str(fault.value)
        assert not list(tmp_path.iterdir())


def test_a_full_disk_under_an_array(tmp_path):
    def write():
        with replacing(tmp_path / "a.npy") as partial, partial.open("wb") as stream:
            np.save(stream, np.zeros(5000))

    assert error_on_full_disk(write, 1000) == f"StorageError: {tmp_path / 'a.npy'}: {files._FULL}"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("step", ["rename", "replace", "rmtree"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_leaves_the_old_or_the_new_folder_alone(tmp_path, monkeypatch, step, when):
    monkeypatch.setattr("manymatch.util.files._exchange", lambda *_: False)
    owner = shutil if step == "rmtree" else Path
    usual, left = getattr(owner, step), ["once"]

    def interrupted(*arguments):
        if not left:
            return usual(*arguments)
        left.pop()
        if when == "after":
            usual(*arguments)
        raise KeyboardInterrupt

    target = tmp_path / "target"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(KeyboardInterrupt), replacing(target) as partial:
        partial.mkdir()
        (partial / "new").touch()
        monkeypatch.setattr(owner, step, interrupted)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert len(list(target.iterdir())) == 1


def test_a_folder_in_the_place_of_a_file_stays(tmp_path):
    (tmp_path / "x" / "mine").mkdir(parents=True)
    with pytest.raises(StorageError, match="x: a folder, where a file is expected"):
        write_text(tmp_path / "x", "text")
    assert [path.name for path in tmp_path.rglob("*")] == ["x", "mine"]


def test_json_has_no_nan_and_one_form(tmp_path):
    write_json(tmp_path / "a.json", {"b": 1, "a": 2})
    write_json(tmp_path / "b.json", {"a": 2, "b": 1})
    assert sha256(tmp_path / "a.json") == sha256(tmp_path / "b.json")
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"a": float("nan")})


def test_the_nearest_name_is_suggested_only_if_near():
    assert nearest("corra", ["cora", "vsepp"]) == "; did you mean 'cora'? (known: cora, vsepp)"
    assert nearest("zzz", ["cora"]) == " (known: cora)"
    assert nearest("x", []) == " (known: none)"


def test_a_link_of_the_user_stays_and_its_file_changes(tmp_path):
    kept, first, link = (tmp_path / name for name in ("kept.yaml", "first", "link"))
    kept.write_text("old")
    first.symlink_to(kept)
    link.symlink_to(first)
    write_through(link, "new")
    assert link.is_symlink() and kept.read_text() == "new" and not kept.is_symlink()
    assert len(list(tmp_path.iterdir())) == 3
