"""One image of a shard with all its captions, and its conversion to and from bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.scene_graph import MAX_ATTRIBUTES, NO_GRAPH, SceneGraph
from manymatch.scene_graphs.verbs import GraphReader, as_parsed
from manymatch.shards.fetch import RawSample

JSON, FEATURES, BOXES, THUMBNAIL = "json", "features.npy", "boxes.npy", "jpg"


@dataclass(frozen=True)
class Sample:
    """An image with its captions and its n real regions.

    `features (n, F)` are float16 (uint8 for pixels), `boxes (n, 4)` float32; `thumbnail` is a JPEG.
    `key` is the name of the sample in the shard, unique within the split.
    """

    key: str
    image_id: str
    file: str
    labels: tuple[int, ...]
    captions: tuple[CaptionEntry, ...]
    features: np.ndarray
    boxes: np.ndarray | None = None
    thumbnail: bytes | None = None


def encode(sample: Sample) -> dict[str, bytes]:
    """The members of the sample by suffix."""
    facts = {
        "image_id": sample.image_id,
        "file": sample.file,
        "labels": sample.labels,
        "captions": sample.captions,
    }
    members = {JSON: orjson.dumps(facts), FEATURES: npy_bytes(sample.features)}
    if sample.boxes is not None:
        members[BOXES] = npy_bytes(sample.boxes)
    if sample.thumbnail is not None:
        members[THUMBNAIL] = sample.thumbnail
    return members


def npy_bytes(array: np.ndarray) -> bytes:
    """The array as a `.npy` file."""
    array = np.ascontiguousarray(array)
    return b"".join((_npy_header(array.dtype.str, array.shape), array.data))


@lru_cache(maxsize=256)
def _npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    facts = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, facts)
    return stream.getvalue()


def decode(
    raw: RawSample,
    draw: Callable[[list[Any]], Sequence[Any]] = tuple,
    graphs: GraphReader | None = as_parsed,
) -> Sample:
    """The sample that the members contain, with the captions that `draw` takes from all of them.

    The seal of the shards says that the members are whole. `graphs` reads the parsed graphs; with
    None each caption has `NO_GRAPH`.
    """
    value = orjson.loads(raw[JSON])

    def caption(entry: Mapping[str, Any]) -> CaptionEntry:
        graph = graphs(SceneGraph.from_dict(entry["graph"])) if graphs else NO_GRAPH
        return CaptionEntry(entry["id"], entry["text"], graph)

    return Sample(
        key=raw["__key__"].decode(),
        image_id=value["image_id"],
        file=value["file"],
        labels=tuple(value["labels"]),
        captions=tuple(map(caption, draw(value["captions"]))),
        features=_array(raw[FEATURES]),
        boxes=_array(raw[BOXES]) if BOXES in raw else None,
        thumbnail=raw.get(THUMBNAIL),
    )


def check_graph(graph: SceneGraph) -> None:
    """Raise `ValueError` for a graph without objects or with relations to missing objects."""
    count = len(graph.objects)
    if not count or len(graph.names) != count or len(graph.attributes) != count:
        raise ValueError("a scene graph needs at least one object, each with name and attributes")
    if any(len(phrases) > MAX_ATTRIBUTES for phrases in graph.attributes):
        raise ValueError(f"more than {MAX_ATTRIBUTES} attributes at one object")
    for relation in graph.relations:
        if not (0 <= relation.subject < count and 0 <= relation.object < count):
            raise ValueError("a relation to an object that does not exist")


def _array(data: bytes) -> np.ndarray:
    """The array of `npy_bytes`, without a copy."""
    start = 10 + int.from_bytes(data[8:10], "little")
    shape, dtype = _header(data[:start])
    return np.frombuffer(data, dtype, offset=start).reshape(shape)


@lru_cache(maxsize=256)
def _header(header: bytes) -> tuple[tuple[int, ...], np.dtype]:
    stream = io.BytesIO(header)
    np.lib.format.read_magic(stream)
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    return shape, dtype
