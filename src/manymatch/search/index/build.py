"""Making an index, or bringing an index up to date: only what is new or changed is embedded.

Embedded items are written to parts, which are folders beside the index. Parts remain after a kill.
The new index consists of rows of the earlier index and of the parts, and replaces the earlier index
as a whole.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from manymatch.methods import entry_point
from manymatch.search.index.facts import add_facts, read_facts
from manymatch.search.index.manifest import (
    CODES,
    NAME,
    Changes,
    Manifest,
    check_codes,
    is_table,
    model_identity,
    relative,
    seal_of,
)
from manymatch.search.index.sources import Entry, Loaded, Source
from manymatch.search.index.stored import (
    FILES,
    ITEMS,
    Row,
    Stored,
    UnfinishedParts,
    gather,
    read_items,
    refuse_others,
    table_of,
    write_items,
)
from manymatch.search.scan.code_writer import write_codes
from manymatch.util.code_hash import code_hash
from manymatch.util.errors import CheckpointError, DataError, StorageError
from manymatch.util.files import beside, replacing, write_json
from manymatch.util.parts import Parts, identity_of
from manymatch.util.progress import say, track
from manymatch.util.seal import sealed

if TYPE_CHECKING:
    from manymatch.model.model import Model
    from manymatch.search.index.table_writer import Engine, TableWriter

ITEMS_AT_ONCE = 256
"""Items in a part. A kill costs at most the work on one part."""


def build(
    source: Source,
    model: Model,
    target: Path,
    model_path: str,
    table: Path | None = None,
    *,
    parts: Parts,
    times: bool = True,
    any_model: bool = False,
    engine: Engine | None = None,
    url: str | None = None,
) -> Changes:
    """Write the index of `source` to the folder `target`, or bring the index up to date.

    The earlier index can be used until the new one is complete. A run that was killed continues
    with what it has finished. Parts that other machines made (`build_part`) are joined.

    Args:
        model_path: the folder of the model, or its name on the hub.
        table: facts about the items, joined by the column `path`; None: the facts of the earlier
            index are kept.
        times: whether the index knows when files were changed, for filters and quick updates. An
            output of DVC must not know times, which differ from checkout to checkout.
        any_model: whether an index of another model is made anew, and not refused.
        engine: the index is a table of LanceDB, whose searches are exact ("lance") or by candidates
            of the engine ("lance-ivf"); None: what the index is already, or else plain files.
        url: where the table lies, if not in `target`; unfinished parts lie beside `target`.

    Raises:
        CheckpointError: the index holds embeddings of another model.
        DataError: the table is faulty (told before the embedding), or no item can be read.
        StorageError: `target` is not an index, or cannot be written.
    """
    writer: TableWriter | None = None
    earlier: Stored | None
    if engine or is_table(url or target):
        from manymatch.search.index.table_writer import TableWriter

        writer = TableWriter(url or str(target), model, source.side, engine, any_model)
        earlier, known = writer.earlier, writer.known
    else:
        earlier, known = _earlier(source, model, target, any_model)
    listed = source.listed()
    facts = table and read_facts(table, {name for entry in listed for name in entry.facts})
    unfinished = UnfinishedParts(target, model_identity(model))
    with parts.joining(lambda part: _identity(source, model, part.of(listed))) as paths:
        finished = [*map(Stored.open, paths), *unfinished.finished()]
        rows, embedded = _rows(source, model, listed, earlier, finished, unfinished)
        kept = [_current(entry, rows[entry.path], times) for entry in listed if entry.path in rows]
        items = add_facts(table_of(kept), table, facts, known)
        manifest = Manifest(
            model=relative(model_path, url or target),
            identity=model_identity(model),
            source=relative(str(source.path), url or target),
            kind=source.kind,
            split=source.split,
            side=source.side,
            items=len(kept),
            broken=len(listed) - len(kept),
        )
        if writer:
            writer.write(items, [rows[entry.path] for entry in kept], manifest)
        elif earlier is None or not _is_current(earlier, items, manifest):
            with sealed(target) as folder:
                folder.mkdir()
                gather(folder, [rows[entry.path] for entry in kept])
                write_items(folder, items)
                if model.method.products(manifest.side):  # else every search scores every item
                    blocks = Stored.open(folder).blocks()
                    write_codes(folder / CODES, model, blocks, manifest.side)
                write_json(folder / NAME, manifest.model_dump())
    unfinished.remove()
    return Changes.between(earlier.entries if earlier else [], kept, embedded, manifest.broken)


def build_part(source: Source, model: Model, parts: Parts) -> None:
    """Embed the wanted part of the items of `source`, for a later `build` on any machine.

    Raises:
        ConfigError: there are fewer items than parts.
        DataError: no item of the part can be read.
        StorageError: the part cannot be written.
    """
    assert parts.wanted is not None
    listed = source.listed()
    selected = list(parts.wanted.of(listed))
    parts.wanted.refuse_empty(selected, source.side)
    with parts.making(lambda part: _identity(source, model, part.of(listed))) as path:
        if path is None:
            return
        unfinished = UnfinishedParts(path, model_identity(model))
        rows, _ = _rows(source, model, selected, None, unfinished.finished(), unfinished)
        kept = [_current(entry, rows[entry.path]) for entry in selected if entry.path in rows]
        with replacing(path) as folder:
            folder.mkdir()
            gather(folder, [rows[entry.path] for entry in kept])
            write_items(folder, table_of(kept))
        unfinished.remove()


def _identity(source: Source, model: Model, entries: Sequence[Entry]) -> str:
    """The hash of everything that the embeddings of these items depend on."""
    contents = []
    for entry in track(entries, f"{source.path}: read", len(entries), quiet=True):
        with contextlib.suppress(DataError):  # the item is left out
            contents.append([entry.path, source.sha256(entry)])
    code = code_hash("manymatch.model.model", entry_point(model.preset.method))
    return identity_of(code, model_identity(model), contents)


def _earlier(
    source: Source, model: Model, target: Path, any_model: bool
) -> tuple[Stored | None, pa.Table | None]:
    """The index that lies at `target` already, and its items, whose facts are known even if the
    embeddings are damaged."""
    old = beside(target, ".old.partial")
    if old.is_dir() and not target.exists():  # a run was killed between two renames
        old.rename(target)
    if not target.exists():
        return None, None
    if not (target / NAME).is_file():
        raise StorageError(f"{target}: exists and is not an index. Choose another folder")
    refuse_others(target, FILES)
    try:
        seal = seal_of(target)
        Manifest.read(seal).check_model(model, target)
        stored = Stored.open(target)
        for name in (ITEMS, *(f"{name}.npy" for name in stored.arrays)):
            seal.check(name)
        return stored, stored.items
    except (DataError, CheckpointError) as error:
        if isinstance(error, CheckpointError) and not any_model:
            raise
        say(f"{error}: every item is embedded anew")
    with contextlib.suppress(DataError):
        return None, read_items(target)
    return None, None


def _is_current(earlier: Stored, items: pa.Table, manifest: Manifest) -> bool:
    """Whether the earlier index is whole and holds these items and this manifest."""
    with contextlib.suppress(DataError):
        seal = seal_of(earlier.folder)
        check_codes(seal)
        return items.equals(earlier.items) and manifest == Manifest.read(seal)
    return False


def _rows(
    source: Source,
    model: Model,
    entries: list[Entry],
    earlier: Stored | None,
    finished: list[Stored],
    unfinished: UnfinishedParts,
) -> tuple[dict[str, Row], int]:
    """The rows of all items that can be read, by path, and how many this run embedded."""
    rows, embedded = _known_rows(source, entries, earlier, finished), 0
    missing = [entry for entry in entries if entry.path not in rows]
    for part in _embedded(source, model, missing, unfinished):
        rows |= {entry.path: (part, row) for row, entry in enumerate(part.entries)}
        embedded += len(part)
    if not rows:
        unfinished.remove()
        raise DataError(
            f"{source.path}: none of {len(entries):,} {source.side} can be read. Check the source"
        )
    return rows, embedded


def _known_rows(
    source: Source, entries: list[Entry], earlier: Stored | None, parts: list[Stored]
) -> dict[str, Row]:
    """The rows of the items that are embedded already, by path.

    An item is known if its path and the state of its file are known, or if its content is known. A
    time of change of 0 says nothing: all files of some archives and images have it. An item in a
    part must also have the same path. So the remaining items do not depend on the moment
    at which a run was killed.
    """
    path_rows: dict[str, tuple[Entry, Row]] = {}
    content_rows: dict[tuple[str | None, str], Row] = {}
    for stored in [*([earlier] if earlier else []), *parts]:
        for row, entry in enumerate(stored.entries):
            path_rows[entry.path] = entry, (stored, row)
            content_rows[None if stored is earlier else entry.path, entry.sha256] = stored, row
    sizes = {entry.size for entry, _ in path_rows.values()}

    def known(entry: Entry) -> Row | None:
        if not entry.sha256:
            if entry.path in path_rows and entry.mtime_ns:
                same, same_row = path_rows[entry.path]
                if (same.size, same.mtime_ns) == (entry.size, entry.mtime_ns):
                    return same_row
            if entry.size not in sizes:
                return None  # so no known item has the same content
        try:
            content = source.sha256(entry)
        except DataError:  # `Source.load` reports it
            return None
        return content_rows.get((entry.path, content)) or content_rows.get((None, content))

    compared = track(entries, f"{source.path}: compared", len(entries), quiet=True)
    rows = ((entry.path, known(entry)) for entry in compared)
    return {path: row for path, row in rows if row}


def _embedded(
    source: Source, model: Model, entries: list[Entry], parts: UnfinishedParts
) -> Iterator[Stored]:
    """Embed the readable items part by part, and report the others. The content of an item is
    dropped after encoding."""
    if not entries:
        return
    block: list[Entry] = []

    def contents(loaded: Iterator[Loaded]) -> Iterator[Any]:
        for entry, content in loaded:
            if isinstance(content, DataError):
                say(f"left out: {content}")
                continue
            block.append(entry)
            yield content

    loaded = track(source.load(model, entries), f"{source.path}: {source.side}", len(entries))
    readable = contents(loaded)
    for first in readable:
        rest = itertools.islice(readable, ITEMS_AT_ONCE - 1)
        embeddings = source.encode(model, itertools.chain([first], rest))
        yield parts.add(block.copy(), embeddings)
        block.clear()


def _current(entry: Entry, row: Row, times: bool = True) -> Entry:
    """The item with the hash of its embedded content, and with its time of change or None."""
    stored, number = row
    changed = entry.mtime_ns if times else 0
    return replace(entry, sha256=stored.entries[number].sha256, mtime_ns=changed)
