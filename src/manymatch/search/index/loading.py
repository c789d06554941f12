"""What an index needs when a query first comes: the model, and scanners of its embeddings."""

from __future__ import annotations

from pathlib import Path

from manymatch.search.answer import Side
from manymatch.search.index.manifest import CODES, Manifest
from manymatch.search.index.stored import Stored
from manymatch.search.model import Model, load
from manymatch.search.scan.codes import Codes
from manymatch.search.scan.scanner import Scanner
from manymatch.system.errors import DataError


def model_of(manifest: Manifest, folder: Path) -> Model:
    """The model that the index in `folder` names.

    Raises:
        CheckpointError: there is no such model, or another model made the index.
    """
    local = folder / manifest.model
    model = load(local if local.is_dir() else manifest.model)
    manifest.check_model(model, folder)
    return model


def scanners(
    model: Model, manifest: Manifest, stored: Stored, beta: float | None
) -> dict[Side, Scanner]:
    """The scanner for queries of each kind.

    Args:
        beta: as for `Index.open`.

    Raises:
        DataError: the codes or the embeddings are damaged, or do not fit each other or the model.
    """
    folder = stored.folder
    codes = None
    if (folder / CODES).is_dir():
        manifest.check_files(folder, codes=True)  # so that an answer is exact if it says so
        codes = Codes(folder / CODES)
    if Manifest.read(folder) != manifest:
        raise DataError(f"{folder}: was replaced while it was opened. Open it again")
    gallery = stored.embeddings(), codes, manifest.side
    plain = Scanner(model, *gallery)
    texts = plain if beta is None else Scanner(model, *gallery, beta)
    return {"images": plain, "texts": texts}
