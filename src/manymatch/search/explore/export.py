"""All images and captions of a split as one table, for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from manymatch.results.runs import Direction
from manymatch.search.explore.explorer import ITEMS, Explorer
from manymatch.util import files
from manymatch.util.errors import ConfigError, nearest


def write_export(explorer: Explorer, path: Path, vectors: Sequence[str]) -> int:
    """Write a row for each image and then for each caption, and return the number of rows.

    The columns are `kind`, `image` (its file), those of `Explorer.table`, and for each method
    `item_METHOD` (the id of the first item), `score_METHOD` (the first item's score), and
    `x_METHOD` and `y_METHOD`. Each method of `vectors` embeds the split anew and gives
    `vector_METHOD`; a set is the mean of its elements.

    Raises:
        ConfigError: a method of `vectors` is no trained model here.
    """
    for name in vectors:
        folder = explorer.layout.model(explorer.dataset, name)
        if name not in explorer.methods or not folder.is_dir():
            known = nearest(name, explorer.methods)
            raise ConfigError(f"--vectors: '{name}' is no trained model of these results{known}")
    sides = [_side(explorer, way) for way in ("i2t", "t2i")]
    for name in vectors:
        for side, part in zip(sides, _vectors(explorer, name), strict=True):
            ends = np.arange(len(part) + 1, dtype=np.int32) * part.shape[1]
            side[f"vector_{name}"] = pa.ListArray.from_arrays(ends, part.ravel())
    table = pa.concat_tables([pa.table(side) for side in sides], promote_options="permissive")
    with files.replacing(path) as partial:
        pq.write_table(table, partial)
    return len(table)


def _side(explorer: Explorer, way: Direction) -> dict[str, pa.Array]:
    """The columns of the images (`i2t`) or of the captions."""
    table = explorer.table(way)
    files = pa.array([str(explorer.image_file(row)) for row in range(len(explorer.captions_of))])
    found = {
        "kind": pa.array(["image" if way == "i2t" else "caption"] * len(table)),
        "image": files if way == "i2t" else files.take(pa.array(explorer.image_of)),
    }
    found |= {name: table[name] for name in table.column_names if name != "row"}
    for name, method in explorer.methods.items():
        ranked, points = method.ways[way], method.ways[way].points
        found[f"item_{name}"] = explorer.ids[ITEMS[way]].take(pa.array(ranked.items[:, 0]))
        found[f"score_{name}"] = pa.array(ranked.scores[:, 0])
        for place, axis in enumerate("xy"):
            nothing = pa.nulls(len(table), pa.float32())
            found[f"{axis}_{name}"] = nothing if points is None else pa.array(points[:, place])
    return found


def _vectors(explorer: Explorer, name: str) -> list[np.ndarray]:
    """The embeddings of the split's images and captions by a trained model."""
    from manymatch.evaluation.embedded_model import embed_split
    from manymatch.evaluation.split_results import set_means
    from manymatch.networks.device import pick_device

    features = explorer.methods[name].provenance.features
    shards = explorer.layout.shards(explorer.dataset, features)
    folder = explorer.layout.model(explorer.dataset, name)
    embedded = embed_split(folder, shards, explorer.split, pick_device()).embedded
    return [set_means(side).cpu().numpy() for side in (embedded.images, embedded.texts)]
