"""Flickr30K in every common form, through the two stages."""

import gzip
import json
import zipfile

import pytest
from dataset_stages import split_of
from served_sources import served_sources

from manymatch.util.errors import ConfigError, DataError, SourceError

SPLITS = {"train": ["10", "30"], "val": ["20"], "test": ["15", "40"]}
NAMES = {"train": "train", "val": "validation", "test": "test"}
CAPTIONS = 5
FILES = sorted(f"{image}.jpg" for images in SPLITS.values() for image in images)


def text(image, number):
    return f"Caption {number} of {image} ."


@pytest.fixture
def folder(tmp_path):
    """A folder with images, to which tests add texts."""
    folder = tmp_path / "given"
    (folder / "flickr30k-images").mkdir(parents=True)
    for name in FILES:
        (folder / "flickr30k-images" / name).write_bytes(b"picture")
    return folder


def karpathy():
    images = [
        {
            "filename": name,
            "imgid": number,
            "split": split,
            "sentences": [
                {"raw": text(name[:-4], k), "sentid": CAPTIONS * number + k}
                for k in range(CAPTIONS)
            ],
        }
        for number, name in enumerate(FILES)
        for split, images in SPLITS.items()
        if name[:-4] in images
    ]
    return json.dumps({"images": images, "dataset": "flickr30k"})


def write_precomp(folder, ids=True):
    folder.mkdir()
    for split, images in SPLITS.items():
        name = "dev" if split == "val" else split
        lines = [text(image, k) for image in images for k in range(CAPTIONS)]
        (folder / f"{name}_caps.txt").write_text("\n".join(lines) + "\n")
        if ids:
            numbers = [str(FILES.index(f"{image}.jpg")) for image in images]
            (folder / f"{name}_ids.txt").write_text("\n".join(numbers) + "\n")


def write_multi30k(folder):
    folder.mkdir()
    for split, images in SPLITS.items():
        name = "test_2016" if split == "test" else split
        (folder / f"{name}_images.txt").write_text("".join(f"{image}.jpg\n" for image in images))
        for k in range(CAPTIONS):
            lines = "".join(text(image, k) + "\n" for image in images)
            (folder / f"{name}.{k + 1}.en.gz").write_bytes(gzip.compress(lines.encode()))


def expected():
    return [
        (image, NAMES[split], f"{image}.jpg#{k}", text(image, k), f"images/{image}.jpg")
        for split, images in SPLITS.items()
        for image in images
        for k in range(CAPTIONS)
    ]


def table(rows):
    keys = ("image_id", "split", "caption_id", "caption", "file")
    return [tuple(row[key] for key in keys) for row in rows]


def test_karpathys_archive(folder, stages):
    with zipfile.ZipFile(folder / "caption_datasets.zip", "w") as opened:
        opened.writestr("dataset_coco.json", "{}")
        opened.writestr("flickr30k/dataset.json", karpathy())
    assert table(stages({"folder": str(folder)})) == expected()
    assert not (stages.raw / "images").exists()


def test_multi30k_beside_a_folder_without_all_splits(folder, stages):
    write_multi30k(folder / "multi30k_task2")
    write_precomp(folder / "f30k_precomp")
    (folder / "f30k_precomp" / "train_caps.txt").unlink()
    assert table(stages({"folder": str(folder)})) == expected()


@pytest.mark.parametrize("spoil", [lambda whole: whole[:-9], lambda whole: b"<html>Sign in</html>"])
def test_captions_from_the_last_mirror(folder, server, stages, spoil):
    """The names in params.yaml; earlier mirrors serve a part of the file, or a web page, and no
    checksum is known."""
    (folder / "good").mkdir()
    with zipfile.ZipFile(folder / "good" / "caption_datasets.zip", "w") as opened:
        opened.writestr("dataset_flickr30k.json", karpathy())
    settings = served_sources("flickr30k", folder, server.url, spoil)
    settings["captions"] |= {"size": None, "sha256": None}
    assert table(stages(settings | {"images": str(folder / "flickr30k-images")})) == expected()
    assert server.asked == ["/bad/0/caption_datasets.zip", "/good/caption_datasets.zip"]


def test_vse_infinitys_layout(folder, stages):
    write_precomp(folder / "precomp")
    (folder / "id_mapping.json").write_text(json.dumps(dict(enumerate(FILES))))
    assert table(stages({"folder": str(folder)})) == expected()


def test_scans_folder_alone_calls_images_by_karpathys_number(folder, stages):
    write_precomp(folder / "f30k_precomp")
    settings = {"captions": str(folder / "f30k_precomp"), "without_images": True}
    rows = stages(settings)
    assert list(split_of(rows)) == ["0", "3", "2", "1", "4"]
    assert [row["caption"] for row in rows] == [line[3] for line in expected()]


def test_missing_images_are_named_before_captions_are_downloaded(folder, stages, server):
    captions = {"url": f"{server.url}/dataset_flickr30k.json", "size": 36_000_000}
    words = "fill in the form that https://shannon.cs.illinois.edu/DenotationGraph/"
    stages.refused({"captions": captions}, ConfigError, words)
    stages.refused({"captions": captions, "folder": str(folder / "..")}, ConfigError, "'images'")
    images = str(folder / "missing.tar.gz")
    stages.refused({"captions": captions, "images": images}, SourceError, "missing.tar.gz")
    assert server.asked == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda content: gzip.compress(gzip.decompress(content) + b"more\n"), "3 captions, but"),
        (lambda content: content[:-6], "damaged or cut off"),
    ],
)
def test_faulty_multi30k(folder, stages, spoil, words):
    write_multi30k(folder / "multi30k_task2")
    path = folder / "multi30k_task2" / "train.3.en.gz"
    path.write_bytes(spoil(path.read_bytes()))
    assert "train.3.en.gz: " in stages.refused({"folder": str(folder)}, DataError, words)
    path.unlink()
    stages.refused({"folder": str(folder)}, SourceError, "train.3.en: no such file")
