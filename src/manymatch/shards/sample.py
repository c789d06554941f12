"""One image of a shard with all its captions, and its conversion to and from bytes."""

import contextlib
import io
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.scene_graph import MAX_ATTRIBUTES, NO_GRAPH, SceneGraph
from manymatch.scene_graphs.verbs import GraphReader, as_parsed
from manymatch.shards.fetch import RawSample
from manymatch.util.errors import DataError

JSON, FEATURES, BOXES, THUMBNAIL = "json", "features.npy", "boxes.npy", "jpg"
_STORED = {"float16": "<f2", "float32": "<f4", "uint8": "|u1"}


@dataclass(frozen=True)
class Sample:
    """An image with its captions and its n real regions.

    `features (n, F)` have a type of `features.layout`, `boxes (n, 4)` float32; `thumbnail` is a
    JPEG. `key` is the name of the sample in the shard, unique within the split.
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
    members = {JSON: _json(sample), FEATURES: npy_bytes(sample.features)}
    if sample.boxes is not None:
        members[BOXES] = npy_bytes(sample.boxes)
    if sample.thumbnail is not None:
        members[THUMBNAIL] = sample.thumbnail
    return members


def _json(sample: Sample) -> bytes:
    return orjson.dumps(
        {
            "image_id": sample.image_id,
            "file": sample.file,
            "labels": sample.labels,
            "captions": sample.captions,
        }
    )


def npy_bytes(array: np.ndarray) -> bytes:
    """The array as a `.npy` file, which `array_from` reads."""
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
    width: int,
    where: str,
    dtype: str = "float16",
    draw: Callable[[list[Any]], Sequence[Any]] = tuple,
    graphs: GraphReader | None = as_parsed,
) -> Sample:
    """The sample that the members contain, with the captions that `draw` takes from all of them.

    `graphs` reads the parsed graphs; with None each caption has `NO_GRAPH`. If the members do not
    fit, a `DataError` names the sample.
    """
    with _faults(raw, where):
        if not {JSON, FEATURES} <= raw.keys():
            raise ValueError("cut off")
        value = orjson.loads(raw[JSON])
        features = array_from(raw[FEATURES], _STORED[dtype], width)
        boxes = array_from(raw[BOXES], "<f4", 4) if BOXES in raw else None
        if not len(features) or (boxes is not None and len(boxes) != len(features)):
            raise ValueError("no regions, or boxes that do not match the features")
        if not value["captions"]:
            raise ValueError("no caption")
        return Sample(
            key=_key(raw),
            image_id=_text(value["image_id"]),
            file=_text(value["file"]),
            labels=tuple(value["labels"]),
            captions=tuple(_caption(entry, graphs) for entry in draw(value["captions"])),
            features=features,
            boxes=boxes,
            thumbnail=raw.get(THUMBNAIL),
        )


def labels_of(raw: RawSample, where: str) -> tuple[str, list[int], list[str]]:
    """Image id, labels and captions of a sample, of which only the member `JSON` is needed."""
    with _faults(raw, where):
        value = orjson.loads(raw[JSON])
        labels = [operator.index(label) for label in value["labels"]]
        return _text(value["image_id"]), labels, [_text(one["text"]) for one in value["captions"]]


def _key(raw: RawSample) -> str:
    return raw["__key__"].decode(errors="replace")


@contextlib.contextmanager
def _faults(raw: RawSample, where: str) -> Iterator[None]:
    """A fault of the members in the block is a `DataError` that names the sample."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{where}: sample '{_key(raw)}' cannot be used ({type(error).__name__}: {error}). "
            "Run the stage 'shards' again"
        ) from None


def _caption(entry: Mapping[str, Any], graphs: GraphReader | None) -> CaptionEntry:
    graph = NO_GRAPH
    if graphs:
        parsed = SceneGraph.from_dict(entry["graph"])
        check_graph(parsed)
        graph = graphs(parsed)
    return CaptionEntry(_text(entry["id"]), _text(entry["text"]), graph)


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


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {value!r:.40}")
    return value


def array_from(data: bytes, dtype: str, width: int) -> np.ndarray:
    """A (n, width) array from `.npy` bytes. Nothing is unpickled; the header allocates nothing."""
    start = 10 + int.from_bytes(data[8:10], "little")
    shape, fortran, stored = _header(data[:start])
    if fortran or stored != np.dtype(dtype) or len(shape) != 2 or shape[1] != width:
        raise ValueError(f"array {stored} {shape} instead of {dtype} (n, {width})")
    return np.frombuffer(data, dtype, offset=start).reshape(shape)


@lru_cache(maxsize=256)
def _header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    stream = io.BytesIO(header)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an unknown version of the array format")
    return np.lib.format.read_array_header_1_0(stream)
