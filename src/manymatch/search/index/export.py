"""The sets of an index with the exact best items of queries, for people who tune other engines; and
the results of a search as a page of pictures that needs no other file."""

import base64
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa

from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.answer import Answer, Result
from manymatch.model.picture_bytes import thumbnail
from manymatch.search.index.database import connected, engine_faults, lists, spooled
from manymatch.search.index.index import Index
from manymatch.search.index.queries import texts
from manymatch.search.index.stored import ROWS_AT_ONCE, refuse_others
from manymatch.search.index.table import PARTS
from manymatch.util.errors import ConfigError, DataError, StorageError
from manymatch.util.files import replacing, write_text
from manymatch.util.parquet_file import table_writer
from manymatch.util.text_lines import numbered_lines

_KINDS = ".parquet", ".lance"
"""The endings of the tables of an export."""
_ITEMS = 1_000
"""Items that are queries if no texts are given."""
_AT_ONCE = 64
"""Texts that are searched in one scan."""


def write_sets(index: Index, to: Path, queries: Path | None = None, k: int = 10) -> str:
    """Write the tables `items` and `queries` to the folder `to`; returns what was written.

    `items` has the columns of the index and the parts of the embeddings. `queries` has the parts
    of each query, and the ids of the `best` k items with their exact `scores`.

    Args:
        to: a folder of two Parquet files; with the ending `.lance`, a database of LanceDB.
        queries: a file with one text a line; None: items of the index, evenly spread, each of which
            finds other items.

    Raises:
        ConfigError: the answers of the index are not exact, or LanceDB is not installed.
        DataError: the texts cannot be read, or the embeddings are damaged.
        StorageError: `to` is something else than an earlier export.
    """
    if to.exists():
        if not any((to / f"queries{kind}").exists() for kind in _KINDS):
            raise StorageError(f"{to}: exists and is not an export. Choose another folder")
        refuse_others(to, [f"{name}{kind}" for name in ("queries", "items") for kind in _KINDS])
    if queries is None:
        rows = np.unique(np.linspace(0, len(index) - 1, min(len(index), _ITEMS)).astype(np.int64))
        names = index.stored.items["id"].take(rows).to_pylist()
        embeddings = index.stored.taken(rows)
        answers = [index.similar(name, k) for name in names]
    else:
        names = [text for _, line in numbered_lines(queries) if (text := line.strip())]
        if not names:
            raise DataError(f"{queries}: no texts. Write one query a line")
        starts = range(0, len(names), _AT_ONCE)
        answers = [one for at in starts for one in index.search_all(names[at : at + _AT_ONCE], k)]
        embeddings = texts(index.model, names).embeddings
    if not all(answer.exact for answer in answers):
        raise ConfigError(
            f"{index.folder}: answers by candidates are not exact. Export an index of --engine "
            "lance, or one in files."
        )
    best = {
        "query": names,
        "best": [[result.id for result in answer.results] for answer in answers],
        "scores": [[result.score for result in answer.results] for answer in answers],
    }
    asked = _added(pa.table(best), embeddings)
    schema = next(_blocks(index)).schema
    with replacing(to) as partial:
        if to.suffix == ".lance":
            database = connected(str(partial))
            with spooled(_blocks(index), schema, str(to)) as data, engine_faults(str(to)):
                database.create_table("items", data, schema=schema)
                database.create_table("queries", asked)
        else:
            partial.mkdir()
            with table_writer(partial / "items.parquet", schema) as writer:
                for block in _blocks(index):
                    writer.write_table(block)
            with table_writer(partial / "queries.parquet", asked.schema) as writer:
                writer.write_table(asked)
    return f"{len(index):,} items, and the exact best {k} of {len(names):,} queries"


def _blocks(index: Index) -> Iterator[pa.Table]:
    """The items with their embeddings, some rows at once."""
    for start in range(0, len(index), ROWS_AT_ONCE):
        items = index.stored.items.slice(start, ROWS_AT_ONCE)
        yield _added(items, index.stored.taken(np.arange(start, start + len(items))))


def _added(table: pa.Table, embeddings: Embeddings) -> pa.Table:
    """The table with the parts of the embeddings as columns."""
    if taken := {*PARTS} & {*table.column_names}:
        raise ConfigError(f"the index has a fact '{min(taken)}', which is a part of the sets")
    for name, part in embeddings.scored_parts().items():
        table = table.append_column(name, lists(part.numpy(), inner=name == "vectors"))
    return table.combine_chunks()


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{query}</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.4 system-ui, sans-serif }}
main {{ display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)) }}
figure {{ margin: 0; overflow-wrap: anywhere }}
img {{ width: 100% }}
</style>
<h1>{query}</h1>
<main>
{figures}
</main>
</html>
"""


def write_grid(index: Index, answer: Answer) -> Path:
    """Write the page into a new temporary folder; returns its path."""
    figures = "\n".join(
        f"<figure>{_picture(index, result)}<figcaption>{result.score:.3f} "
        f"{escape(result.text or result.path)}</figcaption></figure>"
        for result in answer.results
    )
    page = Path(tempfile.mkdtemp(prefix="manymatch-"), "results.html")
    write_text(page, _PAGE.format(query=escape(answer.query), figures=figures))
    return page


def _picture(index: Index, result: Result) -> str:
    """The small picture; nothing for an item without one."""
    try:
        data = base64.b64encode(thumbnail(index.picture(result.id))).decode()
    except DataError:
        return ""
    return f'<img alt="" src="data:image/jpeg;base64,{data}">'
