"""The stage `scene_graphs`: from the caption table to the scene graph table, over processes.

On several machines each makes a part: batches of graphs as an Arrow file. Unlike Parquet, Arrow
files keep the batches separate, so that the joined table is byte-identical to the table from one
process. Arrow files have no checksums, so a SHA-256 is at the end.
"""

import contextlib
import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import spacy
from spacy.language import Language

from manymatch.batch.scene_graph import PARSER, SCHEMA, SceneGraph
from manymatch.datasets.base import caption_columns
from manymatch.scene_graphs.parser import graphs, load_model
from manymatch.util.code_hash import code_hash
from manymatch.util.errors import DataError, first_line
from manymatch.util.files import sha256
from manymatch.util.parquet_file import read_table, table_writer
from manymatch.util.parts import Parts, identity_of
from manymatch.util.processes import process_pool
from manymatch.util.progress import say, track
from manymatch.util.seal import open_sealed, sealed

Parsed = tuple[pa.RecordBatch, Counter[str]]
"""The graphs of a batch of captions (schema without the ids), and counts of dropped parts."""
_DROPPED = "lost"

_GRAPHS = SCHEMA.remove(SCHEMA.get_field_index("caption_id"))

_CAPTIONS_A_PROCESS = 4000
"""The start of a process takes about as long as this number of captions."""

_worker_model: Language
"""The model of a worker process, loaded once when the process starts."""


def parse_captions(
    captions: Path, table: Path, model: str, processes: int, batch_size: int, *, parts: Parts
) -> None:
    """Write the scene graph of each row of the caption table to `table`, or one of its `parts`.

    `graph.SCHEMA` is the schema of `table`. The result depends on the captions, the model and
    `batch_size`, but not on `processes` or parts, because the batches are always the same. Equal
    captions are parsed once.

    Raises:
        ConfigError: the spaCy model is not installed.
        DataError: the caption table is missing, damaged or has an empty caption.
    """
    ids, texts, rows = _read(captions)
    batches = [texts[i : i + batch_size] for i in range(0, len(texts), batch_size)]
    title = "scene graphs (batches)"

    @functools.cache
    def identity() -> str:
        """The hash of all inputs of the table. All parts have the same hash."""
        versions = [load_model(model).meta["version"], spacy.__version__]
        return identity_of(code_hash(__name__), sha256(captions), model, versions, batch_size)

    if parts.wanted:
        own_batches = parts.wanted.of(batches)
        parts.wanted.refuse_empty(own_batches, "batches of captions")
        with parts.making(lambda part: identity()) as path:
            if path:
                with (
                    _parsing(model, processes, own_batches) as results,
                    sealed(path) as unfinished,
                    pa.ipc.new_file(unfinished, _GRAPHS) as writer,
                ):
                    for batch, dropped in track(results, title, len(own_batches)):
                        writer.write_batch(batch, custom_metadata={_DROPPED: json.dumps(dropped)})
        return
    with parts.joining(lambda part: identity()) as joined:
        parsing = _read_parts(joined) if joined else _parsing(model, processes, batches)
        with sealed(table) as unfinished, parsing as results:
            found, dropped = [], Counter[str]()
            for batch, dropped_parts in track(results, title, len(batches)):
                found.append(batch)
                dropped += dropped_parts
            if counts := ", ".join(f"{dropped[part]} {part}" for part in sorted(dropped)):
                say(f"scene graphs: beyond the limits, left out: {counts}")
            distinct = pa.Table.from_batches(found, schema=_GRAPHS)
            with table_writer(unfinished, SCHEMA.with_metadata({PARSER: model})) as writer:
                writer.write_table(distinct.take(rows).add_column(0, SCHEMA.field(0), ids))


def _read(captions: Path) -> tuple[pa.ChunkedArray, list[str], pa.Array]:
    """Return the caption ids, the distinct captions, and for each id the index of its caption."""
    table = read_table(captions, caption_columns("caption_id", "caption"))
    row = pc.index(pc.utf8_trim_whitespace(table["caption"]), "").as_py()
    if row >= 0:
        raise DataError(f"{captions}: caption '{table['caption_id'][row]}' is empty")
    coded = table["caption"].combine_chunks().dictionary_encode()
    return table["caption_id"], coded.dictionary.to_pylist(), coded.indices


@contextlib.contextmanager
def _parsing(
    model: str, processes: int, batches: Sequence[list[str]]
) -> Iterator[Iterable[Parsed]]:
    """Yield the parsed batches in order, from this process or from a pool of processes."""
    loaded = load_model(model)  # Loading before a pool starts reports a missing model in one line.
    workers = min(processes, sum(map(len, batches)) // _CAPTIONS_A_PROCESS)
    if workers <= 1:
        yield map(partial(parse_batch, loaded), batches)
        return
    with process_pool(workers, "scene graphs", _load_in_worker, (model,)) as pool:
        yield pool.map(_parse_in_worker, batches)


def _load_in_worker(model: str) -> None:
    global _worker_model
    _worker_model = load_model(model)


def _parse_in_worker(captions: list[str]) -> Parsed:
    return parse_batch(_worker_model, captions)


def parse_batch(model: Language, captions: list[str]) -> Parsed:
    """Return the graphs of `captions`, parsed as one batch, and the counts of dropped parts."""
    dropped: Counter[str] = Counter()
    return _columns(list(graphs(model, captions, dropped))), dropped


def _columns(parsed: list[SceneGraph]) -> pa.RecordBatch:
    columns = [
        [graph.objects for graph in parsed],
        [graph.names for graph in parsed],
        [graph.attributes for graph in parsed],
        [[(r.subject, r.label, r.object) for r in graph.relations] for graph in parsed],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _GRAPHS, strict=True)]
    return pa.record_batch(arrays, schema=_GRAPHS)


@contextlib.contextmanager
def _read_parts(paths: Sequence[Path]) -> Iterator[Iterator[Parsed]]:
    """Yield all batches of the parts `paths`, in the order in which they were dealt to the parts.

    Raises:
        DataError: a part is damaged.
    """
    rounds = zip_longest(*map(_read_part, paths))
    yield (parsed for parsed in chain.from_iterable(rounds) if parsed is not None)


def _read_part(path: Path) -> Iterator[Parsed]:
    open_sealed(path, "Remove the file and make it again").check()
    try:
        with pa.memory_map(str(path)) as content, pa.ipc.open_file(content) as part:
            for number in range(part.num_record_batches):
                batch, metadata = part.get_batch_with_custom_metadata(number)
                batch.validate(full=True)
                yield batch, Counter(json.loads(metadata[_DROPPED]))
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        reason = first_line(error)
        raise DataError(f"{path}: damaged ({reason}). Remove the file and make it again") from None
