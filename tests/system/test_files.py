"""Files are whole or not there."""

import errno
import os

import pytest

from manymatch.system.errors import StorageError, nearest
from manymatch.system.files import replacing, sha256, write_json


def test_a_finished_file_replaces_the_old_one(tmp_path):
    target = tmp_path / "deep" / "a.txt"
    for text in ("one", "two"):
        with replacing(target) as partial:
            partial.write_text(text)
            assert partial.parent == target.parent
    assert target.read_text() == "two"
    assert list(target.parent.iterdir()) == [target]


def test_a_finished_folder_replaces_the_old_one_whole(tmp_path):
    target = tmp_path / "folder"
    for name in ("old", "new"):
        with replacing(target) as partial:
            partial.mkdir()
            (partial / name).write_text("x")
    assert [path.name for path in target.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("old_exists", [True, False])
def test_what_killed_processes_left_is_removed(tmp_path, old_exists):
    target = tmp_path / "folder"
    left = ["folder.partial", "folder.old.partial", *(["folder"] if old_exists else [])]
    for name in left:
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").touch()
    with replacing(target) as partial:
        partial.mkdir()
    assert list(tmp_path.rglob("*")) == [target]


@pytest.mark.parametrize("fault", [RuntimeError("x"), KeyboardInterrupt()])
def test_a_fault_leaves_the_old_file_and_nothing_else(tmp_path, fault):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(type(fault)), replacing(target) as partial:
        partial.write_text("half")
        raise fault
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_one_line(tmp_path, code):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(StorageError, match="no space left") as error, replacing(target):
        raise OSError(code, "full")
    assert "\n" not in str(error.value)
    assert target.read_text() == "old"


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EIO, errno.EMFILE, errno.EBUSY])
def test_a_fault_of_the_file_system_is_one_line_with_the_file(tmp_path, code):
    with pytest.raises(StorageError, match=str(tmp_path)) as error, replacing(tmp_path / "a"):
        raise OSError(code, os.strerror(code))
    assert "\n" not in str(error.value)


def test_other_faults_keep_their_kind(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "a"):
        (tmp_path / "missing").read_text()


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
