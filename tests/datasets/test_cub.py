"""CUB with Reed's captions and PCME's class lists, through the two stages."""

import shutil
import tarfile
import zipfile

import pytest

from manymatch.util.errors import ConfigError, DataError, SourceError

CLASSES = {1: "001.Albatross", 2: "002.Auklet", 3: "003.Bunting", 4: "004.Groove_billed_Ani"}
IMAGES = 21
"""Images per class."""
SEEN = [f"002.Auklet/Auklet_{k:04}.jpg" for k in (3, 4)]
LISTS = {
    "trainvalclasses.txt": [CLASSES[2], CLASSES[1]],
    "testclasses.txt": [CLASSES[4]],
    # As published, the list also names images of test classes.
    "seen_test_images.txt": [*SEEN, "004.Groove_billed_Ani/Groove_billed_Ani_0000.jpg"],
}


def stem(number, picture):
    return f"{CLASSES[number][4:]}_{picture:04}"


@pytest.fixture
def folder(tmp_path):
    """A folder with images, captions and lists under their usual names."""
    folder = tmp_path / "given"
    for number, name in CLASSES.items():
        (folder / "CUB_200_2011" / "images" / name).mkdir(parents=True)
        (folder / "text_c10" / name).mkdir(parents=True)
        for picture in range(IMAGES):
            image = folder / "CUB_200_2011" / "images" / name / f"{stem(number, picture)}.jpg"
            image.write_bytes(b"picture")
            lines = "".join(f"bird {number} {picture} {k}.\n" for k in range(10))
            (folder / "text_c10" / name / f"{stem(number, picture)}.txt").write_text(lines)
    (folder / "text_c10" / "readme.txt").write_text("no captions\n")
    (folder / "splits").mkdir()
    write_lists(folder / "splits", LISTS)
    return folder


def write_lists(folder, lists):
    for name, lines in lists.items():
        (folder / name).write_text("\n".join(lines) + "\n")


def images_of(rows, split):
    return sorted({row["image_id"] for row in rows if row["split"] == split})


def every(number, wanted=lambda picture: True):
    return {stem(number, picture) for picture in range(IMAGES) if wanted(picture)}


def test_the_class_splits(folder, stages, capsys):
    rows = stages({"folder": str(folder)})
    assert set(images_of(rows, "test")) == every(4) | {stem(2, 3), stem(2, 4)}
    held_out = {stem(1, 9), stem(1, 19), stem(2, 11)}  # seen test images are not counted
    assert set(images_of(rows, "validation")) == held_out
    training = (every(1) | every(2)) - held_out - {stem(2, 3), stem(2, 4)}
    assert set(images_of(rows, "train")) == training
    assert "left out 21 images of classes that are in no list" in capsys.readouterr().err


def test_rows_with_spaces_for_the_lost_bytes_of_published_captions(folder, stages):
    (folder / "text_c10" / CLASSES[1] / f"._{stem(1, 0)}.txt").write_bytes(b"\0\xff")  # of macOS
    path = folder / "text_c10" / CLASSES[1] / f"{stem(1, 0)}.txt"
    path.write_text("this\ufffd\ufffdbird\ufffd\ufffdis grey.\nbird 1 0 1.\n")
    rows = stages({"folder": str(folder)})
    assert rows[0]["caption"] == "this bird is grey."
    assert rows[1] == {
        "image_id": "Albatross_0000",
        "caption_id": "Albatross_0000#1",
        "split": "train",
        "caption": "bird 1 0 1.",
        "file": "images/001.Albatross/Albatross_0000.jpg",
        "labels": [1],
    }
    assert {tuple(row["labels"]) for row in rows if row["split"] == "test"} == {(2,), (4,)}
    assert not (stages.raw / "images").exists()


def test_a_fold_for_choosing_settings(folder, stages):
    write_lists(
        folder, {"trainclasses1.txt": [CLASSES[2]], "valclasses1.txt": [CLASSES[1], CLASSES[3]]}
    )
    rows = stages(
        {
            "folder": str(folder),
            "train_classes": str(folder / "trainclasses1.txt"),
            "validation_classes": str(folder / "valclasses1.txt"),
        }
    )
    assert set(images_of(rows, "train")) == every(2, lambda picture: picture not in (3, 4))
    assert set(images_of(rows, "validation")) == every(1) | every(3)


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_archives_as_published(folder, stages, kind):
    """The layouts of Reed and of AttnGAN."""
    expected = stages({"folder": str(folder)})
    texts = folder / f"texts.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(texts, "w") as opened:
            for path in (folder / "text_c10").rglob("*.txt"):
                opened.write(path, f"text/{path.relative_to(folder / 'text_c10')}")
    else:
        with tarfile.open(texts, "w:gz") as opened:
            opened.add(folder / "text_c10", "cvpr2016_cub/text_c10")
            opened.add(folder / "splits", "cvpr2016_cub/word_c10")
    with tarfile.open(folder / "CUB_200_2011.tgz", "w:gz") as opened:
        opened.add(folder / "CUB_200_2011", "CUB_200_2011")
        opened.add(folder / "splits", "CUB_200_2011/lists")
    shutil.rmtree(folder / "CUB_200_2011")
    rows = stages({"folder": str(folder), "captions": str(texts)})
    assert rows[0]["file"] == "images/Albatross_0000.jpg"
    assert [row | {"file": ""} for row in rows] == [row | {"file": ""} for row in expected]
    assert not (stages.raw / "unpacked").exists()


def test_faulty_and_missing_files_are_named(folder, stages):
    for name, lines in (
        ("seen_test_images.txt", ["002.Laysan_Albatross/Laysan_9999.jpg"]),
        ("testclasses.txt", ["190.Red_cockaded_Woodpecker"]),
    ):
        write_lists(folder / "splits", {name: lines})
        words = f"{name}: names nothing that has captions"
        stages.refused({"folder": str(folder)}, DataError, words)
        write_lists(folder / "splits", LISTS)
    write_lists(folder / "splits", {"testclasses.txt": [CLASSES[4], CLASSES[1]]})
    words = "class 1 is in trainvalclasses.txt and testclasses.txt"
    stages.refused({"folder": str(folder)}, DataError, words)
    write_lists(folder / "splits", {"testclasses.txt": ["Albatross"]})
    words = "testclasses.txt:1: expected a class such as 004.Groove_billed_Ani, found 'Albatross'"
    stages.refused({"folder": str(folder)}, DataError, words)
    settings = {"folder": str(folder), "captions": str(folder / "splits")}
    stages.refused(settings, SourceError, "no captions; expected files CLASS/IMAGE.txt")
    settings["captions"] = str(folder / "splits" / "testclasses.txt")
    stages.refused(settings, SourceError, "neither a folder nor a complete")
    (folder / "splits" / "seen_test_images.txt").unlink()
    stages.refused({"folder": str(folder)}, ConfigError, "sources.cub: 'seen_test': not found")
