"""What an index needs when a query first comes: the model, and scanners of its embeddings."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from manymatch.model.answer import Side
from manymatch.model.hub import downloaded
from manymatch.model.model import Model, load
from manymatch.search.index.manifest import CODES, Manifest
from manymatch.search.index.stored import Stored
from manymatch.search.scan.codes import Codes
from manymatch.search.scan.scanner import Scanner
from manymatch.util.errors import CheckpointError, DataError


def model_of(manifest: Manifest, folder: Path, given: Model | str | Path | None) -> Model:
    """The model of the index in `folder`: the `given` one, or else the one that the index names.

    The author of an index chooses the name, so nothing is downloaded by it.

    Raises:
        CheckpointError: there is no such model, or another model made the index.
    """
    if given is None:
        own = folder / manifest.model
        with suppress(OSError):  # a name that no file can have
            given = own if own.is_dir() else downloaded(manifest.model)
    if given is None:
        raise CheckpointError(
            f"{folder}: the index names the model '{manifest.model}', which is not there. Name the "
            "model by --model, or in Python by Index.open(FOLDER, MODEL)."
        )
    model = load(given) if isinstance(given, str | Path) else given
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
