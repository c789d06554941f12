"""Flickr8k in both of its forms, whole and spoilt, through the two stages."""

import hashlib
import io
import json
import os
import tarfile
import zipfile

import pytest
from full_disk import error_on_full_disk

from manymatch.datasets.fetching.archives import extract
from manymatch.util.errors import ConfigError, DataError, SourceError, StorageError

PAIRS = [("e", "f.jpg#0"), ("f", "e.jpg#0")]


@pytest.fixture
def stages(stages_of):
    return stages_of("flickr8k")


@pytest.fixture
def raw(stages):
    return stages.raw


def pictures(folder, name, inside="Flicker8k_Dataset/"):
    """The pictures of `folder` as an archive (by the ending of `name`) instead of a folder."""
    archive, source = folder.path / name, folder.path / "Images"
    if name.endswith(".zip"):
        with zipfile.ZipFile(archive, "w") as opened:
            opened.writestr("__MACOSX/Flicker8k_Dataset/._a.jpg", b"debris")
            for path in source.iterdir():
                opened.write(path, inside + path.name)
    else:
        with tarfile.open(archive, "w") as opened:
            for path in source.iterdir():
                opened.add(path, inside + path.name)
    for path in source.iterdir():
        path.unlink()
    source.rmdir()
    return archive


def test_a_folder_with_the_usual_names_is_read_and_stays_as_it_is(folder, stages, raw):
    given = folder.path / "Images" / "a.jpg"
    os.chmod(given, 0o640)  # noqa: PTH101
    rows = stages({"folder": str(folder.path)})
    ids = [row["caption_id"] for row in rows]
    assert ids == [f"{image}.jpg#{number}" for image in "abcdef" for number in (0, 1)]
    assert rows[5] == {
        "image_id": "c",
        "caption_id": "c.jpg#1",
        "split": "validation",
        "caption": "A c number 1 .",
        "file": "images/c.jpg",
        "labels": [],
    }
    assert stages.pairs == PAIRS
    assert (raw / "images" / "a.jpg").read_bytes() == b"picture a"
    assert not list(raw.parent.glob("*.partial"))
    (raw / "images" / "a.jpg").write_bytes(b"changed")
    assert given.read_bytes() == b"picture a" and given.stat().st_mode & 0o777 == 0o640


def test_both_forms_give_the_same(folder, stages):
    tokens = stages({"folder": str(folder.path)}), stages.pairs
    folder.to_karpathy()
    assert (stages({"folder": str(folder.path)}), stages.pairs) == tokens


@pytest.mark.parametrize("name", ["Flickr8k_Dataset.zip", "images_224.tar"])
@pytest.mark.parametrize("inside", ["", "Flicker8k_Dataset/"])
def test_pictures_in_an_archive(folder, stages, raw, name, inside):
    pictures(folder, name, inside)
    stages({"folder": str(folder.path)})
    assert sorted(path.name for path in (raw / "images").iterdir()) == [
        f"{image}.jpg" for image in "abcdefx"
    ]
    assert not (raw / "unpacked").exists()


def test_every_file_from_its_own_source(folder, stages):
    files = {
        "images": "Images",
        "captions": "Flickr8k.token.txt",
        "train_list": "Flickr_8k.trainImages.txt",
        "validation_list": "Flickr_8k.devImages.txt",
        "test_list": "Flickr_8k.testImages.txt",
        "expert": "ExpertAnnotations.txt",
    }
    rows = stages({key: f"file:{folder.path / name}" for key, name in files.items()})
    assert len(rows) == 12 and stages.pairs == PAIRS[:1]


def test_without_judgments_there_are_no_pairs(folder, stages):
    for name in ("ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"):
        (folder.path / name).unlink()
    stages({"folder": str(folder.path)})
    assert stages.pairs == []


def test_windows_line_ends_and_a_byte_order_mark_are_taken(folder, stages):
    expected = stages({"folder": str(folder.path)})
    for name in ("Flickr8k.token.txt", "Flickr_8k.trainImages.txt"):
        folder.write(name, "\ufeff" + folder.read(name).replace("\n", "\r\n"))
    assert stages({"folder": str(folder.path)}) == expected


# Sources


def test_nothing_configured_says_what_to_set(stages):
    line = stages.refused({"folder": None}, ConfigError, "sources.flickr8k: no source")
    assert line.startswith("params.yaml: ")


@pytest.mark.parametrize(
    ("gone", "key"),
    [
        ("Flickr8k.token.txt", "captions"),
        ("Flickr_8k.devImages.txt", "validation_list"),
        ("Images", "images"),
    ],
)
def test_a_file_missing_from_the_folder(folder, stages, raw, gone, key):
    (folder.path / gone).rename(folder.path / "elsewhere")
    settings = {"folder": str(folder.path)}
    stages.refused(settings, ConfigError, f"'{key}': not found under its usual name")
    assert not raw.exists()


def test_an_unsafe_archive_leaves_an_earlier_folder_whole(folder, stages, raw, tmp_path):
    stages({"folder": str(folder.path)})
    before = sorted(path.name for path in raw.rglob("*"))
    with tarfile.open(tmp_path / "evil.tar", "w") as opened:
        info = tarfile.TarInfo("../../../evil.jpg")
        info.size = 1
        opened.addfile(info, io.BytesIO(b"x"))
    settings = {"folder": str(folder.path), "images": str(tmp_path / "evil.tar")}
    stages.refused(settings, SourceError, "member '../../../evil.jpg': its path leaves the folder")
    assert sorted(path.name for path in raw.rglob("*")) == before
    assert not list(tmp_path.rglob("evil.jpg"))


def test_pictures_that_are_none_or_of_one_name(folder, stages, tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as opened:
        opened.add(folder.path / "Flickr8k.token.txt", "readme.txt")
    settings = {"folder": str(folder.path), "images": str(tmp_path / "x.tar")}
    stages.refused(settings, SourceError, "no .jpeg, .jpg, .png files")
    (folder.path / "Images" / "more").mkdir()
    (folder.path / "Images" / "more" / "g.jpg").symlink_to("nowhere.jpg")
    stages.refused({"folder": str(folder.path)}, SourceError, "g.jpg: no such file, or a link")
    (folder.path / "Images" / "more" / "a.jpg").write_bytes(b"another")
    stages.refused({"folder": str(folder.path)}, SourceError, "two images are called a.jpg")


# Content


EXPERT, CROWD = "ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"
TOKENS, TEST = "Flickr8k.token.txt", "Flickr_8k.testImages.txt"
LINES = [
    (TOKENS, b"a.jpg#2\tcaf\xe9 .\n", "byte 0xe9 at column 12 is not UTF-8"),
    (TOKENS, b"a.jpg#2 no tab\n", "expected 2 parts separated by tabs, found 1"),
    (TOKENS, b"a.jpg\tno number\n", "expected FILE#NUMBER before the tab, found 'a.jpg'"),
    (TOKENS, b"a.jpg#x\tno number\n", "expected FILE#NUMBER before the tab"),
    (TOKENS, b"a.jpg#" + b"1" * 5000 + b"\tlong\n", "expected FILE#NUMBER before the tab"),
    (TOKENS, b"a.jpg#1\tagain\n", "a second caption 'a.jpg#1'"),
    (TOKENS, b"x" * 2**21, "a line of a million bytes"),
    (TEST, b"z.jpg\n", "image z.jpg has no caption"),
    (TEST, b"a.jpg\n", "Flickr_8k.trainImages.txt:1"),
    (EXPERT, b"e.jpg\tf.jpg#0\t3\t3\n", "expected 5 parts"),
    (EXPERT, b"e.jpg\tf.jpg#0\t3\t3\t5\n", "expected scores from 1 to 4"),
    (EXPERT, b"e.jpg\tf.jpg#0\t3\t3\tx\n", "expected a whole number, found 'x'"),
    (EXPERT, b"e.jpg\tf.jpg#0\t3\t3\t" + b"3" * 5000 + b"\n", "whole number"),
    (CROWD, b"e.jpg\tf.jpg#0\t0\t0\t0\n", "a pair without a vote"),
]


@pytest.mark.parametrize(("name", "line", "words"), LINES)
def test_a_faulty_line_is_named(folder, stages, raw, name, line, words):
    count = folder.read(name).count("\n")
    folder.add(name, line)
    result = stages.refused({"folder": str(folder.path)}, DataError, words)
    assert result.startswith(f"{raw / name}:{count + 1}: ")


def test_captions_of_a_split_without_their_image(folder, stages):
    (folder.path / "Images" / "c.jpg").unlink()
    settings = {"folder": str(folder.path)}
    words = "caption 'c.jpg#0' has no image: images/c.jpg does not exist"
    assert "Flickr8k.token.txt:8: " in stages.refused(settings, DataError, words)


KARPATHY = [
    (lambda images: images.clear(), "no captions of training images"),
    (lambda images: images.append(3), "images[6]: expected 'filename' of type str"),
    (lambda images: images[1].pop("split"), "images[1]: expected 'split' of type str"),
    (lambda images: images[1].update(split="dev"), "unknown split 'dev' (known: train"),
    (lambda images: images[1].update(sentences=[]), "image b.jpg has no caption"),
    (
        lambda images: images[1]["sentences"][1].update(raw=None),
        "images[1].sentences[1]: expected 'raw' of type str, found None",
    ),
    (lambda images: images.append(images[0]), "a second image a.jpg"),
]


@pytest.mark.parametrize(("spoil", "words"), KARPATHY)
def test_a_faulty_karpathy_file_is_refused_with_the_place(folder, stages, spoil, words):
    value = folder.to_karpathy()
    spoil(value["images"])
    folder.write("dataset_flickr8k.json", json.dumps(value))
    stages.refused({"folder": str(folder.path)}, DataError, words)


def test_judgments_outside_the_test_split_are_left_out(folder, stages):
    folder.add("ExpertAnnotations.txt", "a.jpg\te.jpg#0\t4\t4\t4\ne.jpg\ta.jpg#0\t4\t4\t4\n")
    stages({"folder": str(folder.path)})
    assert stages.pairs == PAIRS
    folder.add("ExpertAnnotations.txt", "e.jpg\tf.jpg#9\t4\t4\t4\n")
    stages.refused({"folder": str(folder.path)}, DataError, "no caption 'f.jpg#9'")


# From the web


def test_a_disk_full_while_unpacking_keeps_the_download(folder, server, stages, raw, monkeypatch):
    archive = pictures(folder, "pics.tar")
    sha = hashlib.sha256(archive.read_bytes()).hexdigest()
    (folder.path / "web").mkdir()
    archive.rename(folder.path / "web" / "pics.tar")
    images = {"url": f"{server.url}/web/pics.tar", "sha256": sha}
    settings = {"folder": str(folder.path), "images": images}

    def on_a_full_disk(*arguments):
        raise StorageError(error_on_full_disk(lambda: extract(*arguments), room=5))

    with monkeypatch.context() as patch:
        patch.setattr("manymatch.datasets.image_files.extract", on_a_full_disk)
        line = stages.refused(settings, StorageError, "no space left while writing")
    assert line.startswith("StorageError: ")
    assert [path.name for path in raw.parent.iterdir()] == [".downloads"]
    stages(settings)
    assert server.asked == ["/web/pics.tar"]


def test_a_token_file_without_its_lists_is_passed_over_for_karpathys(folder, stages, raw):
    token = folder.read("Flickr8k.token.txt")
    folder.to_karpathy()
    folder.write("Flickr8k.token.txt", token)
    stages({"folder": str(folder.path)})
    assert (raw / "dataset_flickr8k.json").is_file()
