"""Parts of the stage's work on several machines: batches of graphs as Arrow files.

Unlike Parquet, Arrow files keep the batches separate, so that the joined table is byte-identical to
the table from one process.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import pyarrow as pa

from manymatch.system.errors import DataError, first_line
from manymatch.system.files import replacing

Parsed = tuple[pa.RecordBatch, Counter[str]]
"""The graphs of a batch of captions (schema without the ids), and counts of dropped parts."""
_DROPPED = "lost"


def write_part(path: Path, schema: pa.Schema, results: Iterable[Parsed]) -> None:
    """Write batches of graphs with the counts of dropped parts, one batch at a time."""
    with replacing(path) as partial, pa.ipc.new_file(partial, schema) as writer:
        for batch, dropped in results:
            writer.write_batch(batch, custom_metadata={_DROPPED: json.dumps(dropped)})


@contextlib.contextmanager
def read_parts(paths: Sequence[Path]) -> Iterator[Iterator[Parsed]]:
    """Yield all batches of the parts `paths`, in the order in which they were dealt to the parts.

    Raises:
        DataError: a part is damaged.
    """
    rounds = zip_longest(*map(_read, paths))
    yield (parsed for parsed in chain.from_iterable(rounds) if parsed is not None)


def _read(path: Path) -> Iterator[Parsed]:
    try:
        with pa.ipc.open_file(path) as part:
            for number in range(part.num_record_batches):
                batch, metadata = part.get_batch_with_custom_metadata(number)
                batch.validate(full=True)
                yield batch, Counter(json.loads(metadata[_DROPPED]))
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        reason = first_line(error)
        raise DataError(f"{path}: damaged ({reason}). Remove the file and make it again") from None
