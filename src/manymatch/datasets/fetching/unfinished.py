"""An unfinished download on the disk: the bytes so far, and a note of what the bytes belong to.

For the file `NAME`, the bytes are in `NAME.partial` and the note is `NAME.json`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from manymatch.datasets.fetching import connections
from manymatch.datasets.fetching.connections import Pieces
from manymatch.util import files
from manymatch.util.errors import DataError
from manymatch.util.json_file import read_object


@dataclass(frozen=True)
class Origin:
    """The file that the bytes of an unfinished download belong to."""

    url: str
    validator: str | None
    """The version of the file on the server: a strong ETag or a date."""
    pieces: tuple[int, int, tuple[int, ...]] | None = None
    """For a download in pieces: bytes of the file, bytes of a piece, numbers of the whole pieces.
    The partial file then has its full length, with gaps where pieces are missing."""


class Unfinished:
    """The unfinished download of the file `target`."""

    def __init__(self, target: Path) -> None:
        self.name = target.name
        self.path = files.partial_path(target)
        self._note = target.with_name(target.name + ".json")

    def drop_others(self) -> None:
        """Remove what has the temporary name but is no file of its own, such as a link: the bytes
        would be written elsewhere."""
        if not files.is_own(self.path):
            files.remove(self.path)

    @property
    def size(self) -> int:
        """Length of the partial file in bytes."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def origin(self) -> Origin | None:
        """The note; None if it is missing or damaged, and the download must start again."""
        try:
            note = read_object(self._note)
            if note.get("pieces") is not None:
                total, size, done = note["pieces"]
                note["pieces"] = int(total), int(size), tuple(map(int, done))
            return Origin(**note)
        except (DataError, ValueError, TypeError, ArithmeticError):
            return None

    def note(self, origin: Origin, pieces: Pieces | None = None) -> None:
        """Write the note."""
        if pieces is not None:
            whole = (pieces.total, pieces.size, tuple(sorted(pieces.done)))
            origin = replace(origin, pieces=whole)
        files.write_json(self._note, asdict(origin))

    def remove(self) -> None:
        """Remove the bytes and the note."""
        files.remove(self.path)
        files.remove(self._note)

    @property
    def progress(self) -> int:
        """Bytes that are here, at any position."""
        origin = self.origin
        if origin is None or origin.pieces is None:
            return self.size
        return len(origin.pieces[2]) * origin.pieces[1]

    def resume_point(self, url: str, has_checksum: bool) -> int:
        """The byte to go on from: 0 unless the present bytes are known to belong to the file.

        They do if they are of the same version at the same address. With a checksum this is left
        to the check of the finished file.
        """
        origin = self.origin
        same_version = origin is not None and origin.url == url and origin.validator is not None
        if not same_version and not has_checksum:
            return 0
        if origin is None or origin.pieces is None:
            return self.size
        total, size, done = origin.pieces
        first_gap = next(number for number in range(len(done) + 1) if number not in done)
        return min(self.size, total, first_gap * size)

    def pieces(self, new: Origin, total: int, has_checksum: bool) -> Pieces:
        """The pieces of the file `new` of `total` bytes, with the ones that are here already."""
        pieces, old = Pieces(total, size=connections.PIECE), self.origin
        same_version = old and new.validator and old == replace(new, pieces=old.pieces)
        if not (same_version or has_checksum):
            return pieces
        if old is None or old.pieces is None:
            pieces.done.update(range(self.size // pieces.size))
        elif old.pieces[:2] == (self.size, pieces.size) == (total, pieces.size):
            pieces.done.update(old.pieces[2])
        return pieces
