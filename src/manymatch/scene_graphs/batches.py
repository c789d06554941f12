"""Parts of the stage's work between machines: batches of graphs as Arrow files.

Unlike Parquet they keep the batches apart, so that what is joined from them is, to the byte, what
one process would have written.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import pyarrow as pa

from manymatch.system.errors import DataError
from manymatch.system.files import replacing

Parsed = tuple[pa.RecordBatch, Counter[str]]
"""The graphs of a batch of captions (schema without the ids), and what their limits cost."""
_LOST = "lost"


def write_part(path: Path, schema: pa.Schema, results: Iterable[Parsed]) -> None:
    """Write batches of graphs with what their limits cost, one at a time."""
    with replacing(path) as partial, pa.ipc.new_file(partial, schema) as writer:
        for batch, lost in results:
            writer.write_batch(batch, custom_metadata={_LOST: json.dumps(lost)})


@contextlib.contextmanager
def read_parts(paths: Sequence[Path]) -> Iterator[Iterator[Parsed]]:
    """All batches of the parts `paths`, in the order in which they were dealt out to them.

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
                yield batch, Counter(json.loads(metadata[_LOST]))
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path}: damaged ({reason}); remove it and make it again") from None
