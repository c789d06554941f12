"""COCO in every common form, through the two stages."""

import json
import shutil

import made_coco as made
import numpy as np
import pytest
from dataset_stages import split_of
from made_coco import expected, table

from manymatch.features.image_list import list_images
from manymatch.shards.write import PictureFiles
from manymatch.util.errors import DataError


@pytest.fixture
def folder(tmp_path):
    """A folder with images, to which tests add texts."""
    folder = tmp_path / "given"
    made.write_images(folder / "images")
    return folder


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


@pytest.mark.parametrize("archive", [None, "annotations_trainval2014.zip"])
def test_cocos_own_files_in_the_order_of_the_ids(folder, stages, archive):
    made.write_annotations(folder, archive)
    made.write_ids(folder / "ids")
    rows = stages({"folder": str(folder)})
    assert table(rows) == expected()
    labels = {row["image_id"]: row["labels"] for row in rows}
    assert labels == {"9": [1, 9, 90], "5": [], "3": [1, 3, 90], "7": [1, 7, 90], "4": [1, 4, 90]}


@pytest.mark.parametrize("ids", ["image", "caption"])
def test_a_precomp_folder_and_its_mapping(tmp_path, stages, ids):
    """VSE-infinity's layout: the mapping is in the parent of the captions' folder."""
    folder = tmp_path / "given"
    made.write_precomp(folder / "precomp", ids, mapping=folder)
    made.write_images(folder / "images")
    rows = stages({"folder": str(folder)})
    assert table(rows) == expected(ids=False)
    assert rows[-1]["file"] == "images/val2014/COCO_val2014_000000000005.jpg"


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
    assert PictureFiles(stages.raw).thumbnail(rows[0]["file"], 10) is None
    with pytest.raises(DataError, match=r"extraction\.FEATURES\.published\.coco in params\.yaml"):
        list_images(tmp_path / "table", stages.raw)
