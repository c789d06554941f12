"""A dataset of a few made-up images that a method can learn: tables, features, and their shards."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from manymatch.batch.scene_graph import SCHEMA
from manymatch.batch.vocabulary import Vocabulary
from manymatch.datasets.base import CAPTIONS
from manymatch.features.layout import Layout
from manymatch.features.writer import FeatureWriter
from manymatch.shards.write import Inputs, write_shards
from manymatch.util.parts import Parts

OBJECTS = ("dog", "cat", "bird", "car", "boat", "tree", "ball", "chair", "girl", "boy")
COLOURS = ("red", "blue", "green", "white", "black", "brown", "pink", "grey")
RELATIONS = ("above", "next to", "behind")
MADE_BY = {"backbone": "made up"}
SIZES = {"train": 24, "validation": 8, "test": 8}


class TinyData:
    """Where the inputs of the stage `shards` lie, and the shards made of them."""

    def __init__(self, folder):
        self.folder = folder
        self.captions, self.graphs = folder / "tiny.parquet", folder / "graphs.parquet"
        self.store, self.raw = folder / "grid.h5", folder / "raw"
        self.vocabulary = folder / "vocabulary.json"
        self.shards, self.parts = folder / "grid", folder / "parts"

    def write_shards(self, images_per_shard=10, thumbnail=16, part=None):
        paths = self.captions, self.graphs, self.store, self.raw
        inputs = Inputs(*paths, images_per_shard, thumbnail)
        write_shards(inputs, self.shards, parts=Parts(self.parts, part))
        return self.shards


def make_data(folder, sizes=SIZES, *, width=8, regions=4, captions=3, boxes=False, variable=False):
    """Write tables, store and pictures; `variable`: images have 1 to `regions` regions."""
    data = TinyData(folder)
    rng = np.random.default_rng(0)
    scenes = [_scene(split, n, rng) for split, count in sizes.items() for n in range(count)]
    rows = [row for scene in scenes for row in _captions(scene, captions, rng)]
    write_table(data.captions, [row for row, _ in rows], CAPTIONS)
    write_table(data.graphs, [graph for _, graph in rows], SCHEMA)
    Vocabulary.from_captions(row["caption"] for row, _ in rows if row["split"] == "train").save(
        data.vocabulary
    )
    counts = rng.integers(1, regions + 1, len(scenes)) if variable else [regions] * len(scenes)
    features = list(_features(scenes, counts, width, rng))
    places = [rng.random((count, 4), dtype=np.float32) for count in counts] if boxes else None
    names = [scene["image_id"] for scene in scenes]
    layout = Layout(names, regions, width, has_boxes=boxes, attributes=MADE_BY)
    with FeatureWriter(data.store, layout) as writer:
        for row, array in enumerate(features):
            writer.write(row, array, places[row] if places else None)
    for scene in scenes[::2]:  # the others show that a picture may be missing
        path = data.raw / scene["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (32, 48, 3), dtype=np.uint8)).save(path)
    return data


def paint(data, side, attributes=MADE_BY):
    """Replace the store by one of pixels: pictures whose colour tells their first object."""
    rng = np.random.default_rng(0)
    table = pq.read_table(data.captions, columns=["image_id", "labels"]).to_pylist()
    labels = {row["image_id"]: row["labels"][0] for row in table}
    layout = Layout(list(labels), side * side, 3, "uint8", attributes=attributes)
    with FeatureWriter(data.store, layout) as writer:
        for row, label in enumerate(labels.values()):
            colour = np.random.default_rng(label).integers(30, 220, 3)
            noise = rng.integers(-30, 30, (side * side, 3))
            writer.write(row, (colour + noise).astype(np.uint8))


def write_table(path, rows, schema):
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def _scene(split, number, rng):
    first, second = rng.choice(len(OBJECTS), 2, replace=False).tolist()
    colour, relation = int(rng.integers(len(COLOURS))), int(rng.integers(len(RELATIONS)))
    name = f"{split}.{number}"
    parts = (first, second, colour, relation)
    return {"split": split, "image_id": name, "file": f"images/{name}.jpg", "parts": parts}


def _captions(scene, count, rng):
    first, second, colour, relation = scene["parts"]
    subject, other = OBJECTS[first], OBJECTS[second]
    for number in range(count):
        caption_id = f"{scene['image_id']}#{number}"
        article = ("a", "the", "one")[int(rng.integers(3))]
        text = f"{article} {COLOURS[colour]} {subject} {RELATIONS[relation]} {article} {other}"
        row = {key: scene[key] for key in ("split", "image_id", "file")}
        graph = {
            "caption_id": caption_id,
            "objects": [subject, other],
            "names": [subject, other],
            "attributes": [[COLOURS[colour]], []],
            "relations": [{"subject": 0, "label": RELATIONS[relation], "object": 1}],
        }
        yield {**row, "caption_id": caption_id, "caption": text, "labels": [first]}, graph


def _features(scenes, counts, width, rng):
    """Regions that hold what the captions tell, with a little noise."""
    looks = rng.normal(size=(len(OBJECTS) + len(COLOURS), width))
    for scene, count in zip(scenes, counts, strict=True):
        first, second, colour, _ = scene["parts"]
        mean = looks[first] + looks[second] + looks[len(OBJECTS) + colour]
        yield (mean + 0.1 * rng.normal(size=(int(count), width))).astype(np.float16)
