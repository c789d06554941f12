"""Regions of a detector of transformers: its boxes, their crops, or one line."""

import shutil
from pathlib import Path

import hub_detectors
import hub_models
import numpy as np
import pytest
import torch
from hub_detectors import DETECTORS, built, processor_of, settings
from hub_models import PICTURES, PROCESSOR, edit, only_bin
from picture_place import Place
from PIL import Image

from manymatch.config.params import Extraction
from manymatch.features.extractors import Extractor
from manymatch.features.image_list import Picture
from manymatch.features.store import FeatureStore
from manymatch.util.errors import ConfigError
from manymatch.util.images import read_crops

CPU = torch.device("cpu")


def located(backbone, picture):
    return backbone.locate(backbone.prepare(picture)).boxes


def seen(backbone, picture):
    """What the detector's network sees."""
    return backbone._detector.scaled(backbone.prepare(picture)[1])


def theirs(family, model, picture, threshold=0.0):
    """transformers' own boxes and scores, best first, each box once and at least a pixel large."""
    processor = processor_of(family)
    inputs = processor([picture.source], return_tensors="pt")
    with torch.inference_mode():
        outputs = model(pixel_values=inputs["pixel_values"])
    result = processor.post_process_object_detection(outputs, threshold, [(1, 1)])[0]
    best = {}
    for score, box in zip(result["scores"].tolist(), result["boxes"].tolist(), strict=True):
        box = tuple(np.clip(np.float32(box), 0, 1).tolist())
        sides = np.multiply(np.subtract(box[2:], box[:2]), picture.source.size)
        if (sides >= 1).all():
            best[box] = max(score, best.get(box, 0))
    ranked = sorted(best, key=best.get, reverse=True)
    return np.reshape(ranked, (-1, 4)), [best[box] for box in ranked], inputs["pixel_values"]


@pytest.mark.parametrize("family", DETECTORS)
def test_boxes_are_those_of_transformers(family, tmp_path):
    """Pixels bit for bit; boxes above a score, best first, and their scores."""
    folder, model = hub_detectors.save(tmp_path / "model", family)
    scores = [score for picture in PICTURES for score in theirs(family, model, picture)[1]]
    score = float(np.median(scores))
    backbone = built(folder, score=score, nms=1.0, regions=99)
    found = 0
    for picture in PICTURES:
        boxes, scores, values = theirs(family, model, picture, score)
        assert seen(backbone, picture).equal(values)
        ours = located(backbone, picture)
        np.testing.assert_array_equal(ours[0], [0, 0, 1, 1])
        assert ours.shape == (1 + len(boxes), 4)
        np.testing.assert_allclose(ours[1:], boxes, atol=1e-5)
        own = backbone._detect("x", backbone.prepare(picture)[1])[1]
        assert all(abs(own - other).min() < 1e-5 for other in scores)
        found += len(boxes)
    assert found


@pytest.mark.parametrize(
    ("family", "size", "given"),
    [
        ("detr", (31, 70), {"size": 31, "max_size": 80}),
        ("yolos", (70, 333), {"size": {"shortest_edge": 67, "longest_edge": 111}}),
        ("rt_detr", (50, 40), {"size": {"max_height": 33, "max_width": 31}, "resample": 3}),
    ],
)
def test_pictures_of_any_shape_are_resized_as_transformers_does(family, size, given, tmp_path):
    folder, _ = hub_detectors.save(tmp_path / "model", family, **given)
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8))
    values = processor_of(family, **given)([image], return_tensors="pt")["pixel_values"]
    assert seen(built(folder), Picture("x", image)).equal(values)


def overlap(one, other):
    low, high = np.maximum(one[:2], other[:2]), np.minimum(one[2:], other[2:])
    shared = np.maximum(high - low, 0).prod()
    return shared / ((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - shared)


def test_overlapping_boxes_give_way_to_better_ones(tmp_path):
    """Against a loop over the boxes; the fewest regions are kept whatever their scores."""
    folder, model = hub_detectors.save(tmp_path / "model", "deformable_detr")
    boxes = theirs("deformable_detr", model, PICTURES[2])[0]
    kept = []
    for box in boxes:
        if all(overlap(box, better) <= 0.7 for better in kept):
            kept.append(box)
    assert 3 < len(kept) < len(boxes)
    for score, fewest, most, count in ((0.0, 1, 36, len(kept)), (0.0, 1, 3, 2), (1.0, 3, 36, 2)):
        ours = located(built(folder, score=score, regions=[fewest, most]), PICTURES[2])
        np.testing.assert_allclose(ours[1:], kept[:count], atol=1e-5)


def test_a_region_is_the_mean_of_its_backbones_cells(tmp_path):
    """Whatever the batch and the order; the whole picture comes first."""
    folder, _ = hub_detectors.save(tmp_path / "model", "rt_detr")
    vision, model = hub_models.save(tmp_path / "vision", "vit", hub_models.CROP)
    backbone = built(folder, score=0.0, backbone={"kind": "hf", "model": str(vision)})
    runs = [
        {image.image_id: (vectors, boxes) for image, vectors, boxes in extractor.run(images)}
        for batch, images in ((1, PICTURES), (64, PICTURES), (64, PICTURES[::-1]))
        for extractor in [Extractor("regions", backbone, CPU, batch)]
    ]
    for name, (vectors, boxes) in runs[0].items():
        assert len(vectors) == len(boxes) > 3
        for run in runs[1:]:
            np.testing.assert_array_equal(run[name][0], vectors)
            np.testing.assert_array_equal(run[name][1], boxes)
    box = runs[0]["1"][1][2]
    margin = 0.1 * (box[2:] - box[:2])
    crop = np.clip(np.concatenate([box[:2] - margin, box[2:] + margin]), 0, 1)[None]
    pixels = read_crops(PICTURES[1].source, crop, hub_models.SIZE)
    picture = Picture("x", Image.fromarray(pixels[0]))
    values = hub_models.pixel_values(hub_models.RECIPE, [picture])
    with torch.inference_mode():
        cells = model(pixel_values=values).last_hidden_state[0, 1:]
    np.testing.assert_allclose(runs[0]["1"][0][2], cells.mean(0), atol=1e-5)


def test_the_store_has_boxes_and_says_from_what_it_is_made(tmp_path):
    """A picture without detections still has the whole picture."""
    folder, _ = hub_detectors.save(tmp_path / "model")
    place = Place(tmp_path, 3)
    place.extract("x", settings=settings(folder, score=1.0))
    with FeatureStore(place.store) as store:
        features, counts, boxes = store.read(range(3))
        facts = dict(store.attributes)
    assert counts.tolist() == [1, 1, 1] and features.shape == (3, 36, 1280) and features[:, 0].any()
    np.testing.assert_array_equal(boxes[:, 0], [[0, 0, 1, 1]] * 3)
    assert facts.pop("preprocessing").startswith("detector: RGB")
    assert list(map(len, facts.pop("weights_sha256").split())) == [64, 64]
    assert facts == {
        "backbone": "regions",
        "detector": str(folder),
        "score": "1.0",
        "nms": "0.7",
        "regions": "1-36",
        "backbone.kind": "lite0",
        "backbone.size": "64",
    }


def backbone_instead(folder):
    hub_models.save(folder)


FAULTS = [
    (lambda folder: folder.rename(folder.parent / "other"), "neither a folder nor available"),
    (only_bin, "pickle"),
    (backbone_instead, "'vit' is no detector"),
    (lambda folder: (folder / PROCESSOR).unlink(), "preprocessor_config.json"),
    (edit("config.json", model_type="own", auto_map={}), "code of its repository"),
    (edit("config.json", decoder_layers=3), "lack parts"),
    (edit("config.json", d_model="many"), "cannot be opened"),
    (edit(PROCESSOR, image_processor_type="ViTImageProcessor"), "image processor"),
    (edit(PROCESSOR, do_resize=False), "do_resize"),
    (edit(PROCESSOR, size=[64, 64]), "none of the forms"),
    (edit(PROCESSOR, size={"height": 64, "width": 10**9}), "1..2048"),
    (edit(PROCESSOR, do_pad=True, pad_size={"height": 99, "width": 99}), "pad_size"),
    (edit(PROCESSOR, image_std=[0, 1, 1], do_normalize=True), "image_std"),
]


@pytest.fixture(scope="module")
def detector(tmp_path_factory):
    return hub_detectors.save(tmp_path_factory.mktemp("detector") / "model")[0]


@pytest.mark.parametrize(("damage", "words"), FAULTS)
def test_a_detector_that_cannot_be_used_is_one_line(damage, words, detector, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    folder = Path(shutil.copytree(detector, tmp_path / "model"))
    damage(folder)
    place = Place(tmp_path, 1)
    with pytest.raises(ConfigError) as caught:
        place.extract("x", settings=settings(folder))
    line = str(caught.value)
    assert words in line and str(folder) in line and "\n" not in line
    assert not place.store.parent.exists()


LITE = {"kind": "lite0"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "regions", "backbone": LITE}, "needs 'detector' and 'backbone'"),
        ({"kind": "regions", "detector": "x", "backbone": "lite0"}, "backbone"),
        ({"kind": "regions", "detector": "x", "backbone": LITE, "nms": 2}, "nms"),
        ({"kind": "regions", "detector": "x", "backbone": LITE, "regions": [9, 8]}, "regions"),
        ({"kind": "lite0", "detector": "x"}, "only kind regions"),
        ({"kind": "resnet50", "size": 128}, "lite0 or lite2"),
    ],
)
def test_settings_that_do_not_fit_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Extraction(**given)
