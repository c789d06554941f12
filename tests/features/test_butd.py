"""The detector of bottom-up attention: names and shapes, operations against loops, regions."""

import hashlib
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from manymatch.config.params import Extraction
from manymatch.features import build_backbone
from manymatch.features.backbone import Sources
from manymatch.features.butd import ButdDetector, Limits, operations
from manymatch.features.butd.network import Convolution, Network, Sizes, load_network
from manymatch.features.extract import Detection, extract
from manymatch.features.image_list import ImageFile
from manymatch.features.store import FeatureStore
from manymatch.util.errors import ConfigError
from manymatch.util.files import sha256
from manymatch.util.images import read_image
from manymatch.util.parts import Parts
from manymatch.util.prefetch import map_ahead

SMALL = Sizes(blocks=(1, 2, 1, 2), stem=4, proposal_hidden=8, objects=7, attributes=5)
LIMITS = Limits(anchors=400, proposals=40)
CHECKPOINT = "100481290dbbca8b3b69fae006a56ca49f7bb3a5f24892141fbfc77b6229f61a"
"""The SHA-256 of the lines `NAME SHAPE` of the public checkpoint, sorted, without counters."""


def anchors():
    """Anchors of four sizes and three shapes around the origin."""
    sizes = torch.tensor([64.0, 128, 256, 512])[:, None] * torch.tensor([0.5, 1, 2]).sqrt()
    halves = torch.stack([sizes.flip(1), sizes], dim=-1).flatten(0, 1) / 2
    return torch.cat([-halves, halves], dim=1)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A file of weights with which features keep their scale and regions differ."""
    torch.manual_seed(0)
    network = Network(SMALL)
    for name, module in network.named_modules():
        if isinstance(module, Convolution):
            torch.nn.init.kaiming_normal_(module.weight)
            module.norm.weight.data.fill_(0.3 if name.endswith("conv3") else 1.0)
            module.norm.bias.data.normal_(0, 0.1)
            module.norm.running_mean.normal_(0, 0.1)
            module.norm.running_var.uniform_(0.8, 1.2)
    torch.nn.init.normal_(network.proposal_generator.rpn_head.anchor_deltas.weight, std=0.05)
    torch.nn.init.normal_(network.roi_heads.box_predictor.cls_score.weight, std=1.0)
    network.backbone.stem.conv1.norm.running_var.mul_(3e4)
    anchors_ = {"proposal_generator.anchor_generator.cell_anchors.0": anchors()}
    path = tmp_path_factory.mktemp("weights") / "pytorch_model.bin"
    torch.save(network.state_dict() | anchors_, path)
    return path


@pytest.fixture(scope="module")
def detector(weights):
    return ButdDetector(load_network("butd", str(weights), SMALL), 5, 20, "0", LIMITS)


def write_images(folder, sizes):
    images = []
    for number, size in enumerate(sizes):
        noise = np.random.default_rng(number).integers(0, 255, (6, 7, 3), dtype=np.uint8)
        path = folder / f"i{number}.png"
        Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC).save(path)
        images.append(ImageFile(f"i{number}", path))
    return images


def test_names_and_shapes_are_the_public_checkpoints():
    with torch.device("meta"):
        state = Network().state_dict()
    shapes = {name: tuple(value.shape) for name, value in state.items() if value.ndim}
    lines = "".join(f"{name} {shape}\n" for name, shape in sorted(shapes.items()))
    assert hashlib.sha256(lines.encode()).hexdigest() == CHECKPOINT


NAME = "roi_heads.box_predictor.fc_attr.bias"
OTHERS = [
    (lambda state: {key: value for key, value in state.items() if key != NAME}, f"lacks '{NAME}'"),
    (lambda state: state | {NAME: torch.zeros(3)}, rf"'{NAME}' is \(3,\), not \(32,\)"),
    (lambda state: state | {NAME: torch.full((32,), torch.nan)}, "contains NaN or infinity"),
    (lambda state: {"a": Path("code")}, "not a file of torch.save"),
    (lambda state: {1: torch.zeros(1)}, "no tensors by name"),
    (None, "pytorch_model.bin of unc-nlp"),
]


@pytest.mark.parametrize(("content", "words"), OTHERS)
def test_other_weights_are_refused(weights, tmp_path, content, words):
    path = tmp_path / "other.bin"
    if callable(content):
        torch.save(content(torch.load(weights, weights_only=True)), path)
    elif content:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as fault:
        load_network("butd", None if content is None else str(path), SMALL)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize("form", ["bin", "safetensors without counters"])
def test_folding_the_norms_keeps_the_function(weights, tmp_path, form):
    plain, path = Network(SMALL).eval(), weights
    state = torch.load(weights, weights_only=True)
    plain.load_state_dict(state)
    if form != "bin":
        path = tmp_path / "model.safetensors"
        save_file({key: value for key, value in state.items() if "num_batches" not in key}, path)
    folded = load_network("butd", str(path), SMALL)
    pixels = 50 * torch.randn(1, 3, 70, 99)
    with torch.inference_mode():
        maps = plain.backbone(pixels)
        torch.testing.assert_close(folded.backbone(pixels), maps, rtol=1e-4, atol=1e-4)
    assert maps.shape == (1, 64, math.ceil(70 / 16), math.ceil(99 / 16)) and maps.std() > 0.1


def random_boxes(count, seed=0, width=130, height=90):
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(count, 2, 2, generator=generator).sort(dim=1).values
    return (points * torch.tensor([width, height])).flatten(1)


def overlap(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return shared / (sum(areas) - shared)


def suppressed_by_loop(result, scores, threshold):
    kept = []
    for i in sorted(range(len(result)), key=lambda i: -float(scores[i])):
        if all(overlap(result[i].tolist(), result[k].tolist()) <= threshold for k in kept):
            kept.append(i)
    return kept


@pytest.fixture(params=["ours", "torchvision"])
def library(request, monkeypatch):
    """Our own functions, and those of torchvision if it is there."""
    theirs = None
    if request.param == "torchvision":
        theirs = pytest.importorskip("torchvision", exc_type=(ImportError, RuntimeError)).ops
    monkeypatch.setattr(operations, "fast", theirs)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7])
def test_suppression_is_the_loop_also_in_every_class_at_once(threshold):
    result = random_boxes(60).double()
    scores = torch.rand(60, 6, generator=torch.Generator().manual_seed(1)).round(decimals=1)  # ties
    stays = operations.surviving(result, scores, threshold)
    for number in range(6):
        expected = suppressed_by_loop(result, scores[:, number], threshold)
        assert 1 < len(expected) < 60
        assert stays[:, number].nonzero().flatten().tolist() == sorted(expected)
        for most in (0, 3, 100):
            kept = operations.suppress(result, scores[:, number], threshold, most)
            assert kept.tolist() == expected[:most]
    assert operations.suppress(result[:0], scores[:0, 0], threshold, 3).tolist() == []


def pooled_by_loop(maps, result, size, scale):
    channels, height, width = maps.shape
    out = torch.zeros(len(result), channels, size, size)
    for k, box in enumerate(result):
        x1, y1, x2, y2 = (math.floor(float(v) * scale + 0.5) for v in box)
        tall, wide = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for i in range(size):
            for j in range(size):
                top, bottom = y1 + i * tall // size, y1 - (-(i + 1) * tall // size)
                left, right = x1 + j * wide // size, x1 - (-(j + 1) * wide // size)
                cells = maps[:, min(top, height) : min(bottom, height), left : min(right, width)]
                if cells.numel():
                    out[k, :, i, j] = cells.amax(dim=(1, 2))
    return out


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("height", "width", "size"), [(6, 9, 4), (40, 30, 4), (1, 1, 7), (17, 5, 2)]
)
def test_pooling_is_the_loop(height, width, size):
    maps = torch.randn(3, height, width, generator=torch.Generator().manual_seed(3))
    result = random_boxes(25, width=16 * width, height=16 * height)
    result = torch.cat([result, torch.tensor([[0.0, 0, 16 * width, 16 * height], [8, 8, 24, 24]])])
    expected = pooled_by_loop(maps, result, size, 1 / 16)
    pooled = torch.cat(list(operations.pool_regions(maps, result, size, 1 / 16, 10)))
    torch.testing.assert_close(pooled, expected, rtol=0, atol=0)


def test_anchors_stand_on_every_cell_and_move_by_their_deltas():
    grid = operations.anchor_grid(torch.tensor([[-8.0, -4, 8, 4], [-2, -2, 2, 2]]), 2, 3, 16)
    assert grid.shape == (12, 4)
    assert grid[2 * (1 * 3 + 2)].tolist() == [32 - 8, 16 - 4, 32 + 8, 16 + 4]
    deltas = torch.tensor([[0.5, -0.25, math.log(2), 0], [0, 0, 100, 0]])
    moved = operations.moved(torch.tensor([[10.0, 10, 30, 20], [10, 10, 26, 20]]), deltas)
    assert moved[0].tolist() == pytest.approx([10, 7.5, 50, 17.5])
    assert float(moved[1, 2] - moved[1, 0]) == pytest.approx(1000)  # growth has a limit
    assert operations.clipped(moved, 15, 40)[0].tolist() == pytest.approx([10, 7.5, 40, 15])


def test_on_a_gpu_a_missing_torchvision_is_said_in_one_line(weights, capsys, monkeypatch):
    monkeypatch.setattr(operations, "fast", None)
    network = load_network("butd", str(weights), SMALL)
    for device in ("cpu", "meta"):
        Detection("butd", ButdDetector(network, 5, 20, "0", LIMITS), torch.device(device))
        said = capsys.readouterr().err
        assert said.count("torchvision is missing") == said.count("\n") == (device == "meta")


IMAGES = [(80, 60), (60, 80), (200, 30), (64, 64), (3, 400)]


def test_images_of_any_size_give_the_same_together_and_alone(detector, tmp_path):
    images = write_images(tmp_path, IMAGES)
    run = Detection("butd", detector, torch.device("cpu"))
    together = list(run.run(images))
    assert [image for image, *_ in together] == images
    threads = map_ahead(run._detect, map(run._decode, images), depth=1, threads=2)  # on a GPU
    alone = [next(run.run([image])) for image in reversed(images)][::-1]
    for (_, *expected), (_, *threaded), (_, *single) in zip(together, threads, alone, strict=True):
        for one, other, another in zip(expected, threaded, single, strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(one, another)
        features, boxes = expected
        assert features.shape[1] == 128 and 5 <= len(features) <= 20
        assert boxes.min() >= 0 and boxes.max() <= 1 and (boxes[:, :2] < boxes[:, 2:]).all()


def test_a_region_has_the_features_of_its_box(detector, tmp_path):
    image = read_image(write_images(tmp_path, [(80, 60)])[0].source)
    pixels = detector.prepare(image)
    assert pixels.shape == (3, 600, 800)
    found, boxes = detector.detect(pixels)
    corners = torch.from_numpy(boxes[2:3]) * torch.tensor([800, 600, 800, 600])
    with torch.inference_mode():
        maps = detector.network.backbone(pixels[None])[0]
        pooled = pooled_by_loop(maps, corners, 14, 1 / 16)
        features = detector.network.roi_heads.res5(pooled).mean((2, 3))
    np.testing.assert_allclose(found[2], features[0], rtol=1e-3, atol=1e-3)


def test_the_fewest_and_the_most_are_kept(detector):
    for impossible in ((0, 36), (37, 36), (36, 301)):
        with pytest.raises(ConfigError, match="1 <= fewest <= most <= 300"):
            ButdDetector(detector.network, *impossible, "0")
    pixels = detector.prepare(np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8))
    for score, count in ((0.0, 20), (0.999999, 5)):
        limits = replace(LIMITS, score=score)
        features, _ = ButdDetector(detector.network, 5, 20, "0", limits).detect(pixels)
        assert len(features) == count


def test_pixels_are_blue_green_red_less_their_means(detector):
    image = np.zeros((30, 50, 3), np.uint8)
    image[:, :, 0] = 200
    pixels = detector.prepare(image)
    assert pixels.shape == (3, 600, 1000)
    assert pixels[:, 5, 5].tolist() == pytest.approx([-102.9801, -115.9465, 200 - 122.7717])


def test_extraction_stores_regions_and_boxes(weights, tmp_path, monkeypatch):
    """Through the backbone as it is built by its name."""
    images = write_images(tmp_path, IMAGES[:3])
    rows = [{"image_id": image.image_id, "file": image.source.name} for image in images]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "captions.parquet")
    monkeypatch.setattr(
        "manymatch.features.butd.load_network", lambda *of: load_network(*of, SMALL)
    )
    places = tmp_path, tmp_path / "captions.parquet", tmp_path / "butd.h5"
    settings = Extraction(weights=str(weights), regions=(5, 20), batch_size=1, device="cpu")
    extract("butd", *places, settings, parts=Parts(tmp_path / "parts"))
    with FeatureStore(tmp_path / "butd.h5") as store:
        features, counts, result = store.read([1])
        assert store.attributes["backbone"] == "butd" and store.max_regions == 20
        assert store.attributes["weights_sha256"] == sha256(weights)
    built = build_backbone("butd", Sources(tmp_path, settings))
    _, expected, places = next(Detection("butd", built, torch.device("cpu")).run(images[1:2]))
    assert counts.tolist() == [len(expected)] and result is not None
    np.testing.assert_allclose(features[0, : counts[0]], expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(result[0, : counts[0]], places)
