"""Where image files are, whatever the user's folder looks like."""

from pathlib import PurePosixPath

import pytest

from manymatch.datasets.image_files import (
    Image,
    Line,
    caption_rows,
    image_path,
    read_image_folder,
    settle_images,
)
from manymatch.util.errors import DataError, SourceError


@pytest.fixture
def raw(tmp_path):
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


@pytest.fixture
def folder(tmp_path):
    """a.jpg, sub/b.PNG, and files that are not images of the user."""
    folder = tmp_path / "mine"
    for name in ("a.jpg", "sub/b.PNG", ".trash/c.jpg", "__MACOSX/d.jpg", "sub/._b.jpg", "e.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return folder


def files_of(raw, *names):
    """The caption table's files of the images called `names`."""
    images = [Image(name, "train", [Line("a dog", "file:1")]) for name in names]
    rows = caption_rows(raw, images, key=lambda name: PurePosixPath(name).stem)
    return [row.file for row in rows]


def test_a_folder_is_used_where_it_lies(raw, folder, monkeypatch, tmp_path):
    """Also by a relative path, and with a link that leads back."""
    (folder / "sub" / "again").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    settle_images([folder.relative_to(tmp_path)], raw, only_present=False)
    names = ("a.jpg", "b.jpg", "c.jpg", "d.jpg", "e.jpg")  # the last are hidden or missing
    files = ["images/a.jpg", "images/sub/b.PNG", *(f"images/{name}" for name in names[2:])]
    assert files_of(raw, *names) == files
    images = read_image_folder(raw)
    assert images.folder == str(folder) and not image_path(raw, files[2], images).exists()
    assert image_path(raw, "images/sub/b.PNG", images) == folder / "sub" / "b.PNG"
    assert image_path(raw, "boxes.parquet", images) == raw / "boxes.parquet"
    assert sorted(path.name for path in raw.iterdir()) == ["images.json"]


def test_several_folders_or_a_folder_without_images_are_refused(raw, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"no \.jpeg, \.jpg, \.png files"):
        settle_images([tmp_path / "empty"], raw, only_present=False)
    with pytest.raises(SourceError, match="Give one folder"):
        settle_images([folder, folder / "sub"], raw, only_present=False)


@pytest.mark.parametrize("file", ["", "/etc/passwd", "../x.jpg", "images/../../x.jpg", "a\0b"])
def test_a_name_does_not_leave_the_folder(raw, folder, file):
    for _ in ("the images are in `raw`", "and elsewhere"):
        with pytest.raises(DataError, match="outside"):
            image_path(raw, file, read_image_folder(raw))
        settle_images([folder], raw, only_present=False)
