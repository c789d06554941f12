"""Parts of the stage's work on several machines: batches of graphs as Arrow files.

Unlike Parquet, Arrow files keep the batches separate, so that the joined table is byte-identical to
the table from one process. Arrow files have no checksums, so a SHA-256 is at the end.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import pyarrow as pa

from manymatch.system.errors import DataError, first_line
from manymatch.system.files import replacing, sha256

Parsed = tuple[pa.RecordBatch, Counter[str]]
"""The graphs of a batch of captions (schema without the ids), and counts of dropped parts."""
_DROPPED = "lost"
_DIGITS = 64  # of a SHA-256


def write_part(path: Path, schema: pa.Schema, results: Iterable[Parsed]) -> None:
    """Write batches of graphs with the counts of dropped parts, one batch at a time."""
    with replacing(path) as partial:
        with pa.ipc.new_file(partial, schema) as writer:
            for batch, dropped in results:
                writer.write_batch(batch, custom_metadata={_DROPPED: json.dumps(dropped)})
        digest = sha256(partial)
        with partial.open("a") as file:
            file.write(digest)


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
        content = pa.memory_map(str(path)).read_buffer()
        size = max(0, content.size - _DIGITS)
        batches, digest = content.slice(0, size), content.slice(size)
        if hashlib.sha256(batches).hexdigest().encode() != digest.to_pybytes():
            raise ValueError("the content does not have the hash at the end of the file")
        with pa.ipc.open_file(batches) as part:
            for number in range(part.num_record_batches):
                batch, metadata = part.get_batch_with_custom_metadata(number)
                batch.validate(full=True)
                yield batch, Counter(json.loads(metadata[_DROPPED]))
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        reason = first_line(error)
        raise DataError(f"{path}: damaged ({reason}). Remove the file and make it again") from None
