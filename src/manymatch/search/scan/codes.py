"""Short codes of a gallery, which a scan reads instead of the embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from manymatch.methods.embeddings import Embeddings
from manymatch.search.model import Model

Side = Literal["images", "texts"]
"""The kind of items in a gallery."""


class Codes:
    """Codes of the n items of a gallery, in the files of a folder."""

    @staticmethod
    def write(folder: Path, model: Model, blocks: Iterable[Embeddings], side: Side) -> None:
        """Write the codes of a gallery that comes in `blocks`, in bounded memory."""
        folder.mkdir(parents=True)
        for _ in blocks:
            pass

    @staticmethod
    def open(folder: Path) -> Codes:
        """The codes in `folder`, mapped from the disk."""
        return Codes()
