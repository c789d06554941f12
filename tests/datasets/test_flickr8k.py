"""Flickr8k in both of its forms, whole and spoilt, through the two stages."""

import json
import os
import tarfile
import zipfile

import pytest

from manymatch.util.errors import ConfigError, DataError, SourceError

PAIRS = [("e", "f.jpg#0"), ("f", "e.jpg#0")]
EXPERT, CROWD = "ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"
TOKENS, TRAIN, TEST = (
    f"Flickr{name}.txt" for name in ("8k.token", "_8k.trainImages", "_8k.testImages")
)


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


@pytest.mark.parametrize(
    ("name", "inside"), [("Flickr8k_Dataset.zip", "Flicker8k_Dataset/"), ("images_224.tar", "")]
)
def test_pictures_in_an_archive(folder, stages, raw, name, inside):
    pictures(folder, name, inside)
    stages({"folder": str(folder.path)})
    names = sorted(path.name for path in (raw / "images").iterdir())
    assert names == [f"{image}.jpg" for image in "abcdefx"]
    assert not (raw / "unpacked").exists()


def test_windows_line_ends_and_a_byte_order_mark_are_taken_and_judgments_may_be_absent(
    folder, stages
):
    expected = stages({"folder": str(folder.path)})
    for name in (TOKENS, TRAIN):
        folder.write(name, "\ufeff" + folder.read(name).replace("\n", "\r\n"))
    for name in (EXPERT, CROWD):
        (folder.path / name).unlink()
    assert stages({"folder": str(folder.path)}) == expected and stages.pairs == []


def line(name, content, words):
    """A faulty line at the end of a file, whose number the message has."""
    return lambda folder: folder.add(name, content), DataError, f"{name}:{{}}: ", words


def image(change, words):
    """A change of the list of images of Karpathy's file."""

    def spoil(folder):
        value = folder.to_karpathy()
        change(value["images"])
        folder.write("dataset_flickr8k.json", json.dumps(value))

    return spoil, DataError, "", words


def gone(name, key):
    words = f"'{key}': not found under its usual name"
    return lambda folder: (folder.path / name).rename(folder.path / "x"), ConfigError, "", words


def picture(name, words, make=lambda path: path.write_bytes(b"another")):
    def spoil(folder):
        (folder.path / "Images" / "more").mkdir()
        make(folder.path / "Images" / "more" / name)

    return spoil, SourceError, "", words


def no_pictures(folder):
    with tarfile.open(folder.path / "x.tar", "w") as opened:
        opened.add(folder.path / TOKENS, "readme.txt")
    return {"images": str(folder.path / "x.tar")}


FAULTS = [
    (
        lambda _: {"folder": None},
        ConfigError,
        "params.yaml: ",
        "sources.flickr8k: 'images': set this key",
    ),
    gone(TOKENS, "captions"),
    gone("Flickr_8k.devImages.txt", "validation_list"),
    (no_pictures, SourceError, "", "no .jpeg, .jpg, .png files"),
    (lambda folder: {"captions": str(folder.path)}, DataError, "", "not a regular file"),
    picture("g.jpg", "no such file, or a link", lambda path: path.symlink_to("nowhere.jpg")),
    picture("a.jpg", "two images are called a.jpg"),
    (
        lambda folder: (folder.path / "Images" / "c.jpg").unlink(),
        *(
            DataError,
            "",
            "token.txt:8: caption 'c.jpg#0' has no image: images/c.jpg does not exist",
        ),
    ),
    line(TOKENS, b"a.jpg#2\tcaf\xe9 .\n", "byte 0xe9 at column 12 is not UTF-8"),
    line(TOKENS, b"a.jpg#2 no tab\n", "expected 2 parts separated by tabs, found 1"),
    line(TOKENS, b"a.jpg\tno number\n", "expected FILE#NUMBER before the tab, found 'a.jpg'"),
    line(TOKENS, b"a.jpg#" + b"1" * 5000 + b"\tlong\n", "expected FILE#NUMBER before the tab"),
    line(TOKENS, b"a.jpg#1\tagain\n", "a second caption 'a.jpg#1'"),
    line(TEST, b"z.jpg\n", "image z.jpg has no caption"),
    line(TEST, b"a.jpg\n", "Flickr_8k.trainImages.txt:1"),
    line(EXPERT, b"e.jpg\tf.jpg#0\t3\t3\n", "expected 5 parts"),
    line(EXPERT, b"e.jpg\tf.jpg#0\t3\t3\t5\n", "expected scores from 1 to 4"),
    line(EXPERT, b"e.jpg\tf.jpg#0\t3\t3\tx\n", "expected a whole number, found 'x'"),
    line(CROWD, b"e.jpg\tf.jpg#0\t0\t0\t0\n", "a pair without a vote"),
    image(lambda images: images.append(3), "images[6]: expected 'filename' of type str"),
    image(lambda images: images[1].update(sentences=[]), "image b.jpg has no caption"),
    image(
        lambda images: images[1]["sentences"][1].update(raw=None),
        "images[1].sentences[1]: expected 'raw' of type str, found None",
    ),
    image(lambda images: images.append(images[0]), "a second image a.jpg"),
]


@pytest.mark.parametrize(("spoil", "kind", "start", "words"), FAULTS)
def test_a_fault_is_one_line(folder, stages, raw, spoil, kind, start, words):
    name = start.partition(":")[0]
    count = folder.read(name).count("\n") + 1 if "{}" in start else 0
    settings = {"folder": str(folder.path)}
    changed = spoil(folder)
    settings |= changed if isinstance(changed, dict) else {}
    result = stages.refused(settings, kind, words)
    assert result.startswith(f"{raw / start.format(count)}" if count else start)


def test_judgments_are_of_the_test_split_and_refused_pairs_are_kept_apart(folder, stages):
    folder.add("ExpertAnnotations.txt", "a.jpg\te.jpg#0\t4\t4\t4\ne.jpg\ta.jpg#0\t4\t4\t4\n")
    stages({"folder": str(folder.path)})
    assert stages.pairs == PAIRS
    assert stages.false_pairs == [("e", "f.jpg#1"), ("f", "e.jpg#1")]
    folder.add("ExpertAnnotations.txt", "e.jpg\tf.jpg#1\t4\t4\t4\n")
    stages({"folder": str(folder.path)})
    assert ("e", "f.jpg#1") in stages.pairs and ("e", "f.jpg#1") not in stages.false_pairs
    folder.add("ExpertAnnotations.txt", "e.jpg\tf.jpg#9\t4\t4\t4\n")
    stages.refused({"folder": str(folder.path)}, DataError, "no caption 'f.jpg#9'")
