"""Features, scene graphs and shards joined from parts are those made in one go, byte for byte."""

import shutil
from functools import cache

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import fails, printed
from PIL import Image
from tiny_data import make_data, write_table
from workspace import stages_run

from manymatch.config.params import Extraction
from manymatch.datasets.base import CAPTIONS
from manymatch.features import BACKBONES
from manymatch.features.extract import extract
from manymatch.features.extractors import Extractor
from manymatch.features.layout import Layout, chunk_places
from manymatch.features.writer import FeatureWriter
from manymatch.scene_graphs import parse
from manymatch.scene_graphs.parser import load_model
from manymatch.shards.index import read_index
from manymatch.util.errors import DataError
from manymatch.util.parts import Part, Parts

HALVES = (Part(2, 2), Part(1, 2))
LOAD_MODEL = cache(load_model)
PIXELS = "pixels8"
"""A backbone that reads and writes alone, without a network."""


@pytest.fixture(autouse=True)
def quick_models(monkeypatch):
    """Small pictures for features, and models that are loaded once."""
    monkeypatch.setitem(BACKBONES, PIXELS, "pixels")
    monkeypatch.setattr(parse, "load_model", LOAD_MODEL)


def pictures(folder, count):
    """A raw folder of small pictures under `folder`, beside its caption table."""
    rng = np.random.default_rng(0)
    (folder / "raw").mkdir(parents=True)
    rows = []
    for number in range(count):
        name = f"{number}.png"
        pixels = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "raw" / name, compress_level=1)
        row = {"image_id": f"i{number}", "caption_id": f"c{number}", "split": "train"}
        rows.append({**row, "caption": "x", "file": name, "labels": []})
    write_table(folder / "captions.parquet", rows, CAPTIONS)
    return folder


def extracted(dataset, part=None, backbone=PIXELS):
    store = dataset / "features.h5"
    parts = Parts(dataset / "parts", part)
    tables = dataset / "raw", dataset / "captions.parquet"
    extract(backbone, *tables, store, Extraction(batch_size=4, device="cpu"), parts=parts)
    return store


def content(path):
    """Everything that HDF5 itself sees in a store."""
    with h5py.File(path) as file:
        result = {f"attribute {name}": bytes(value) for name, value in file.attrs.items()}
        return {**result, **{name: file[name][()].tobytes() for name in file}}


def test_features_in_parts(tmp_path, monkeypatch):
    """Made on two machines: one copies the images, whose times of change are then others."""
    dataset, there = pictures(tmp_path / "a", 4), pictures(tmp_path / "b", 4)
    store = extracted(dataset, backbone="lite0")
    whole, seen = store.read_bytes(), content(store)
    store.unlink()
    extracted(dataset, Part(1, 2), "lite0")
    extracted(there, Part(2, 2), "lite0")
    (part,) = (there / "parts").iterdir()
    part.rename(dataset / "parts" / part.name)
    assert not store.exists()
    monkeypatch.setattr(Extractor, "run", None)
    extracted(dataset, backbone="lite0")
    assert content(store) == seen and {"features", "boxes", "image_id"} < seen.keys()
    assert store.read_bytes() == whole
    assert list((dataset / "parts").iterdir()) == []


def test_a_damaged_part_of_features_is_named_and_those_of_other_images_are_not_joined(
    tmp_path, capsys
):
    dataset = pictures(tmp_path, 4)
    for part in HALVES:
        extracted(dataset, part)
    (path,) = (dataset / "parts").glob("2-of-2-*")
    with h5py.File(path) as file:
        place = chunk_places(file, "features")[1]
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"2-of-2-\w+: image 'i3': wrong checksum"):
        extracted(dataset)
    assert not (dataset / "features.h5").exists()
    Image.new("RGB", (8, 6), "red").save(dataset / "raw" / "3.png")
    changed = extracted(dataset).read_bytes()
    assert "ignored" in capsys.readouterr().err
    extracted(dataset, Part(2, 2))
    assert extracted(dataset).read_bytes() == changed
    assert "joining 2 parts" in capsys.readouterr().err


THINGS = ("dog", "cat", "bird", "car", "boat", "tree", "ball", "chair") * 2
LINES = [
    "A man holds two balls near a red dog.",
    "A man holds three balls near a red dog.",
    "Two girls sit on a bench.",
    "A black cat sleeps.",
    "It is.",
]


def captions(folder, lines):
    path = folder / "captions.parquet"
    ids = [f"c{number}" for number in range(len(lines))]
    pq.write_table(pa.table({"caption_id": ids, "caption": lines}), path)
    return path


def parsed(path, part=None):
    table = path.with_name("graphs.parquet")
    parts = Parts(path.with_name("parts"), part)
    parse.parse_captions(path, table, "en_core_web_sm", 1, 2, parts=parts)
    return table


def test_scene_graphs_in_parts(tmp_path, monkeypatch, capsys):
    long = "A man sees " + ", ".join(f"a {thing}" for thing in THINGS) + "."
    path = captions(tmp_path, [*LINES, long, LINES[0]])
    whole = parsed(path).read_bytes()
    lost = capsys.readouterr().err.splitlines()[-1]
    assert "beyond the limits, left out: " in lost
    parsed(path).unlink()
    for part in HALVES:
        parsed(path, part)
    with monkeypatch.context() as patch:
        patch.setattr(parse, "_parsing", None)
        assert parsed(path).read_bytes() == whole
    assert capsys.readouterr().err.splitlines()[-1] == lost
    for part in HALVES:
        parsed(path, part)
    captions(tmp_path, [*LINES[:-1], "A cat sleeps."])
    assert pq.read_table(parsed(path))["names"].to_pylist()[-1] == ["cat"]
    assert "ignored" in capsys.readouterr().err


@pytest.fixture
def data(tmp_path):
    return make_data(tmp_path, {"train": 24, "validation": 8, "test": 3})


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_shards_in_parts(data, capsys):
    whole = files(data.write_shards(5))
    assert len(whole) == 5 + 2 + 1 + 2
    for part in (Part(3, 3), Part(1, 3), Part(2, 3)):
        data.write_shards(5, part=part)
    shards = [len(list(part.glob("*.tar"))) for part in sorted(data.parts.iterdir())]
    assert shards == [3, 3, 2]
    assert files(data.write_shards(5)) == whole
    assert "joining 3 parts" in capsys.readouterr().err and list(data.parts.iterdir()) == []


def test_damaged_shards_and_those_of_other_sizes_or_features_are_not_joined(data, capsys):
    for part in HALVES:
        data.write_shards(5, part=part)
    shard = sorted(data.parts.glob("1-of-2-*/*.tar"))[0]
    shard.write_bytes(shard.read_bytes().replace(b"dog", b"cat"))
    with pytest.raises(DataError, match=r"damaged.*Remove") as fault:
        data.write_shards(5)
    assert str(shard) in str(fault.value) and not data.shards.exists()
    data.write_shards(6)
    assert "ignored" in capsys.readouterr().err
    assert read_index(data.shards).split("train").shard_images == [6, 6, 6, 6]
    ids = dict.fromkeys(pq.read_table(data.captions)["image_id"].to_pylist())
    layout = Layout([*ids], 1, 8, attributes={"backbone": "other"})
    with FeatureWriter(data.store, layout) as writer:
        for row in range(35):
            writer.write(row, np.full((1, 8), row, np.float16))
    data.write_shards(5)
    assert "ignored" in capsys.readouterr().err
    assert read_index(data.shards).attributes == {"backbone": "other"}


@pytest.mark.slow
def test_the_stages_of_the_pipeline_join_what_the_commands_made(
    finished, tmp_path, monkeypatch, capfd
):
    """Through the command line and `dvc repro`: the outputs are those of one go."""
    workspace = finished.clone(tmp_path / "clone")
    for room in ("code", "raw", "captions", "features"):
        shutil.copytree(finished.folder / "data" / room, workspace.folder / "data" / room)
    monkeypatch.chdir(workspace.folder)
    for stage, command in (
        ("scene_graphs", "scene-graphs scenes"),
        ("shards", "shards scenes lite0"),
    ):
        for number in (1, 2):
            printed(*command.split(), "--part", f"{number}/2")
        output = workspace.run("dvc", "repro", "--single-item", stage)
        assert output.count("joining 2 parts") == len(stages_run(output)) == 1
    parts = workspace.folder / "data" / "parts"
    assert [path for path in parts.rglob("*") if path.is_file()] == []
    assert _outs(workspace) == _outs(finished)
    assert "--part 0/2: expected K/N" in fails(f"{command} --part 0/2", monkeypatch, capfd)


def _outs(workspace):
    """The content of the three stages' outputs."""
    folders = (workspace.folder / "data" / room for room in ("features", "scene_graphs", "shards"))
    result = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(workspace.folder)): path.read_bytes() for path in result}
