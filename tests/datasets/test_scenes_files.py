"""The files of `scenes` are complete, deterministic, and independent of the number of images."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from manymatch.datasets import scenes as scenes_module
from manymatch.datasets.scenes import Scenes, ScenesSettings
from manymatch.scenes.forms import Form, Pattern
from manymatch.util.errors import DataError

SETTINGS = ScenesSettings(seed=3, train=9, validation=12, test=13, image_size=64)


def made(folder, **changes):
    folder.mkdir()
    Scenes().download(SETTINGS.model_copy(update=changes), folder)
    return folder


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    return made(tmp_path_factory.mktemp("scenes") / "raw")


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_all_files_are_there(raw):
    scenes = rows(raw / "scenes.jsonl")
    assert [row["split"] for row in scenes] == ["train"] * 9 + ["validation"] * 12 + ["test"] * 13
    assert len(list((raw / "images").iterdir())) == len(scenes)
    for caption in Scenes().captions(raw):
        with Image.open(raw / caption.file) as image:
            assert image.size == (64, 64)


def test_boxes_stand_in_the_order_of_objects(raw):
    table = pq.read_table(raw / "boxes.parquet").to_pylist()
    for scene, row in zip(rows(raw / "scenes.jsonl"), table, strict=True):
        assert row["image_id"] == scene["image_id"]
        boxes = np.array(row["boxes"])
        assert boxes.shape == (len(scene["objects"]), 4)
        assert (boxes >= 0).all() and (boxes <= 1).all()
        for a, name, b in scene["relations"]:
            if name == "left of":
                assert boxes[a][2] <= boxes[b][0]


def test_relevance_lists_every_true_pair_but_the_own_ones(raw):
    relevance = Scenes().relevance(raw)
    assert relevance.complete
    expected = set()
    for split in ("train", "validation", "test"):
        scenes = [row for row in rows(raw / "scenes.jsonl") if row["split"] == split]
        inside = {row["image_id"] for row in scenes}
        for caption in rows(raw / "captions.jsonl"):
            if caption["image_id"] not in inside:
                continue
            pattern = Pattern(Form.from_dict(caption["form"]))
            for scene in scenes:
                relations = frozenset(map(tuple, scene["relations"]))
                true = pattern.true_of(scene["background"], scene["objects"], relations)
                if scene["image_id"] == caption["image_id"]:
                    assert true
                elif true:
                    expected.add((scene["image_id"], caption["caption_id"]))
    assert set(relevance.pairs) == expected
    assert len(list(relevance.pairs)) == len(expected) > 0


def test_the_seed_decides_about_all_bytes(raw, tmp_path):
    assert contents(made(tmp_path / "again")) == contents(raw)
    assert rows(made(tmp_path / "other", seed=4) / "captions.jsonl") != rows(raw / "captions.jsonl")


def test_images_do_not_depend_on_how_many_follow(raw, tmp_path):
    larger = made(tmp_path / "larger", train=12)
    for name, count in (("scenes.jsonl", 9), ("captions.jsonl", 45)):
        assert rows(larger / name)[:count] == rows(raw / name)[:count]
    for index in range(9):
        name = f"images/{index:06d}.jpg"
        assert (larger / name).read_bytes() == (raw / name).read_bytes()


@pytest.mark.slow
def test_several_processes_write_the_same_bytes(raw, tmp_path, monkeypatch):
    pairs = list(Scenes().relevance(raw).pairs)
    monkeypatch.setattr(scenes_module, "_MIN_IMAGES_FOR_PROCESSES", 1)
    monkeypatch.setattr(scenes_module, "_CAPTIONS_PER_JOB", 40)
    several = made(tmp_path / "several")
    assert contents(several) == contents(raw)
    assert list(Scenes().relevance(several).pairs) == pairs


def changed(key, value):
    """The first line with another value, or without the key."""

    def change(lines):
        row = json.loads(lines[0])
        row.pop(key) if value is None else row.update({key: value})
        return [json.dumps(row), *lines[1:]]

    return change


DAMAGES = {
    "not UTF-8": (lambda lines: [lines[0], "\udcff"], "jsonl:2: .* not UTF-8"),
    "nested": (lambda lines: ["[" * 100_000, *lines[1:]], "jsonl:1: not JSON"),
    "list": (lambda lines: ["[1]", *lines[1:]], "jsonl:1: expected 'image_id'"),
    "no key": (changed("image_id", None), "jsonl:1: expected 'image_id'"),
    "no file": (None, "jsonl: no such file"),
}


@pytest.mark.parametrize("file", ["scenes.jsonl", "captions.jsonl"])
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_one_line(raw, tmp_path, file, name):
    damage, words = DAMAGES[name]
    for other in ("scenes.jsonl", "captions.jsonl"):
        (tmp_path / other).write_bytes((raw / other).read_bytes())
    if damage is None:
        (tmp_path / file).unlink()
    else:
        lines = damage((raw / file).read_text().splitlines())
        (tmp_path / file).write_text("\n".join(lines), errors="surrogateescape")
    with pytest.raises(DataError, match=words) as caught:
        list(Scenes().captions(tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("scenes.jsonl", "objects", None),
        ("scenes.jsonl", "objects", [{"kind": "nothing"}]),
        ("scenes.jsonl", "relations", [[0, 1]]),
        ("captions.jsonl", "form", None),
        (
            "captions.jsonl",
            "form",
            {"background": None, "objects": [], "relations": [[0, "on", 5]]},
        ),
    ],
)
def test_a_damaged_graph_is_one_line(raw, tmp_path, file, key, value):
    for name in ("scenes.jsonl", "captions.jsonl"):
        lines = (raw / name).read_text().splitlines()
        test = [line for line in lines if '"image_id": "00003' in line]
        lines = changed(key, value)(test) if name == file else test
        (tmp_path / name).write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"damaged scene graph or form.*manymatch download"):
        list(Scenes().relevance(tmp_path).pairs)
