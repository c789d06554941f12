"""Features of models of transformers through the ordinary stages: two extractions of one kind,
shards, a training, an index of new pictures, and a search."""

import hub_detectors
import hub_models
import numpy as np
import pytest
import yaml
from command_line import printed as run
from PIL import Image

import manymatch
from manymatch.features.backbone import grid_boxes
from manymatch.features.store import FeatureStore
from manymatch.util.errors import CheckpointError

PRESET = {
    "method": "dive",
    "model": {
        "size": 16,
        "image": {"encoder": "linear"},
        "text": {"word_vectors": "learned", "word_size": 8, "pooling": "max"},
        "sets": {"size": 2, "iterations": 1, "heads": 1, "position_code": True},
        "margin": 0.1,
    },
    "training": {"epochs": 1, "images_per_batch": 16, "optimizer": {"name": "adam", "lr": 0.001}},
}
PIXELS = PRESET | {
    "features": "pixels_swin",
    "model": PRESET["model"]
    | {"image": {"encoder": "linear", "backbone": {"model": "swin", "train": "lora", "rank": 2}}},
}
REGIONS = {
    "method": "cora",
    "features": "boxes",
    "model": {"size": 16, "heads": 4, "word_vectors": "learned", "word_size": 8, "concept_size": 8},
    "training": {"epochs": 1, "images_per_batch": 4, "optimizer": {"name": "adam", "lr": 0.001}},
}


@pytest.fixture
def checkout(root, tmp_path, monkeypatch):
    """A folder with the committed settings, two tiny models of pictures, and small presets."""
    hub_models.save(tmp_path / "clip", "clip", hub_models.CROP)
    hub_models.save(tmp_path / "swin", "swin")
    hub_detectors.save(tmp_path / "detector")
    settings = yaml.safe_load((root / "params.yaml").read_text())
    settings["sources"]["scenes"] |= {"train": 8, "validation": 4, "test": 4}
    settings["extraction"] |= {
        "words": {"kind": "hf", "model": "clip", "output": "patches", "grid": 2, "layer": -2},
        "boxes": {
            "kind": "regions",
            "detector": "detector",
            "backbone": {"kind": "hf", "model": "swin"},
            "regions": 5,
        },
        "windows": {"kind": "hf", "model": "swin", "geometry": "squash", "size": 48},
        "pixels_swin": {"kind": "pixels", "model": "swin"},
    }
    settings |= {
        "datasets": ["scenes"],
        "presets": ["first", "second", "third", "fourth"],
        "ensembles": [],
    }
    settings |= {
        "features": ["words", "windows", "boxes", "pixels_swin"],
        "experiments": {},
        "warm_starts": {},
    }
    settings |= {"indexes": {"album": {"source": "pictures", "model": "scenes/first"}}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "presets" / "scenes").mkdir(parents=True)
    for name, features in (("first", "words"), ("second", "windows")):
        preset = PRESET | {"features": features}
        (tmp_path / "presets" / "scenes" / f"{name}.yaml").write_text(yaml.safe_dump(preset))
    for name, preset in (("third", REGIONS), ("fourth", PIXELS)):
        (tmp_path / "presets" / "scenes" / f"{name}.yaml").write_text(yaml.safe_dump(preset))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    Image.fromarray(pixels).save("pictures/new.png")
    return tmp_path


@pytest.mark.slow
def test_features_of_the_hub_go_the_whole_way(checkout):
    run("check")
    run("code")
    for stage in ("download", "captions", "scene-graphs"):
        run(stage, "scenes")
    made = ("words", "first"), ("windows", "second"), ("boxes", "third"), ("pixels_swin", "fourth")
    for features, preset in made:
        run("features", "scenes", features)
        run("shards", "scenes", features)
        run("train", "scenes", preset)
    run("evaluate", "scenes", "first")
    run("index", "pictures", "--model", "models/scenes/first", "--to", "album.index")
    run("search", "album.index", "a red ball")

    store = FeatureStore(checkout / "data/features/scenes/words.h5")
    assert store.attributes["backbone"] == "hf" and store.attributes["grid"] == "2"
    features, counts, boxes = store.read([0])
    assert features.shape == (1, 4, 16) and boxes is not None and counts.tolist() == [4]

    model = manymatch.load("models/scenes/first")
    picture = next((checkout / "data/raw/scenes").rglob(f"{store.image_ids[0]}.*"))
    item = next(iter(model._pictures.items([picture])))
    np.testing.assert_array_equal(item.features, features[0])
    np.testing.assert_array_equal(item.boxes, boxes[0])
    why = model.explain(picture, "a red ball")
    assert why.boxes == item.boxes.tolist() and np.shape(why.image_attention) == (2, 4)
    assert np.isfinite(model.encode_images(["pictures/new.png"]).vectors.numpy()).all()

    (checkout / "clip").rename("moved")
    moved = manymatch.load("models/scenes/first", image_weights="moved")
    np.testing.assert_array_equal(
        moved.encode_images([picture]).vectors, model.encode_images([picture]).vectors
    )
    other, _ = hub_models.save(checkout / "other", "dinov2", hub_models.CROP)
    with pytest.raises(CheckpointError, match="weights_sha256"):
        manymatch.load("models/scenes/first", image_weights=other).encode_images([picture])

    check_regions(checkout)
    check_pixels(checkout)


def check_regions(checkout):
    """New pictures of an index are detected, too; an explanation shows the boxes."""
    run("index", "pictures", "--model", "models/scenes/third", "--to", "third.index")
    run("search", "third.index", "a red ball")
    store = FeatureStore(checkout / "data/features/scenes/boxes.h5")
    features, counts, boxes = store.read([0])
    assert features.shape == (1, 5, 32) and boxes is not None
    model = manymatch.load("models/scenes/third")
    picture = next((checkout / "data/raw/scenes").rglob(f"{store.image_ids[0]}.*"))
    item = next(iter(model._pictures.items([picture])))
    np.testing.assert_array_equal(item.features, features[0, : counts[0]])
    np.testing.assert_array_equal(item.boxes, boxes[0, : counts[0]])
    assert model.explain(picture, "a red ball").boxes == item.boxes.tolist()
    (checkout / "detector").rename("moved_detector")
    moved = manymatch.load("models/scenes/third", image_weights="moved_detector,")
    np.testing.assert_array_equal(
        moved.encode_images([picture]).vectors, model.encode_images([picture]).vectors
    )
    hub_detectors.save(checkout / "other_detector", "rt_detr")
    with pytest.raises(CheckpointError, match="weights_sha256"):
        manymatch.load("models/scenes/third", image_weights="other_detector,swin").encode_images(
            [picture]
        )


def check_pixels(checkout):
    """A backbone in the loop: the model needs the folder of the backbone never again."""
    (checkout / "swin").rename("moved_swin")
    run("evaluate", "scenes", "fourth")
    run("index", "pictures", "--model", "models/scenes/fourth", "--to", "fourth.index")
    run("search", "fourth.index", "a red ball")
    store = FeatureStore(checkout / "data/features/scenes/pixels_swin.h5")
    features, _, _ = store.read([0])
    model = manymatch.load("models/scenes/fourth")
    picture = next((checkout / "data/raw/scenes").rglob(f"{store.image_ids[0]}.*"))
    item = next(iter(model._pictures.items([picture])))
    np.testing.assert_array_equal(item.features, features[0])
    why = model.explain(picture, "a red ball")
    assert np.shape(why.image_attention) == (2, 16)
    np.testing.assert_allclose(why.boxes, grid_boxes(4))  # the whole picture is seen
