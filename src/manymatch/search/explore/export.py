"""All images and captions of a split as one table, for other programs."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from manymatch.search.explore.explorer import Explorer
from manymatch.util import files


def write_export(explorer: Explorer, path: Path, vectors: Sequence[str]) -> int:
    """Write a row for each image and then for each caption, and return the number of rows.

    The columns are those of `Explorer.everything`, with the image's file in place of its row. Each
    method of `vectors` embeds the split anew and gives `vector_METHOD`; a set is the mean of its
    elements.

    Raises:
        DataError: a method of `vectors` is no trained model here.
    """
    models = {name: explorer.model_folder(name) for name in vectors}
    table = explorer.everything().drop_columns("row")
    pictures = pa.array([str(explorer.image_file(row)) for row in range(len(explorer.ids["i2t"]))])
    table = table.set_column(1, "image", pictures.take(table["image"].combine_chunks()))
    for name, folder in models.items():
        table = table.append_column(f"vector_{name}", _vectors(explorer, name, folder))
    with files.replacing(path) as partial:
        pq.write_table(table, partial)
    return len(table)


def _vectors(explorer: Explorer, name: str, folder: Path) -> pa.ChunkedArray:
    """The embeddings of the split's images and captions by a trained model."""
    from manymatch.evaluation.embedded_model import embed_split
    from manymatch.evaluation.split_results import set_means
    from manymatch.networks.device import pick_device

    features = explorer.methods[name].provenance.features
    shards = explorer.layout.shards(explorer.dataset, features)
    embedded = embed_split(folder, shards, explorer.split, pick_device()).embedded
    sides = (set_means(side).cpu().numpy() for side in (embedded.images, embedded.texts))
    return pa.chunked_array([pa.array([*side]) for side in sides])
