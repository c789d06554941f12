"""`manymatch check` lists what is missing before anything runs, without a network."""

import re
import socket
from pathlib import Path

import pytest
import yaml

KEYS = {"presets": [], "features": []}
FORM = "params.yaml: sources.flickr30k: 'images': the images are given out after a form"


@pytest.fixture(autouse=True)
def offline(checkout, monkeypatch):
    """No network and no cache of the hub."""

    def no_network(*_):
        pytest.fail("asked the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(checkout / "hub"))


def settle(**changes):
    """Write settings into params.yaml; `a__b` is the key b in a."""
    params = yaml.safe_load(Path("params.yaml").read_text()) | KEYS
    for key, value in changes.items():
        *groups, last = key.split("__")
        group = params
        for name in groups:
            group = group.setdefault(name, {})
        group[last] = value
    Path("params.yaml").write_text(yaml.safe_dump(params))


@pytest.fixture
def shown(ends):
    """The lines of `manymatch check`, which exits with a code."""

    def lines(code):
        return [one for one in ends("check", code).err.splitlines() if "loading" not in one]

    return lines


def runs(dataset, *features, preset=None, **more):
    """The settings of a run."""
    return {
        "datasets": [dataset],
        "features": [*features],
        "presets": [preset] * bool(preset),
    } | more


LITE = {"kind": "lite0"}
PUBLISHED = {"format": "scan", "path": "/nowhere"}
BOXES = {"kind": "regions", "backbone": {"kind": "hf", "model": "./clip"}}
MISSING = [
    (runs("flickr30k"), [FORM]),
    (
        runs("flickr30k", sources__flickr30k__folder="."),
        ["'images': not found under its usual name in .; the images are given out after a form"],
    ),
    (
        runs("coco", sources__coco__images="coco.zip"),
        ["coco images: no such file or folder: coco.zip"],
    ),
    (
        runs("msrvtt", "howto100m"),
        [
            *(f"sources.msrvtt: '{name}'" for name in ("captions", "train", "test")),
            "extraction.howto100m.published.msrvtt: 'msrvtt' has no images",
        ],
    ),
    (
        runs("coco", "butd", extraction__butd__published={"coco": PUBLISHED}),
        ["extraction.butd.published.coco.path: no such file or folder: /nowhere"],
    ),
    (
        runs("flickr30k", "butd", preset="dive_butd_bigru"),
        [
            FORM,
            "extraction.butd.weights: not set. Set the key to pytorch_model.bin",
            "presets/flickr30k/dive_butd_bigru.yaml: model.text.glove_file: no such file or "
            "folder: data/raw/glove/glove.840B.300d.txt",
        ],
    ),
    (
        runs("youcook2", "howto100m", preset="swamp"),
        ["sources.youcook2", "published.youcook2", "youcook2/swamp.yaml: model.word2vec_file"],
    ),
    (
        runs("scenes", "resnet50", extraction__resnet50__weights="./weights.pth"),
        ["extraction.resnet50.weights: no such file or folder: ./weights.pth"],
    ),
    (
        runs("coco", "pixels512", preset="vse_infinity_resnext101_bert"),
        ["model.image.cnn.weights: no such file or folder: data/raw/weights/ig_resnext101"],
    ),
    (
        runs("mine", sources__mine={"kind": "own", "images": ".", "split": ["train.txt", "test"]}),
        ["sources.mine.split: no such file or folder: train.txt", "folder: test"],
    ),
    (
        runs("scenes", "boxes", extraction__boxes=BOXES | {"detector": "./detector"}),
        ["extraction.boxes.detector: no such folder, and no name on the hub: ./detector"],
    ),
    (
        runs("scenes", "boxes", extraction__boxes=BOXES | {"detector": "."}),
        ["extraction.boxes.backbone.model: no such folder, and no name on the hub: ./clip"],
    ),
    (
        runs("scenes", indexes={"mine": {"source": "photos", "model": "scenes/cora"}}),
        ["indexes.mine.model: there is no model models/scenes/cora", "indexes.mine.source: no"],
    ),
]
"""Settings, and the lines on what their user must get."""


@pytest.mark.parametrize(("changes", "expected"), MISSING)
def test_what_the_user_must_get_is_an_error_with_key_and_remedy(changes, expected, shown, ends):
    settle(**changes)
    lines = [line for line in shown(1) if "will be downloaded" not in line]
    assert lines[-1].startswith("error: ")
    faults = lines if len(expected) == 1 else lines[:-1]
    assert len(faults) == len(expected)
    for text in expected:
        assert sum(text in fault for fault in faults) == 1, lines
    settled = ends("check --settings", 0).err
    assert "all known" in settled and "downloaded" not in settled


def test_what_the_run_downloads_is_listed_with_sizes_and_is_no_error(shown):
    features = ["resnet152", "pixels256"]
    settle(datasets=["coco"], features=features, presets=["vsepp_resnet152_gru"])
    path = Path("presets/coco/vsepp_resnet152_gru.yaml")
    preset = yaml.safe_load(path.read_text())
    bert = {"encoder": "bert", "bert": {"weights": "bert-base-uncased"}}
    cnn = {"encoder": "linear", "cnn": {"backbone": "resnet152"}}
    model = {"method": "vse_infinity", "model": {"image": cnn, "text": bert}}
    path.write_text(yaml.safe_dump(preset | model))
    *lines, end = shown(0)
    assert [line.removeprefix("will be downloaded: ") for line in lines] == [
        "coco images (20,156 MB)",
        "coco captions (37 MB)",
        "coco instances (253 MB)",
        "weights microsoft/resnet-152 from the hub (242 MB)",
        "weights bert-base-uncased from the hub (440 MB)",
    ]
    assert end.endswith("all known")


def test_a_backbone_is_fetched_and_reads_pixels(shown):
    backbone = {"model": "google/siglip2-base-patch16-224"}
    preset = {"method": "vsepp", "features": "frozen", "model": {"backbone": backbone}}
    other = preset | {"model": {"backbone": backbone | {"size": 64}}}
    path, pixels = Path("presets/scenes/x.yaml"), {"kind": "pixels", **backbone}
    for frozen, content in ((LITE, preset), (pixels, other), (pixels, preset)):
        settle(**runs("scenes", "frozen", preset="x", extraction__frozen=frozen))
        path.write_text(yaml.safe_dump(content))
        if (frozen, content) != (pixels, preset):
            assert "kind: pixels, model: google/siglip2-base-patch16-224" in shown(1)[-1]
    *lines, _ = shown(0)
    assert any("weights google/siglip2-base-patch16-224 from the hub" in line for line in lines)


def test_what_is_there_is_not_missing(shown):
    settle(datasets=["flickr30k"], features=["butd"], presets=["dive_butd_bigru"])
    for folder in ("raw/flickr30k", "raw/glove", "features/flickr30k"):
        Path("data", folder).mkdir(parents=True)
    Path("data/raw/glove/glove.840B.300d.txt").touch()
    Path("data/features/flickr30k/butd.h5").touch()
    (line,) = shown(0)
    assert line.endswith("all known")
    settle(datasets=["scenes"], features=["lite0"], presets=["vsepp"])
    path = Path("presets/scenes/vsepp.yaml")
    preset = yaml.safe_load(path.read_text())
    preset["model"]["word_vectors"] = "glove"  # those of the package
    path.write_text(yaml.safe_dump(preset))
    assert "all known" in shown(0)[-1]


def test_a_plan_lists_what_a_published_row_needs(ends):
    before = Path("params.yaml").read_text()
    told = ends("plan flickr30k dive_butd_bigru", 0)
    missing = [line for line in told.err.splitlines() if line.startswith("missing: ")]
    for key in ("sources.flickr30k", "extraction.butd.weights", "model.text.glove_file"):
        assert any(key in line for line in missing), key
    for words in (
        "reproduced, 80 epochs",
        "will be downloaded: flickr30k captions",
        "hours of an A100 at 20% of its 312 TFLOP/s",
        "counted and never run, in 80 epochs of 145 steps",
        "took .8 to 9 times as long",
    ):
        assert words in told.err
    assert re.search(r"an estimated (less than )?[\d.]+ hours", told.err)
    assert "500.8" in told.out and "dvc repro evaluate@flickr30k-dive_butd_bigru" in told.out
    unknown = ends("plan coco pcmepp_clip_b16", 0).err
    for words in ("the hours of a GPU are", "the memory of a step is"):
        assert f"{words} not known: config.json of openai/clip" in unknown
    assert "no file is missing" in ends("plan scenes vsepp", 0).err
    assert "did you mean 'vsepp'" in ends("plan scenes vsep", 1).err
    preset = Path("presets/scenes/vsepp.yaml").read_text()
    Path("presets/scenes/imported.yaml").write_text(preset.replace("lite0", "own"))
    assert "missing: params.yaml: no entry 'extraction.own'" in ends("plan scenes imported", 0).err
    assert Path("params.yaml").read_text() == before
