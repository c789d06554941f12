"""COCO in every common form, through the two stages."""

import json
import shutil
import zipfile

import made_coco as made
import numpy as np
import pytest
from dataset_stages import split_of
from served_sources import served_sources

from manymatch.features.image_list import list_images
from manymatch.shards.write import Pictures
from manymatch.util.errors import ConfigError, DataError, SourceError


@pytest.fixture
def stages(stages_of):
    return stages_of("coco")


@pytest.fixture
def folder(tmp_path):
    """A folder with images, to which tests add texts."""
    folder = tmp_path / "given"
    made.write_images(folder / "images")
    return folder


def expected(ids=True):
    """Return (image, split, caption id, caption) of the whole table."""
    splits = {"train": "train", "restval": "train", "val": "validation", "test": "test"}
    return [
        (
            str(image),
            splits[made.IMAGES[image][0]],
            str(made.caption_id(image, k)) if ids else f"{image}#{k}",
            made.text(image, k),
        )
        for image in made.ORDER
        for k in range(made.CAPTIONS)
    ]


def table(rows):
    keys = ("image_id", "split", "caption_id", "caption")
    return [tuple(row[key] for key in keys) for row in rows]


def test_karpathys_file_and_images_that_are_used_where_they_lie(folder, stages):
    made.write_karpathy(folder)
    rows = stages({"folder": str(folder)})
    assert table(rows) == expected()
    assert rows[0]["file"] == "images/train2014/COCO_train2014_000000000004.jpg"
    assert rows[0]["labels"] == []
    assert not (stages.raw / "images").exists()
    paths = [image.source for image in list_images(stages.folder / "table", stages.raw)]
    assert paths[0] == folder / "images" / "train2014" / made.file_name(4)
    assert all(path.is_file() for path in paths) and len(paths) == 5


def test_of_more_captions_the_first_five_count(folder, stages):
    """Karpathy's file has up to seven captions; the other forms have five."""
    value = made.karpathy()
    more = [{"raw": f"One more {k} .", "sentid": 5000 + k} for k in range(2)]
    value["images"][0]["sentences"] += more
    (folder / made.KARPATHY).write_text(json.dumps(value))
    assert table(stages({"folder": str(folder)})) == expected()


@pytest.mark.parametrize(
    ("archive", "inside"),
    [("caption_datasets.zip", "dataset_coco.json"), ("coco.zip", "coco/dataset.json")],
)
def test_karpathys_archive(folder, stages, archive, inside):
    made.write_karpathy(folder, archive, inside)
    assert table(stages({"folder": str(folder)})) == expected()
    names = sorted(path.name for path in stages.raw.iterdir())
    assert names == ["dataset_coco.json", "images.json"]


@pytest.mark.parametrize("archive", [None, "annotations_trainval2014.zip"])
def test_cocos_own_files_in_the_order_of_the_ids(folder, stages, archive):
    made.write_annotations(folder, archive)
    made.write_ids(folder / "ids")
    rows = stages({"folder": str(folder)})
    assert table(rows) == expected()
    labels = {row["image_id"]: row["labels"] for row in rows}
    assert labels == {"9": [1, 9, 90], "5": [], "3": [1, 3, 90], "7": [1, 7, 90], "4": [1, 4, 90]}


def test_annotation_files_may_be_called_alike(folder, stages):
    made.write_annotations(folder)
    made.write_ids(folder / "ids")
    settings = {"folder": str(folder)}
    for kind in ("captions", "instances"):
        settings[kind] = []
        for part in ("train2014", "val2014"):
            path = folder / part / f"{kind}.json"
            path.parent.mkdir(exist_ok=True)
            (folder / "annotations" / f"{kind}_{part}.json").rename(path)
            settings[kind].append(str(path))
    rows = stages(settings)
    assert table(rows) == expected()
    assert rows[0]["labels"] == [1, 4, 90] and rows[-10]["labels"] == [1, 9, 90]


def test_instances_label_the_images_of_every_form(folder, stages):
    made.write_karpathy(folder)
    made.write_annotations(folder, "annotations_trainval2014.zip")
    rows = stages({"folder": str(folder)})
    assert table(rows) == expected()
    assert {tuple(row["labels"]) for row in rows if row["split"] == "test"} == {(1, 9, 90), ()}


@pytest.mark.parametrize("ids", ["image", "caption"])
def test_a_precomp_folder_and_its_mapping(tmp_path, stages, ids):
    """VSE-infinity's layout: the mapping is in the parent of the captions' folder."""
    folder = tmp_path / "given"
    made.write_precomp(folder / "precomp", ids, mapping=folder)
    made.write_images(folder / "images")
    rows = stages({"folder": str(folder)})
    assert table(rows) == expected(ids=False)
    assert rows[-1]["file"] == "images/val2014/COCO_val2014_000000000005.jpg"


def test_a_precomp_folder_alone_with_published_features(tmp_path, stages):
    """SCAN's layout: the large files beside the captions are not copied."""
    made.write_precomp(tmp_path / "coco_precomp")
    (tmp_path / "coco_precomp" / "train_ims.npy").write_bytes(bytes(1000))
    settings = {"captions": str(tmp_path / "coco_precomp"), "without_images": True}
    assert table(stages(settings)) == expected(ids=False)
    assert not list(stages.raw.rglob("*.npy"))


def test_without_ids_images_are_called_by_their_place(tmp_path, stages):
    made.write_precomp(tmp_path / "precomp", ids=None)
    rows = stages({"captions": str(tmp_path / "precomp"), "without_images": True})
    assert [row["caption"] for row in rows] == [line[3] for line in expected()]
    assert list(split_of(rows)) == ["train_0", "train_1", "validation_0", "test_0", "test_1"]


# Images


@pytest.mark.parametrize("zipped", [False, True])
def test_the_parts_side_by_side(folder, stages, zipped):
    for part in ("train2014", "val2014"):
        (folder / "images" / part).rename(folder / part)
        if zipped:
            shutil.make_archive(str(folder / part), "zip", folder, part)
            shutil.rmtree(folder / part)
    (folder / "images").rmdir()
    made.write_karpathy(folder)
    made.write_annotations(folder, "annotations_trainval2014.zip")
    rows = stages({"folder": str(folder)})
    assert table(rows) == expected()
    assert (stages.raw / "images").exists() == zipped


def test_links_in_the_users_folder_are_followed(folder, stages, tmp_path):
    """PCME's `trainval35k` is a folder of links."""
    linked = tmp_path / "trainval35k"
    linked.mkdir()
    for path in (folder / "images").rglob("*.jpg"):
        (linked / path.name).symlink_to(path)
    made.write_karpathy(folder)
    rows = stages({"folder": str(folder), "images": str(linked)})
    assert table(rows) == expected()


def test_the_2017_names_are_known(folder, stages, tmp_path):
    renamed = tmp_path / "2017"
    renamed.mkdir()
    for path in (folder / "images").rglob("*.jpg"):
        path.rename(renamed / path.name[-16:])
    made.write_karpathy(folder)
    rows = stages({"folder": str(folder), "images": str(renamed)})
    assert rows[0]["file"] == "images/000000000004.jpg" and table(rows) == expected()


def test_an_image_twice_in_the_folder_is_refused(folder, stages):
    made.write_karpathy(folder)
    (folder / "images" / "000000000004.jpg").write_bytes(b"again")
    words = "the same image exists twice"
    stages.refused({"folder": str(folder)}, DataError, words)


def test_a_missing_image_is_named_or_left_out_if_asked_for(folder, stages, capsys):
    made.write_karpathy(folder)
    missing = folder / "images" / "val2014" / made.file_name(5)
    missing.unlink()
    line = stages.refused(
        {"folder": str(folder)}, DataError, f"images/{missing.name} does not exist"
    )
    assert ".sentences[0]" in line and str(folder / "images" / missing.name) in line
    rows = stages({"folder": str(folder), "only_present": True})
    assert table(rows) == [row for row in expected() if row[0] != "5"]
    assert "left out 1 images" in capsys.readouterr().err


def test_only_present_captions_if_asked_for(folder, stages, capsys):
    made.write_annotations(folder)
    made.write_ids(folder / "ids")
    whole = np.load(folder / "ids" / "coco_test_ids.npy")
    np.save(folder / "ids" / "coco_test_ids.npy", np.append(whole, [77, 78]))
    words = "caption 77 is in none of the annotation files"
    stages.refused({"folder": str(folder)}, DataError, words)
    assert table(stages({"folder": str(folder), "only_present": True})) == expected()
    assert "left out 2 caption ids" in capsys.readouterr().err


def test_without_images_nothing_is_looked_for(folder, stages, tmp_path):
    made.write_karpathy(folder)
    settings = {"captions": str(folder / "dataset_coco.json"), "without_images": True}
    rows = stages(settings)
    assert table(rows) == expected()
    assert Pictures(stages.raw).thumbnail(rows[0]["file"], 10) is None
    with pytest.raises(DataError, match=r"extraction\.FEATURES\.published\.coco in params\.yaml"):
        list_images(tmp_path / "table", stages.raw)


# Faults


def test_no_captions_and_no_images_say_what_to_do(folder, stages, tmp_path):
    line = stages.refused({"folder": str(folder)}, ConfigError, "'captions': not found under its")
    assert str(folder) in line
    made.write_karpathy(folder)
    settings = {"captions": str(folder / "dataset_coco.json")}
    line = stages.refused(settings, ConfigError, "params.yaml: sources.coco: 'images': set it to")
    assert "without_images: true" in line
    settings = {"captions": settings["captions"], "folder": str(tmp_path / "none")}
    stages.refused(settings, SourceError, "is not a folder here")


def test_an_archive_without_the_file(folder, stages):
    with zipfile.ZipFile(folder / "coco.zip", "w") as opened:
        opened.writestr("readme.txt", "hello")
    stages.refused({"folder": str(folder)}, SourceError, "expected one file dataset_coco.json")


def test_ids_that_are_none_or_missing(folder, stages):
    made.write_annotations(folder)
    made.write_ids(folder / "ids")
    for value, words in (
        (np.array([1.5]), "expected a vector of whole numbers, found float64"),
        (np.array([[1]]), "expected a vector of whole numbers"),
        (np.array([{}]), "not an array: "),
    ):
        np.save(folder / "ids" / "coco_dev_ids.npy", value)
        stages.refused({"folder": str(folder)}, DataError, words)
    (folder / "ids" / "coco_restval_ids.npy").unlink()
    stages.refused({"folder": str(folder)}, SourceError, "coco_restval_ids.npy: no such file")


def doubled(kind, part, **changes):
    """The last element of a list again, with changes."""

    def spoil(files):
        elements = files[part][kind]
        elements.append(elements[0] | changes)

    return spoil


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (doubled("annotations", "val2014", id=960), "second caption with the id 960"),
        (doubled("annotations", "train2014", id=910), "second caption with the id 910"),
        (doubled("images", "val2014", id=4), "a second image with the id 4: "),
        (doubled("images", "val2014", file_name="x.jpg"), "a second image with the id 3: x.jpg"),
        (doubled("images", "val2014"), None),
        (doubled("annotations", "val2014"), None),
    ],
)
def test_ids_that_stand_twice(folder, stages, spoil, words):
    files = {part: made.annotations(part)["captions"] for part in ("train2014", "val2014")}
    spoil(files)
    (folder / "annotations").mkdir()
    for part, value in files.items():
        (folder / "annotations" / f"captions_{part}.json").write_text(json.dumps(value))
    made.write_ids(folder / "ids")
    settings = {"folder": str(folder), "instances": None}
    if words:
        stages.refused(settings, DataError, words)
    else:  # the same image or caption again
        assert table(stages(settings)) == expected()


def test_instances_of_other_images(folder, stages):
    made.write_karpathy(folder)
    value = {"annotations": [{"id": 1, "image_id": 77, "category_id": 3}]}
    (folder / "instances_val2014.json").write_text(json.dumps(value))
    words = "no image with captions has categories"
    stages.refused({"folder": str(folder)}, DataError, words)


def test_a_mapping_that_lacks_an_image(tmp_path, stages):
    folder = tmp_path / "given"
    made.write_precomp(folder / "precomp", mapping=folder)
    made.write_images(folder / "images")
    mapping = json.loads((folder / "id_mapping.json").read_text())
    del mapping["7"]
    (folder / "id_mapping.json").write_text(json.dumps(mapping))
    stages.refused({"folder": str(folder)}, DataError, "no file of the image '7'")
    text = (folder / "id_mapping.json").read_text().replace("{", '{"7": "a.jpg", "7": "b.jpg", ')
    (folder / "id_mapping.json").write_text(text)
    stages.refused({"folder": str(folder)}, DataError, "the key '7' stands twice")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda image: image.pop("cocoid"), "expected 'cocoid'"),
        (lambda image: image["sentences"][1].pop("sentid"), "sentences[1]: expected 'sentid'"),
        (lambda image: image.update(cocoid="4"), "expected 'cocoid' of type int, found '4'"),
        (lambda image: image.update(split="dev"), "unknown split 'dev'"),
    ],
)
def test_a_faulty_karpathy_file(folder, stages, spoil, words):
    value = made.karpathy()
    spoil(value["images"][1])
    (folder / "dataset_coco.json").write_text(json.dumps(value))
    assert "images[1]" in stages.refused({"folder": str(folder)}, DataError, words)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("dev_caps.txt", lambda text: text + "one more\n", "6 lines; expected 5 for each image"),
        ("dev_caps.txt", lambda text: text.replace("\n", "\n\n", 1), "dev_caps.txt:2: an empty"),
        ("dev_ids.txt", lambda text: text + "8\n9\n", "3 ids do not fit 5 captions"),
        ("testall_ids.txt", lambda text: "9\n" * 4 + "5\n" * 6, "the id of another image"),
        ("train_caps.txt", lambda text: text.replace(made.text(4, 0), "b'A cat .'"), "printed"),
        ("train_ids.txt", lambda text: "4\n4\n", "a second caption '4#0'"),
    ],
)
def test_a_faulty_precomp_folder(tmp_path, stages, name, change, words):
    made.write_precomp(tmp_path / "precomp")
    path = tmp_path / "precomp" / name
    path.write_text(change(path.read_text()))
    settings = {"captions": str(tmp_path / "precomp"), "without_images": True}
    stages.refused(settings, DataError, words)


# From the web


@pytest.mark.parametrize(
    "spoil", [lambda content: content[: len(content) // 2], lambda content: b"<html>Sign in</html>"]
)
def test_everything_from_the_last_mirrors(folder, server, stages, spoil):
    """The names in params.yaml; earlier mirrors serve half of each file, or a web page."""
    good = folder / "good"
    good.mkdir()
    made.write_karpathy(good, "caption_datasets.zip")
    made.write_annotations(good, "annotations_trainval2014.zip")
    for part in ("train2014", "val2014"):
        shutil.make_archive(str(good / part), "zip", folder / "images", part)
    rows = stages(served_sources("coco", folder, server.url, spoil))
    assert table(rows) == expected() and rows[0]["labels"] == [1, 4, 90]
    assert not (stages.raw.parent / ".downloads" / "coco").exists()


def test_only_the_missing_archive_of_images_is_downloaded(folder, server, stages):
    made.write_karpathy(folder)
    mine = folder / "mine"
    mine.mkdir()
    for part, target in (("train2014", mine), ("val2014", folder)):
        shutil.make_archive(str(target / part), "zip", folder / "images", part)
    sources = [f"{server.url}/{part}2014.zip" for part in ("train", "val")]
    settings = {"folder": str(mine), "images": sources, "captions": str(folder / made.KARPATHY)}
    assert table(stages(settings)) == expected()
    assert server.asked == ["/val2014.zip"]


def test_without_instances_who_has_the_captions_goes_on(folder, server, stages, capsys):
    made.write_karpathy(folder)
    settings = {"folder": str(folder), "instances": f"{server.url}/none.zip"}
    rows = stages(settings)
    assert table(rows) == expected() and rows[0]["labels"] == []
    assert "HTTP 404" in (message := capsys.readouterr().err)
    assert "going on without labels of the images: PMRP will not be computed" in message
    (folder / "images" / "none.zip").write_text("damaged")
    settings["instances"] = str(folder / "images" / "none.zip")
    stages.refused(settings, DataError, "none.zip:1: not valid JSON")
    del settings["folder"]
    settings["images"] = str(folder / "images")
    settings["captions"] = f"{server.url}/{made.KARPATHY}"
    settings["instances"] = f"{server.url}/none.zip"
    stages.refused(settings, SourceError, "none.zip: HTTP 404")


def test_a_path_comes_before_the_folder_and_the_folder_before_the_web(
    folder, server, stages, tmp_path
):
    made.write_karpathy(folder)
    settings = {"folder": str(folder), "captions": f"{server.url}/x", "images": f"{server.url}/y"}
    assert table(stages(settings)) == expected() and server.asked == []
    other = tmp_path / "other"
    other.mkdir()
    made.write_karpathy(other)
    (folder / "dataset_coco.json").write_text("nonsense")
    settings = {"folder": str(folder), "captions": str(other / "dataset_coco.json")}
    assert table(stages(settings)) == expected()
