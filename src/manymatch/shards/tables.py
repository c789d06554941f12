"""Reading the caption table and the scene graphs in parallel, image by image."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from manymatch.batch.numbering import CaptionEntry
from manymatch.batch.scene_graph import SCHEMA, SceneGraph
from manymatch.datasets.base import CAPTIONS
from manymatch.shards.sample import check_graph
from manymatch.util.errors import DataError
from manymatch.util.parquet_file import open_table, table_faults

_ROWS = 256  # rows in memory at once; few, because the garbage collector visits all of them
_Row = dict[str, Any]


@dataclass(frozen=True)
class Image:
    """One image of the caption table with all its captions."""

    image_id: str
    split: str
    file: str
    labels: tuple[int, ...]
    captions: tuple[CaptionEntry, ...]


def distinct(captions: Path, name: str) -> list[str]:
    """The distinct values of a column of the caption table, in table order."""
    table = open_table(captions, CAPTIONS.names, "captions")
    with table_faults(captions, "captions"):
        return table.read(columns=[name])[name].unique().to_pylist()


def read_images(captions: Path, graphs: Path) -> Iterator[Image]:
    """The images in table order.

    Raises:
        DataError: the rows of the two tables do not belong together, or the captions of an image
            are not in consecutive rows.
    """
    seen: set[str] = set()
    rows = _rows(captions, graphs)
    for image_id, group in itertools.groupby(rows, key=lambda row: row[0]["image_id"]):
        if image_id in seen:
            raise DataError(
                f"{captions}: the captions of image '{image_id}' are not in consecutive rows. "
                "Run the stage 'captions' again"
            )
        seen.add(image_id)
        members, entries = list(group), []
        for caption, row in members:
            graph = SceneGraph.from_dict(row)
            try:
                check_graph(graph)
            except ValueError as error:
                raise DataError(f"{graphs}: caption '{row['caption_id']}': {error}") from None
            entries.append(CaptionEntry(caption["caption_id"], caption["caption"], graph))
        first, _ = members[0]
        labels = tuple(first["labels"] or ())
        yield Image(image_id, first["split"], first["file"], labels, tuple(entries))


def _rows(captions: Path, graphs: Path) -> Iterator[tuple[_Row, _Row]]:
    """Each row of the caption table with the row of the same caption in the table of graphs."""
    left = open_table(captions, CAPTIONS.names, "captions")
    right = open_table(graphs, SCHEMA.names, "scene_graphs")
    if left.metadata.num_rows != right.metadata.num_rows:
        raise DataError(
            f"{graphs}: {right.metadata.num_rows} graphs for {left.metadata.num_rows} captions "
            f"of {captions}. Run the stage 'scene_graphs' again"
        )
    pairs = zip(
        _dicts(left, captions, "captions", CAPTIONS.names),
        _dicts(right, graphs, "scene_graphs", SCHEMA.names),
        strict=True,
    )
    for number, (caption, graph) in enumerate(pairs):
        own, other = caption["caption_id"], graph["caption_id"]
        if own != other:
            raise DataError(
                f"{graphs}: row {number} belongs to caption '{other}', but the same row of "
                f"{captions} to '{own}'. Run the stage 'scene_graphs' again"
            )
        yield caption, graph


def _dicts(table: pq.ParquetFile, path: Path, stage: str, names: list[str]) -> Iterator[_Row]:
    with table_faults(path, stage):
        for batch in table.iter_batches(_ROWS, columns=names):
            for row in zip(*(_values(batch[name]) for name in names), strict=True):
                yield dict(zip(names, row, strict=True))


def _values(column: pa.Array) -> list[Any]:
    """The same as `column.to_pylist()`, but many times faster for lists and structures."""
    if pa.types.is_struct(column.type) and not column.null_count:
        names = [column.type.field(number).name for number in range(column.type.num_fields)]
        fields = [_values(field) for field in column.flatten()]
        return [dict(zip(names, row, strict=True)) for row in zip(*fields, strict=True)]
    if not pa.types.is_list(column.type):
        return column.to_pylist()
    values, at, lists = _values(column.flatten()), 0, []
    for length in column.value_lengths().to_pylist():
        lists.append(None if length is None else values[at : at + length])
        at += length or 0
    return lists
