"""What a search needs when a query comes: the embedded query, the model, and scanners.

This module imports torch, which takes a second.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manymatch.batch.parallel_map import single_core
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.answer import Side
from manymatch.model.model import Model, load
from manymatch.model.places import local_copy
from manymatch.search.index.manifest import CODES, check_codes, seal_of
from manymatch.search.index.table import Table
from manymatch.search.scan.codes import Codes
from manymatch.search.scan.exact import resident
from manymatch.search.scan.scanner import Scanner
from manymatch.util.errors import CheckpointError, DataError
from manymatch.util.seal import Seal

if TYPE_CHECKING:
    from manymatch.search.index.index import Index


@dataclass(frozen=True)
class Queries:
    """Embedded queries of one kind.

    Attributes:
        names: what the answers call the queries.
        words: for each text the words that the model does not know, and whether it knows one.
            Other queries have no such words.
        parse, encode: the seconds that it took to parse and to encode them.
    """

    names: Sequence[str]
    embeddings: Embeddings
    side: Side
    words: Sequence[tuple[list[str], bool]]
    parse: float = 0.0
    encode: float = 0.0


def texts(model: Model, given: Sequence[Any]) -> Queries:
    start = time.perf_counter()
    captions = model.parse(given)
    parsed = time.perf_counter()
    # One text is too little for two cores, and torch's threads would slow the scan.
    with single_core() if len(given) == 1 else nullcontext():
        embeddings = model.encode_captions(captions)
    words = [(model.vocabulary.unknown(text), model.vocabulary.knows(text)) for text in given]
    encode = time.perf_counter() - parsed
    return Queries(given, embeddings, "texts", words, parsed - start, encode)


def pictures(model: Model, given: Sequence[Any]) -> Queries:
    start = time.perf_counter()
    embeddings = model.encode_images(given, progress=False)
    names = [str(picture) if isinstance(picture, Path) else "a picture" for picture in given]
    encode = time.perf_counter() - start
    return Queries(names, embeddings, "images", [([], True)] * len(names), encode=encode)


def loaded(index: "Index") -> tuple[Model, dict[Side, Scanner]]:
    """The model of an index, and the scanner for queries of each kind. The author of an index
    chooses the name of the model in it, so nothing is downloaded by this name.

    Raises:
        CheckpointError: there is no such model, or another model made the index.
        DataError: the index was replaced meanwhile; or the codes or the embeddings are damaged, or
            do not fit each other or the model.
    """
    manifest, stored, given, beta = index.manifest, index.stored, index.given, index.beta
    folder = stored.folder
    if given is None:
        own = folder / manifest.model
        with suppress(OSError):  # a name that no file can have
            given = own if own.is_dir() else local_copy(manifest.model)
    if given is None:
        raise CheckpointError(
            f"{folder}: the index names the model '{manifest.model}', which is not there. Name the "
            "model by --model, or in Python by Index.open(FOLDER, MODEL)."
        )
    model = load(given) if isinstance(given, str | Path) else given
    manifest.check_model(model, folder)
    make: Callable[..., Scanner]
    if isinstance(stored, Table):
        make = partial(stored.scanner, model, manifest.side)
    else:
        assert isinstance(index.seal, Seal)
        embeddings, codes = resident(stored.embeddings(), model.device), None
        try:
            if embeddings.vectors.device.type == "cpu":  # a GPU reads no codes
                check_codes(index.seal)  # so that an answer is exact if it says so
                codes = Codes.open(folder / CODES) if (folder / CODES).is_dir() else None
        finally:  # the codes of another index are no damage
            if seal_of(folder) != index.seal:
                raise DataError(f"{folder}: was replaced while it was opened. Open it again")
        make = partial(Scanner, model, embeddings, codes, manifest.side)
    plain = make(beta=None)
    return model, {"images": plain, "texts": plain if beta is None else make(beta=beta)}
