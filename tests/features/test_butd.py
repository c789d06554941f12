"""The detector of bottom-up attention: names and shapes, operations against loops, regions."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from manymatch.features import build_backbone
from manymatch.features.backbone import Sources
from manymatch.features.butd import operations
from manymatch.features.butd.detector import ButdDetector, Limits
from manymatch.features.butd.network import Convolution, Network, Sizes, load_network
from manymatch.features.extract import Detection, extract
from manymatch.features.image_list import ImageFile
from manymatch.features.store import FeatureStore
from manymatch.util.errors import ConfigError
from manymatch.util.images import read_image
from manymatch.util.parts import Parts
from manymatch.util.prefetch import map_ahead

SMALL = Sizes(blocks=(1, 2, 1, 2), stem=4, proposal_hidden=8, objects=7, attributes=5)
LIMITS = Limits(anchors=400, proposals=40)


def convolution(name, outputs, inputs, size):
    norm = {f"{name}.norm.{part}": (outputs,) for part in ("weight", "bias")}
    norm |= {f"{name}.norm.running_{part}": (outputs,) for part in ("mean", "var")}
    return {f"{name}.weight": (outputs, inputs, size, size), **norm}


def stage(name, blocks, inputs, outputs):
    shapes = convolution(f"{name}.0.shortcut", outputs, inputs, 1)
    for number in range(blocks):
        block, inner = f"{name}.{number}", outputs // 4
        shapes |= convolution(f"{block}.conv1", inner, outputs if number else inputs, 1)
        shapes |= convolution(f"{block}.conv2", inner, inner, 3)
        shapes |= convolution(f"{block}.conv3", outputs, inner, 1)
    return shapes


LAYERS = {
    "roi_heads.box_predictor.cls_score": (1601, 2048),
    "roi_heads.box_predictor.bbox_pred": (6400, 2048),
    "roi_heads.box_predictor.fc_attr": (512, 2304),
    "roi_heads.box_predictor.attr_score": (401, 512),
    "proposal_generator.rpn_head.conv": (512, 1024, 3, 3),
    "proposal_generator.rpn_head.objectness_logits": (12, 512, 1, 1),
    "proposal_generator.rpn_head.anchor_deltas": (48, 512, 1, 1),
}


def published_shapes():
    """Names and shapes of the public checkpoint."""
    shapes = convolution("backbone.stem.conv1", 64, 3, 7)
    shapes |= stage("backbone.res2", 3, 64, 256) | stage("backbone.res3", 4, 256, 512)
    shapes |= stage("backbone.res4", 23, 512, 1024) | stage("roi_heads.res5", 3, 1024, 2048)
    shapes["proposal_generator.anchor_generator.cell_anchors.0"] = (12, 4)
    shapes["roi_heads.box_predictor.cls_embedding.weight"] = (1601, 256)
    for name, shape in LAYERS.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return shapes


def anchors():
    """Anchors of four sizes and three shapes around the origin."""
    sides = [
        (side / math.sqrt(ratio), side * math.sqrt(ratio))
        for side in (64, 128, 256, 512)
        for ratio in (0.5, 1, 2)
    ]
    return torch.tensor([[-w / 2, -h / 2, w / 2, h / 2] for w, h in sides])


def random_weights(sizes=None):
    """Return weights with which features keep their scale and regions differ."""
    torch.manual_seed(0)
    network = Network(sizes)
    for name, module in network.named_modules():
        if isinstance(module, Convolution):
            torch.nn.init.kaiming_normal_(module.weight)
            norm = module.norm
            norm.weight.data.fill_(0.3 if name.endswith("conv3") else 1.0)
            norm.bias.data.normal_(0, 0.1)
            norm.running_mean.normal_(0, 0.1)
            norm.running_var.uniform_(0.8, 1.2)
    torch.nn.init.normal_(network.proposal_generator.rpn_head.anchor_deltas.weight, std=0.05)
    torch.nn.init.normal_(network.roi_heads.box_predictor.cls_score.weight, std=1.0)
    network.backbone.stem.conv1.norm.running_var.mul_(3e4)
    state = network.state_dict()
    state["proposal_generator.anchor_generator.cell_anchors.0"] = anchors()
    return state


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    path = tmp_path_factory.mktemp("weights") / "pytorch_model.bin"
    torch.save(random_weights(SMALL), path)
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


# Weights


def test_names_and_shapes_are_the_public_checkpoints():
    with torch.device("meta"):
        state = Network().state_dict()
    result = {name: tuple(value.shape) for name, value in state.items()}
    counters = {name for name in result if name.endswith("num_batches_tracked")}
    assert {name: result[name] for name in result.keys() - counters} == published_shapes()


@pytest.mark.slow
def test_weights_of_right_names_and_shapes_load_and_give_regions(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    generator = torch.Generator().manual_seed(0)
    tensors = {
        name: torch.randn(shape, generator=generator) / math.sqrt(math.prod(shape[1:]) or 1)
        for name, shape in published_shapes().items()
    }
    torch.save(tensors, path)
    built = build_backbone("butd", Sources(tmp_path, str(path), (10, 100)))
    assert isinstance(built, ButdDetector)
    assert (built.width, built.max_regions) == (2048, 100)
    folded = built.network.backbone.res2[0].conv1
    name = "backbone.res2.0.conv1"
    expected = (
        tensors[f"{name}.norm.bias"]
        - tensors[f"{name}.norm.running_mean"]
        * tensors[f"{name}.norm.weight"]
        / (tensors[f"{name}.norm.running_var"] + 1e-5).sqrt()
    )
    torch.testing.assert_close(folded.bias, expected, equal_nan=True)


def refusal(path):
    with pytest.raises(ConfigError) as fault:
        load_network("butd", None if path is None else str(path), SMALL)
    assert "\n" not in str(fault.value)
    return str(fault.value)


def test_other_weights_are_refused(weights, tmp_path):
    state = torch.load(weights, weights_only=True)
    path, name = tmp_path / "other.bin", "roi_heads.box_predictor.fc_attr.bias"
    torch.save({key: value for key, value in state.items() if key != name}, path)
    assert f"lacks '{name}'" in refusal(path)
    torch.save({**state, "extra": torch.zeros(1)}, path)
    assert "has the unknown 'extra'" in refusal(path)
    torch.save({**state, name: torch.zeros(3)}, path)
    assert f"'{name}' is (3,), not (32,)" in refusal(path)
    torch.save({**state, name: torch.full((32,), torch.nan)}, path)
    assert f"'{name}' contains NaN or infinity" in refusal(path)
    torch.save({"a": Path("code")}, path)
    assert "not a file of torch.save" in refusal(path)
    for content in ([1], {"a": 1}, {1: torch.zeros(1)}):
        torch.save(content, path)
        assert "no tensors by name" in refusal(path)
    for content in (b"no weights", b"\x80\x02}q\x00h\x05."):
        path.write_bytes(content)
        assert "not a file of torch.save" in refusal(path)
    assert "no such file" in refusal(tmp_path / "none.bin")
    assert "pytorch_model.bin of unc-nlp" in refusal(None)


def test_counters_and_safetensors_do_not_matter(weights, tmp_path):
    from safetensors.torch import save_file

    state = torch.load(weights, weights_only=True)
    plain = {key: value for key, value in state.items() if "num_batches" not in key}
    save_file(plain, tmp_path / "model.safetensors")
    one = load_network("butd", str(tmp_path / "model.safetensors"), SMALL).state_dict()
    other = load_network("butd", str(weights), SMALL).state_dict()
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_folding_the_norms_keeps_the_function(weights):
    plain = Network(SMALL).eval()
    plain.load_state_dict(torch.load(weights, weights_only=True))
    folded = load_network("butd", str(weights), SMALL)
    pixels = 50 * torch.randn(1, 3, 70, 99)
    with torch.inference_mode():
        maps = plain.backbone(pixels)
        torch.testing.assert_close(folded.backbone(pixels), maps, rtol=1e-4, atol=1e-4)
    assert maps.shape == (1, 64, math.ceil(70 / 16), math.ceil(99 / 16))
    assert maps.std() > 0.1


@pytest.mark.parametrize("regions", [(0, 36), (37, 36), (36, 301)])
def test_impossible_numbers_of_regions_are_refused(weights, regions):
    network = load_network("butd", str(weights), SMALL)
    with pytest.raises(ConfigError, match="1 <= fewest <= most <= 300"):
        ButdDetector(network, *regions, "0")


# Operations against loops over their definitions


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


@pytest.fixture
def ours(monkeypatch):
    """Our own functions, also if torchvision is there."""
    monkeypatch.setattr(operations, "fast", None)


@pytest.mark.usefixtures("ours")
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7])
def test_suppression_is_the_loop(threshold):
    result = random_boxes(60).double()
    scores = torch.rand(60, generator=torch.Generator().manual_seed(1)).round(decimals=1)  # ties
    expected = suppressed_by_loop(result, scores, threshold)
    assert 1 < len(expected) < 60
    assert operations.suppress(result, scores, threshold, 100).tolist() == expected
    assert operations.suppress(result, scores, threshold, 3).tolist() == expected[:3]
    assert operations.suppress(result[:0], scores[:0], threshold, 3).tolist() == []


def test_suppression_in_every_class_is_the_loop_in_each():
    result = random_boxes(40).double()
    scores = torch.rand(40, 6, generator=torch.Generator().manual_seed(2)).round(decimals=1)
    stays = operations.surviving(result, scores, 0.3)
    for number in range(6):
        kept = suppressed_by_loop(result, scores[:, number], 0.3)
        assert stays[:, number].nonzero().flatten().tolist() == sorted(kept)


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


@pytest.mark.usefixtures("ours")
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


def test_ours_are_torchvisions(monkeypatch):
    theirs = pytest.importorskip("torchvision", exc_type=(ImportError, RuntimeError)).ops
    maps = torch.randn(5, 38, 63, generator=torch.Generator().manual_seed(4))
    result = random_boxes(300, width=1000, height=600)
    scores = torch.rand(300, 20, generator=torch.Generator().manual_seed(5))
    arguments = maps, result, 14, 1 / 16, 300
    monkeypatch.setattr(operations, "fast", None)
    pooled, survivors = (
        *operations.pool_regions(*arguments),
        operations.suppress(result, scores[:, 0], 0.7, 50),
    )
    assert torch.equal(pooled, theirs.roi_pool(maps[None], [result], 14, 1 / 16))
    assert torch.equal(survivors, theirs.nms(result, scores[:, 0], 0.7)[:50])
    stays = operations.surviving(result, scores, 0.3)
    for number in range(20):
        kept = theirs.nms(result, scores[:, number], 0.3)
        assert torch.equal(stays[:, number].nonzero().flatten(), kept.sort().values)


def test_anchors_stand_on_every_cell_and_move_by_their_deltas():
    grid = operations.anchor_grid(torch.tensor([[-8.0, -4, 8, 4], [-2, -2, 2, 2]]), 2, 3, 16)
    assert grid.shape == (12, 4)
    assert grid[2 * (1 * 3 + 2)].tolist() == [32 - 8, 16 - 4, 32 + 8, 16 + 4]
    deltas = torch.tensor([[0.5, -0.25, math.log(2), 0], [0, 0, 100, 0]])
    moved = operations.moved(torch.tensor([[10.0, 10, 30, 20], [10, 10, 26, 20]]), deltas)
    assert moved[0].tolist() == pytest.approx([10, 7.5, 50, 17.5])
    assert float(moved[1, 2] - moved[1, 0]) == pytest.approx(1000)  # growth has a limit
    assert operations.clipped(moved, 15, 40)[0].tolist() == pytest.approx([10, 7.5, 40, 15])


@pytest.mark.usefixtures("ours")
def test_on_a_gpu_a_missing_torchvision_is_said_in_one_line(weights, capsys):
    network = load_network("butd", str(weights), SMALL)
    for device in ("cpu", "meta"):
        Detection("butd", ButdDetector(network, 5, 20, "0", LIMITS), torch.device(device))
        said = capsys.readouterr().err
        assert said.count("torchvision is missing") == said.count("\n") == (device == "meta")


# Images to regions

IMAGES = [(80, 60), (60, 80), (200, 30), (64, 64), (3, 400)]


def test_images_of_any_size_give_the_same_together_and_alone(detector, tmp_path):
    images = write_images(tmp_path, IMAGES)
    run = Detection("butd", detector, torch.device("cpu"))
    together = {image.image_id: (features, result) for image, features, result in run.run(images)}
    assert list(together) == [image.image_id for image in images]
    in_threads = map_ahead(run._detect, map(run._decode, images), depth=1, threads=2)  # on a GPU
    for image, features, result in in_threads:
        np.testing.assert_array_equal(features, together[image.image_id][0])
        np.testing.assert_array_equal(result, together[image.image_id][1])
    for image in reversed(images):
        _, features, result = next(run.run([image]))
        np.testing.assert_array_equal(features, together[image.image_id][0])
        np.testing.assert_array_equal(result, together[image.image_id][1])
        assert features.shape[1] == 128 and 5 <= len(features) <= 20
        assert result.min() >= 0 and result.max() <= 1 and (result[:, :2] < result[:, 2:]).all()


def test_a_region_has_the_features_of_its_box(detector, tmp_path):
    image = read_image(write_images(tmp_path, [(80, 60)])[0].source)
    pixels = detector.prepare(image)
    assert pixels.shape == (3, 600, 800)
    regions = detector.detect(pixels)
    corners = torch.from_numpy(regions.boxes[2:3]) * torch.tensor([800, 600, 800, 600])
    with torch.inference_mode():
        maps = detector.network.backbone(pixels[None])[0]
        pooled = pooled_by_loop(maps, corners, 14, 1 / 16)
        features = detector.network.roi_heads.res5(pooled).mean((2, 3))
    np.testing.assert_allclose(regions.features[2], features[0], rtol=1e-3, atol=1e-3)


def test_the_fewest_and_the_most_are_kept(detector, weights):
    pixels = detector.prepare(np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8))
    network = load_network("butd", str(weights), SMALL)
    counts = {}
    for score in (0.0, 0.999999):
        limits = Limits(anchors=400, proposals=40, score=score)
        result = ButdDetector(network, 5, 20, "0", limits).detect(pixels)
        counts[score] = len(result.features)
    assert counts == {0.0: 20, 0.999999: 5}


def test_pixels_are_blue_green_red_less_their_means(detector):
    image = np.zeros((30, 50, 3), np.uint8)
    image[:, :, 0] = 200
    pixels = detector.prepare(image)
    assert pixels.shape == (3, 600, 1000)
    assert pixels[:, 5, 5].tolist() == pytest.approx([-102.9801, -115.9465, 200 - 122.7717])


def test_extraction_stores_regions_and_boxes(detector, tmp_path, monkeypatch):
    images = write_images(tmp_path, IMAGES[:3])
    rows = [{"image_id": image.image_id, "file": image.source.name} for image in images]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "captions.parquet")
    monkeypatch.setattr("manymatch.features.extract.build_backbone", lambda *_: detector)
    places = tmp_path, tmp_path / "captions.parquet", tmp_path / "butd.h5"
    extract("butd", *places, 1, "cpu", parts=Parts(tmp_path / "parts"))
    with FeatureStore(tmp_path / "butd.h5") as store:
        features, counts, result = store.read([1])
        assert store.attributes["backbone"] == "butd" and store.max_regions == 20
    _, expected, places = next(Detection("butd", detector, torch.device("cpu")).run(images[1:2]))
    assert counts.tolist() == [len(expected)] and result is not None
    np.testing.assert_allclose(features[0, : counts[0]], expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(result[0, : counts[0]], places)
