"""Features of models of transformers through the ordinary stages: two extractions of one kind,
shards, a training, an index of new pictures, and a search."""

from pathlib import Path

import hub_detectors
import hub_models
import numpy as np
import pytest
import yaml
from command_line import printed as run
from PIL import Image

import manymatch
from manymatch.features.store import FeatureStore
from manymatch.util.errors import CheckpointError

WORDS = {
    "method": "dive",
    "features": "words",
    "model": {
        "size": 16,
        "image": {"encoder": "linear"},
        "text": {"word_vectors": "learned", "word_size": 8, "pooling": "max"},
        "sets": {"size": 2, "iterations": 1, "heads": 1, "position_code": True},
        "margin": 0.1,
    },
    "training": {"epochs": 1, "images_per_batch": 16, "optimizer": {"name": "adam", "lr": 0.001}},
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
    }
    settings |= {
        "datasets": ["scenes"],
        "presets": ["first", "second"],
        "ensembles": [],
    }
    settings |= {
        "features": ["words", "boxes"],
        "experiments": {},
        "warm_starts": {},
    }
    settings |= {"indexes": {"album": {"source": "pictures", "model": "scenes/first"}}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "presets" / "scenes").mkdir(parents=True)
    for name, preset in (("first", WORDS), ("second", REGIONS)):
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
    for features, preset in (("words", "first"), ("boxes", "second")):
        run("features", "scenes", features)
        run("shards", "scenes", features)
        run("train", "scenes", preset)
    run("evaluate", "scenes", "first")

    model, picture, item = searched("first", "words")
    store = FeatureStore(checkout / "data/features/scenes/words.h5")
    assert store.attributes["backbone"] == "hf" and store.attributes["grid"] == "2"
    assert item.features.shape == (4, 16)
    why = model.explain(picture, "a red ball")
    assert why.boxes == item.boxes.tolist() and np.shape(why.image_attention) == (2, 4)
    assert np.isfinite(model.encode_images(["pictures/new.png"]).vectors.numpy()).all()
    (checkout / "clip").rename("moved")
    other, _ = hub_models.save(checkout / "other", "dinov2", hub_models.CROP)
    goes_with_its_weights_alone(model, "first", picture, "moved", other)

    model, picture, item = searched("second", "boxes")  # new pictures are detected, too
    assert item.features.shape[1] == 32
    assert model.explain(picture, "a red ball").boxes == item.boxes.tolist()
    (checkout / "detector").rename("moved_detector")
    hub_detectors.save(checkout / "other_detector", "rt_detr")
    others = "moved_detector,", "other_detector,swin"
    goes_with_its_weights_alone(model, "second", picture, *others)


def searched(preset, features):
    """The model, a picture and what the model reads of the picture, which is what the store has;
    an index of new pictures is made and searched."""
    run("index", "pictures", "--model", f"models/scenes/{preset}", "--to", f"{preset}.index")
    run("search", f"{preset}.index", "a red ball")
    store = FeatureStore(Path(f"data/features/scenes/{features}.h5"))
    vectors, counts, boxes = store.read([0])
    model = manymatch.load(f"models/scenes/{preset}")
    picture = next(Path("data/raw/scenes").rglob(f"{store.image_ids[0]}.*"))
    item = next(iter(model._pictures.items([picture])))
    np.testing.assert_array_equal(item.features, vectors[0, : counts[0]])
    if boxes is not None:
        np.testing.assert_array_equal(item.boxes, boxes[0, : counts[0]])
    return model, picture, item


def goes_with_its_weights_alone(model, preset, picture, moved, other):
    """Weights that were `moved` give the same vectors, and `other` weights are refused."""
    with pytest.raises(CheckpointError, match="weights_sha256"):
        manymatch.load(f"models/scenes/{preset}", image_weights=other).encode_images([picture])
    again = manymatch.load(f"models/scenes/{preset}", image_weights=moved)
    vectors = (one.encode_images([picture]).vectors for one in (again, model))
    np.testing.assert_array_equal(*vectors)
