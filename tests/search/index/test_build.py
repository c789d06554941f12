"""An index is made and brought up to date; kills, broken pictures and other models do no harm."""

import errno
import os
import shutil

import numpy as np
import pytest
from killing import kill_during
from picture_bomb import strips
from PIL import Image

from manymatch import load
from manymatch.util import images
from manymatch.util.errors import CheckpointError, DataError, StorageError

from .conftest import Album

TARGETS = {
    "write_block": "manymatch.search.index.stored.write_items",
    "gather": "manymatch.search.index.build.gather",
    "write_codes": "manymatch.search.index.build.write_codes",
    "write_json": "manymatch.search.index.build.write_json",
    "exchange": "manymatch.util.files._exchange",  # the new index takes the place of the old one
    "remove": "manymatch.search.index.stored.UnfinishedParts.remove",
}
"""The functions at whose calls runs are killed."""


def test_only_what_is_new_or_changed_is_embedded(album, encoded, capsys):
    assert album.index().embedded == len(encoded) == 12
    first = dict(zip(paths(album), vectors(album), strict=True))
    inode = (album.target / "vectors.npy").stat().st_ino
    encoded.clear()
    again = album.index()
    assert not encoded and (again.items, again.embedded) == (12, 0)
    assert (album.target / "vectors.npy").stat().st_ino == inode  # nothing was written

    names = [path.relative_to(album.pictures).as_posix() for path in files(album)]
    for number, name in enumerate(names[:3]):
        album.draw(name, 100 + number)
    for name in names[3:6]:
        (album.pictures / name).rename(album.pictures / f"renamed-{name.replace('/', '-')}")
    for name in names[6:9]:
        (album.pictures / name).unlink()
    for number in range(4):
        album.draw(f"new/{number}.png", 200 + number)
    os.utime(album.pictures / names[9], ns=(0, 0))  # the content is the same
    changes = album.index()
    assert len(encoded) == changes.embedded == 7
    assert (changes.added, changes.changed, changes.renamed, changes.removed) == (4, 3, 3, 3)
    assert changes.items == 13
    rows = dict(zip(paths(album), vectors(album), strict=True))
    expected = album.model.encode_images(files(album)).vectors.numpy()
    np.testing.assert_allclose(np.stack(list(rows.values())), expected, atol=1e-6)
    for name in names[9:]:
        np.testing.assert_array_equal(rows[name], first[name])


def vectors(album):
    """The embeddings of the index, in memory."""
    return np.array(album.open().stored.arrays["vectors"])


def files(album):
    return sorted(path for path in album.pictures.rglob("*") if path.is_file())


def paths(album):
    names = album.open().stored.items["path"].to_pylist()
    assert names == sorted(set(names))
    return names


def test_killed_runs_continue_to_the_same_bytes(album, encoded):
    copied = album.root / "copy"
    undisturbed = Album(copied, album.model, album.model_folder)
    for name, kills in {
        "first": [("write_block", 2), ("write_block", 2), ("gather", 1), ("write_codes", 1)],
        "second": [("write_json", 1), ("exchange", 1), ("remove", 1)],
    }.items():
        for number in range(4):
            album.draw(f"{name}/{number}.png", 100 * len(name) + number)
        before = album.content()
        for function, call in kills:
            kill_during(album.index, TARGETS[function], call)
            if album.target.exists() and function != "remove":
                assert album.content() == before
        encoded.clear()
        assert album.index().embedded == len(encoded) == 0
        shutil.copytree(album.pictures, undisturbed.pictures, dirs_exist_ok=True)
        undisturbed.index()
        assert vectors(album).tobytes() == vectors(undisturbed).tobytes()
        assert not list(album.root.glob("*.partial"))


def test_broken_pictures_are_left_out_and_counted(album, capsys, monkeypatch):
    folder = album.pictures
    for name in ("text.jpg", "plan.svg", "phone.JXL", "web.avif", "raw.dng"):
        (folder / name).write_text("no picture")
    (folder / "empty.png").touch()
    whole = (folder / "0" / "00.png").read_bytes()
    (folder / "truncated.png").write_bytes(whole[: len(whole) // 2])
    Image.fromarray(np.zeros((70, 70, 3), np.uint8)).save(folder / "bomb.png")
    monkeypatch.setattr(images, "MAX_PIXELS", 69 * 70)
    (folder / "strips.tif").write_bytes(strips(100_001))
    os.mkfifo(folder / "pipe.jpg")
    (folder / "dangling.jpg").symlink_to("nowhere.jpg")
    (folder / "circle.jpg").symlink_to("circle.jpg")
    outside = album.root / "outside.png"
    shutil.copy(folder / "0" / "00.png", outside)
    (folder / "outside.png").symlink_to(outside)
    (folder / os.fsdecode(b"\xff.png")).write_bytes(whole)
    (folder / "inside.png").symlink_to("0/00.png")
    (folder / ".hidden.png").write_bytes(whole)
    changes = album.index()
    assert (changes.items, changes.broken) == (13, 14)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("left out")]
    assert len(lines) == 14 and all(line.isprintable() for line in lines)
    assert sum("not a format that is read" in line for line in lines) >= 3
    assert sum("too many scans, strips or tiles" in line for line in lines) == 1
    assert album.open().manifest.broken == 14
    assert album.index().embedded == 0

    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "text.jpg").write_text("no picture")
    with pytest.raises(DataError, match="none of 1"):
        album.index()
    assert not [*album.root.glob("*.partial")]
    assert len(album.open()) == 13


def test_another_model_and_a_folder_that_is_no_index_are_refused(album, make_model):
    album.index()
    other = load(make_model("vsepp", dataset="other"), "cpu")
    other.facts["weights_sha256"] = "other"
    album.model, own = other, album.model
    for refused in (album.index, album.open):
        with pytest.raises(CheckpointError, match="weights_sha256") as error:
            refused()
        assert f"Use the model {album.model_folder.resolve()}," in str(error.value)
    album.model = own
    album.target = album.pictures
    with pytest.raises(StorageError, match="not an index"):
        album.index()
    assert len(files(album)) == 12


def test_an_update_removes_no_file_of_the_user(album):
    album.index()
    for name in ("thesis.txt", "pictures"):
        (album.target / name).touch()
        with pytest.raises(StorageError, match=f"holds '{name}', which would be lost"):
            album.index()
        (album.target / name).unlink()
    (album.target / ".DS_Store").touch()
    assert album.index().embedded == 0


def test_a_file_without_a_time_counts_by_its_content(album):
    for seed, changed in ((1, 0), (2, 1), (2, 0)):
        album.draw("same-size.bmp", seed)
        os.utime(album.pictures / "same-size.bmp", (0, 0))
        assert album.index().changed == changed


def test_a_full_disk_and_a_time_that_no_column_has(album, monkeypatch):
    """A map of a file on a full disk would end the process."""
    picture = next(iter(files(album)))
    os.utime(picture, ns=(0, 2**63 + 10**9))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(StorageError, match="no space left"):
        patched.setattr(os, "posix_fallocate", full)
        album.index()
    assert album.index().embedded == 0 and album.index().items == 12


def test_a_damaged_index_is_mended(album):
    table = album.root / "facts.csv"
    table.write_text("path,number\n0/00.png,7\n")
    album.index(table=table)
    whole = album.content()
    for name, embedded in (("vectors.npy", 12), ("codes/codes.bin", 0)):
        with (album.target / name).open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\x7f")
        assert album.index().embedded == embedded
        assert album.content() == whole
    (album.target / "SEAL.json").unlink()
    assert album.index().embedded == 12
    assert album.content() == whole


def test_an_output_of_dvc_does_not_depend_on_times(album, encoded):
    album.index(times=False)
    first, own = album.content(), album.target
    for path in album.pictures.rglob("*.png"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    album.target = album.root / "2.index"
    album.index(times=False)
    assert album.content() == first
    index = album.open()
    assert not index.search("two dogs", where="date > 1960-01-01").results
    assert index.item(index.search("two dogs").results[0].id).mtime_ns == 0

    encoded.clear()
    album.target = own
    album.index(times=False)
    assert album.content() == first and not encoded
    album.draw("0/00.png", 77)
    assert album.index(times=False).changed == 1
    assert album.index().embedded == 0  # and now with times
    assert album.open().search("two dogs", where="date > 2001-01-01").results
