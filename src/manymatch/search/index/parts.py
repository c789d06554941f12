"""The finished parts of an unfinished index, which outlive a killed run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from manymatch.search.index.items import Entry
from manymatch.search.index.stored import Stored, write_block
from manymatch.util.errors import DataError
from manymatch.util.files import beside, remove, replacing, storage_errors, write_json
from manymatch.util.json_file import read_object
from manymatch.util.progress import say

if TYPE_CHECKING:
    from manymatch.methods.shared.embeddings import Embeddings

_SUFFIX = ".parts.partial"
_MODEL = "model.json"


class UnfinishedParts:
    """The parts of the index `target`, in a folder beside the index.

    Args:
        identity: what decides the embeddings (`manifest.model_identity`). Parts of another model
            are removed.
    """

    def __init__(self, target: Path, identity: dict[str, str]) -> None:
        self._folder = beside(target, _SUFFIX)
        self._identity = identity
        self._count = 0

    def finished(self) -> list[Stored]:
        """The parts that earlier runs have finished."""
        with storage_errors(self._folder):
            if not self._fits():
                self.remove()
                write_json(self._folder / _MODEL, self._identity)
            folders = [path for path in sorted(self._folder.iterdir()) if path.name.isdigit()]
        self._count = 1 + max((int(path.name) for path in folders), default=-1)
        parts = [part for part in map(_opened, folders) if part]
        if parts:
            say(f"{self._folder}: {sum(map(len, parts)):,} items are finished from an earlier run")
        return parts

    def add(self, entries: list[Entry], embeddings: Embeddings) -> Stored:
        """Write the next part."""
        folder = self._folder / f"{self._count:06d}"
        with replacing(folder) as partial:
            write_block(partial, entries, embeddings)
        self._count += 1
        return Stored.open(folder)

    def remove(self) -> None:
        """Remove all parts, because the index holds their rows, or because there are no rows."""
        with storage_errors(self._folder):
            remove(self._folder)

    def _fits(self) -> bool:
        path = self._folder / _MODEL
        try:
            return path.is_file() and read_object(path) == self._identity
        except DataError:
            return False


def _opened(folder: Path) -> Stored | None:
    """The part, unless a file is damaged."""
    try:
        return Stored.open(folder)
    except DataError as error:
        say(f"{error}: these items are embedded anew")
        return None
