"""COCO's faulty files, one line each, and COCO from the web."""

import json
import shutil
import zipfile

import made_coco as made
import numpy as np
import pytest
from made_coco import expected, table
from served_sources import served_sources

from manymatch.util.errors import ConfigError, DataError, ManyMatchError, SourceError


@pytest.fixture
def folder(tmp_path):
    """A folder with images, to which tests add texts."""
    folder = tmp_path / "given"
    made.write_images(folder / "images")
    return folder


def test_no_captions_and_no_images_say_what_to_do(folder, stages, tmp_path):
    line = stages.refused({"folder": str(folder)}, ConfigError, "'captions': not found under its")
    assert str(folder) in line
    made.write_karpathy(folder)
    settings = {"captions": str(folder / "dataset_coco.json")}
    line = stages.refused(settings, ConfigError, "params.yaml: sources.coco: 'images': set it to")
    assert "without_images: true" in line
    settings = {"captions": settings["captions"], "folder": str(tmp_path / "none")}
    stages.refused(settings, SourceError, "is not a folder here")


def karpathy(change):
    """Karpathy's file with a change of the image at place 1."""

    def spoil(folder):
        value = made.karpathy()
        change(value["images"][1])
        (folder / made.KARPATHY).write_text(json.dumps(value))

    return spoil


def beside_karpathy(name, content):
    def spoil(folder):
        made.write_karpathy(folder)
        (folder / name).write_bytes(content)

    return spoil


def ids(value, name="coco_dev_ids.npy"):
    """COCO's own files with other ids; without a value, without the file."""

    def spoil(folder):
        made.write_annotations(folder)
        made.write_ids(folder / "ids")
        (folder / "ids" / name).unlink()
        if value is not None:
            np.save(folder / "ids" / name, value)

    return spoil


def doubled(kind, part, **changes):
    """COCO's own files, with the first element of a list again at the end, with changes."""

    def spoil(folder):
        made.write_annotations(folder)
        made.write_ids(folder / "ids")
        path = folder / "annotations" / f"captions_{part}.json"
        value = json.loads(path.read_text())
        value[kind].append(value[kind][0] | changes)
        path.write_text(json.dumps(value))
        return {"instances": None}

    return spoil


def mapping(change):
    def spoil(folder):
        made.write_precomp(folder / "precomp", mapping=folder)
        path = folder / "id_mapping.json"
        path.write_text(change(path.read_text()))

    return spoil


def precomp(name, change):
    def spoil(folder):
        made.write_precomp(folder / "precomp")
        path = folder / "precomp" / name
        path.write_text(change(path.read_text()))
        return {"without_images": True}

    return spoil


def archive_without_the_file(folder):
    with zipfile.ZipFile(folder / "coco.zip", "w") as opened:
        opened.writestr("readme.txt", "hello")


INSTANCES = b'{"annotations": [{"id": 1, "image_id": 77, "category_id": 3}]}'
FAULTS = [
    (archive_without_the_file, "expected one file dataset_coco.json"),
    (ids(np.array([1.5])), "expected a vector of whole numbers, found float64"),
    (ids(np.array([{}])), "not an array: "),
    (ids(None, "coco_restval_ids.npy"), "coco_restval_ids.npy: no such file"),
    (doubled("annotations", "val2014", id=960), "second caption with the id 960"),
    (doubled("images", "val2014", id=4), "a second image with the id 4: "),
    (doubled("images", "val2014", file_name="x.jpg"), "a second image with the id 3: x.jpg"),
    (beside_karpathy("instances_val2014.json", INSTANCES), "no image with captions has categ"),
    (beside_karpathy("images/000000000004.jpg", b"again"), "the same image exists twice"),
    (mapping(lambda text: text.replace('"7"', '"8"')), "no file of the image '7'"),
    (mapping(lambda text: text.replace("{", '{"7": "a", "7": "b", ')), "key '7' occurs twice"),
    (karpathy(lambda image: image.pop("cocoid")), "images[1]: expected 'cocoid'"),
    (
        karpathy(lambda image: image["sentences"][1].pop("sentid")),
        "[1].sentences[1]: expected 'sentid'",
    ),
    (karpathy(lambda image: image.update(cocoid="4")), "'cocoid' of type int, found '4'"),
    (karpathy(lambda image: image.update(split="dev")), "unknown split 'dev'"),
    (precomp("dev_caps.txt", lambda text: text + "more\n"), "6 lines; expected 5 for each"),
    (precomp("dev_caps.txt", lambda text: text.replace("\n", "\n\n", 1)), "dev_caps.txt:2: an e"),
    (precomp("dev_ids.txt", lambda text: text + "8\n9\n"), "3 ids do not fit 5 captions"),
    (precomp("testall_ids.txt", lambda text: "9\n" * 4 + "5\n" * 6), "the id of another image"),
    (
        precomp("train_caps.txt", lambda text: text.replace(made.text(4, 0), "b'A cat .'")),
        "printed",
    ),
    (precomp("train_ids.txt", lambda text: "4\n4\n"), "a second caption '4#0'"),
]


@pytest.mark.parametrize(("spoil", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_a_fault_is_one_line(folder, stages, spoil, words):
    stages.refused({"folder": str(folder)} | (spoil(folder) or {}), ManyMatchError, words)


def test_everything_from_the_last_mirrors(folder, server, stages):
    """The names in params.yaml; earlier mirrors serve half of each file."""
    good = folder / "good"
    good.mkdir()
    made.write_karpathy(good, "caption_datasets.zip")
    made.write_annotations(good, "annotations_trainval2014.zip")
    for part in ("train2014", "val2014"):
        shutil.make_archive(str(good / part), "zip", folder / "images", part)
    half = served_sources("coco", folder, server.url, lambda content: content[: len(content) // 2])
    rows = stages(half)
    assert table(rows) == expected() and rows[0]["labels"] == [1, 4, 90]
    assert not (stages.raw.parent / ".downloads" / "coco").exists()


def test_without_instances_who_has_the_captions_goes_on(folder, server, stages, capsys):
    made.write_karpathy(folder)
    settings = {"folder": str(folder), "instances": f"{server.url}/none.zip"}
    rows = stages(settings)
    assert table(rows) == expected() and rows[0]["labels"] == []
    assert "HTTP 404" in (message := capsys.readouterr().err)
    assert "going on without labels of the images: PMRP will not be computed" in message
    (folder / "images" / "none.zip").write_text("damaged")
    settings["instances"] = str(folder / "images" / "none.zip")
    stages.refused(settings, DataError, "none.zip: not valid JSON")
    del settings["folder"]
    settings["images"] = str(folder / "images")
    settings["captions"] = f"{server.url}/{made.KARPATHY}"
    settings["instances"] = f"{server.url}/none.zip"
    stages.refused(settings, SourceError, "none.zip: HTTP 404")
