"""Where pictures are, whatever the user's folder looks like."""

from pathlib import PurePosixPath

import pytest

from manymatch.datasets.image_files import Pictures, settle_pictures
from manymatch.datasets.image_folder import picture_path, read_place
from manymatch.system.errors import ConfigError, DataError, SourceError


@pytest.fixture
def raw(tmp_path):
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


@pytest.fixture
def folder(tmp_path):
    """a.jpg, sub/b.PNG, and what is no picture of the user's."""
    folder = tmp_path / "mine"
    for name in ("a.jpg", "sub/b.PNG", ".trash/c.jpg", "__MACOSX/d.jpg", "sub/._b.jpg", "e.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return folder


def stem(name):
    return PurePosixPath(name).stem


def test_a_folder_is_used_where_it_lies(raw, folder):
    settle_pictures([folder], raw, only_present=False)
    pictures = Pictures(raw, stem)
    assert [pictures.file(name) for name in ("a.jpg", "b.jpg")] == [
        "images/a.jpg",
        "images/sub/b.PNG",
    ]
    place = read_place(raw)
    assert picture_path(raw, "images/sub/b.PNG", place) == folder / "sub" / "b.PNG"
    assert sorted(path.name for path in raw.iterdir()) == ["images.json"]


def test_debris_and_missing_pictures_are_named_as_not_there(raw, folder):
    settle_pictures([folder], raw, only_present=False)
    pictures = Pictures(raw, stem)
    for name in ("c.jpg", "d.jpg", "e.jpg"):
        path = picture_path(raw, pictures.file(name), read_place(raw))
        assert path == folder / name and not path.exists()


def test_links_in_a_circle_end(raw, folder):
    (folder / "sub" / "again").symlink_to(folder)
    settle_pictures([folder], raw, only_present=False)
    assert Pictures(raw, stem).file("a.jpg") == "images/a.jpg"


def test_a_relative_folder_is_noted_as_absolute(raw, folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    settle_pictures([folder.relative_to(tmp_path)], raw, only_present=False)
    assert read_place(raw).folder == str(folder)


def test_a_folder_without_pictures(raw, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"no \.jpeg, \.jpg, \.png files in it"):
        settle_pictures([tmp_path / "empty"], raw, only_present=False)


def test_several_folders_are_refused(raw, folder):
    with pytest.raises(SourceError, match="name one folder of images, or archives alone"):
        settle_pictures([folder, folder / "sub"], raw, only_present=False)


@pytest.mark.parametrize("file", ["", "/etc/passwd", "../x.jpg", "images/../../x.jpg", "a\0b"])
@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_name_does_not_leave_the_folder(raw, folder, file, elsewhere):
    if elsewhere:
        settle_pictures([folder], raw, only_present=False)
    with pytest.raises(DataError, match="lies outside"):
        picture_path(raw, file, read_place(raw))


def test_only_the_pictures_are_elsewhere(raw, folder):
    settle_pictures([folder], raw, only_present=False)
    assert picture_path(raw, "boxes.parquet", read_place(raw)) == raw / "boxes.parquet"


@pytest.mark.parametrize(
    ("note", "kind"), [("[", DataError), ("[]", DataError), ('{"folder": 1}', ConfigError)]
)
def test_nonsense_in_the_note_is_one_line(raw, note, kind):
    (raw / "images.json").write_text(note)
    with pytest.raises(kind, match=r"images\.json: ") as caught:
        read_place(raw)
    assert "\n" not in str(caught.value)
