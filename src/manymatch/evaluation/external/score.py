"""The command `score`: evaluate embeddings or similarity matrices of another program.

The embeddings or matrices are read from files; everything else is as in `evaluate`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch import __version__
from manymatch.config.layout import ResultFiles
from manymatch.datasets import DATASETS
from manymatch.evaluation.external.arrays import Array, file_of, finite, open_array
from manymatch.evaluation.external.split_table import SplitTable, read_ids, read_split, rows_of
from manymatch.evaluation.protocols import protocol_modules, suite
from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.protocols.relevance import NO_JUDGMENTS, read_judgments
from manymatch.evaluation.ranking.metrics import rounded
from manymatch.evaluation.ranking.ranks import rank
from manymatch.evaluation.split_results import (
    EvaluationOptions,
    SplitResults,
    measure,
    pair_metrics,
    write,
)
from manymatch.methods.shared.method import Embeddings
from manymatch.model.embed import Embedded
from manymatch.model.scores import Score
from manymatch.results.machine import Clock, record
from manymatch.similarities.blocks import runs
from manymatch.similarities.set_similarity import SetSimilarity, SimilaritySettings
from manymatch.util import files
from manymatch.util.code_hash import code_hash
from manymatch.util.errors import ConfigError, DataError, nearest

SETTING = "external"


def score(
    dataset: str,
    external: "ExternalFiles",
    captions: Path,
    relevance: Path | None = None,
    *,
    split: str = "test",
    protocols: Sequence[str] = (),
    name: str = SETTING,
    written: ResultFiles | None = None,
    known: Collection[str] = DATASETS,
) -> SplitResults:
    """Rank a split by another program's embeddings or scores; the metrics are rounded.

    Args:
        dataset: decides about the protocols unless `protocols` names them. A data set that is
            not `known` needs `protocols` (`suite.PAIRS`: none).
        captions: the caption table, or a CSV file (`split_table.read_split`).
        relevance: table of positives beyond the annotated pairs.
        written: where metrics, provenance and run files are written, under `name`; None: nowhere.
        known: the data sets whose protocols are known.

    Raises:
        ConfigError: there are neither scores nor embeddings, or both; or the similarity, protocol
            or data set is unknown.
        DataError: a file cannot be used, or does not fit the others.
    """
    clock = Clock()
    similarity = external.similarity
    if similarity is not None and similarity not in SIMILARITIES:
        raise ConfigError(f"no similarity '{similarity}'{nearest(similarity, SIMILARITIES)}")
    if similarity is not None and external.scores:
        raise ConfigError(
            f"--similarity {similarity}: compares embeddings, but --scores are similarities "
            "already. Leave the option out"
        )
    if dataset not in known and not protocols:
        # A misspelt name must not leave out the data set's protocols silently.
        raise ConfigError(
            f"no data set '{dataset}'{nearest(dataset, known)}. For captions of your own name "
            f"the protocols too: --protocol {suite.PAIRS} for ranks only."
        )
    table = read_split(captions, split)
    embedded, by = read_external(external, table)
    image_index, judgments = embedded.image_index, NO_JUDGMENTS
    if relevance is not None:
        judgments = read_judgments(relevance, table.image_ids, table.caption_ids, image_index)
    ranking = rank(by, *embedded.gallery, EvaluationOptions.depth)
    ranked = RankedSplit(embedded, by, None, ranking, table.labels)
    if protocols:
        values = pair_metrics(ranked, judgments) | suite.protocol_metrics(protocols, ranked)
    else:
        values = measure(ranked, judgments, dataset)
    result = SplitResults(ranked, rounded(values), {}, judgments)
    if written is not None:
        identity = {"dataset": dataset, "preset": name, "split": split}
        write(written, result, name, _origin(external, captions, relevance) | identity)
        record(written.machine, "score", clock.usage())
    return result


def _origin(external: "ExternalFiles", captions: Path, relevance: Path | None) -> dict[str, Any]:
    """The origin of the numbers; facts that only the model's author has are "not known".

    `data_sha256` is the hash of the caption table.
    """
    sources: dict[str, list[Path | None]] = {
        "scores": [file_of(text) for text in external.scores],
        "images": [file_of(external.images) if external.images else None],
        "texts": [file_of(external.texts) if external.texts else None],
        "image_ids": [external.image_ids],
        "caption_ids": [external.caption_ids],
        "data": [captions],
        "relevance": [relevance],
    }
    hashes = {
        f"{what}_sha256": "+".join(files.sha256(path) for path in paths if path)
        for what, paths in sources.items()
        if any(paths)
    }
    compared = {} if external.scores else {"similarity": external.similarity or DEFAULT}
    return {
        "method": SETTING,
        "seed": "not known",
        "features": "not known",
        "setting": SETTING,
        "code_sha256": code_hash(__name__, *protocol_modules()),
        "version": __version__,
        **compared,
        **hashes,
    }


SIMILARITIES = ("cosine", "dot", "mil", "chamfer", "smooth_chamfer", "max_match")
DEFAULT = SIMILARITIES[0]
_ROWS_AT_ONCE = 1024
_SMALL, _LARGE = 1e-10, 1e10
"""The largest number of vectors whose products fit into float32 with all their digits."""


@dataclass(frozen=True)
class ExternalFiles:
    """The files `FILE` or `FILE:KEY` of another program.

    Either `scores`, matrices `(n, m)` of which the mean is ranked, or `images` and `texts`,
    `(n, D)` or `(n, K, D)`, which are compared by `similarity` (None: `DEFAULT`). The rows are the
    images and captions of the files of ids `image_ids` and `caption_ids`, or those of the caption
    table in its order.
    """

    scores: tuple[str, ...] = ()
    images: str | None = None
    texts: str | None = None
    similarity: str | None = None
    image_ids: Path | None = None
    caption_ids: Path | None = None


def read_external(files: ExternalFiles, table: SplitTable) -> tuple[Embedded, Score]:
    """The embedded split and its score. For matrices, rows and columns stand in place of
    embeddings.

    Raises:
        ConfigError: there are neither scores nor embeddings, or both.
        DataError: a file cannot be used, or does not fit the others.
    """
    if files.scores and files.images is None and files.texts is None:
        images, texts, score = _matrix_scores(files, table)
    elif not files.scores and files.images is not None and files.texts is not None:
        images, texts, score = _embedding_scores(files.images, files.texts, files, table)
    else:
        raise ConfigError("score: give either --scores, or --images and --texts")
    ids = table.image_ids, table.caption_ids
    return Embedded(Embeddings(images), Embeddings(texts), *ids, table.image_index), score


def _stored_ids(files: ExternalFiles, table: SplitTable) -> tuple[list[str], list[str]]:
    images = read_ids(files.image_ids) if files.image_ids else table.image_ids
    texts = read_ids(files.caption_ids) if files.caption_ids else table.table_caption_ids
    return images, texts


def _rows(
    files: ExternalFiles, table: SplitTable, shape: tuple[int, int], where: str, turned: str
) -> tuple[Tensor, Tensor]:
    """The rows of the split's images and captions in files with `shape` images and captions.

    `turned` is the remedy if images and captions are in each other's place.
    """
    images, texts = _stored_ids(files, table)
    if shape != (len(images), len(texts)):
        counts = f"{shape[0]:,} images x {shape[1]:,} captions"
        hint = f". {turned}" if shape == (len(texts), len(images)) else ""
        expected = f"the ids are of {len(images):,} x {len(texts):,}"
        raise DataError(f"{where}: {counts}, but {expected}{hint}")
    return (
        rows_of(table.image_ids, images, f"{files.image_ids or where}: image"),
        rows_of(table.caption_ids, texts, f"{files.caption_ids or where}: caption"),
    )


def _matrix_scores(files: ExternalFiles, table: SplitTable) -> tuple[Tensor, Tensor, Score]:
    """Rows and columns of the matrices in place of embeddings; the score reads blocks."""
    ids = _stored_ids(files, table)
    matrices = [open_array(text, ids) for text in files.scores]
    for matrix in matrices:
        if len(matrix.shape) != 2:
            raise DataError(f"{matrix.where}: expected images x captions, not {matrix.sizes}")
        shape = matrix.shape[0], matrix.shape[1]
        rows, columns = _rows(files, table, shape, matrix.where, "Transpose the matrix")

    def read(images: Embeddings, texts: Embeddings) -> Tensor:
        block = images.vectors.flatten(), texts.vectors.flatten()
        return torch.stack([_block(matrix, *block) for matrix in matrices]).mean(0)

    return rows[:, None, None], columns[:, None, None], read


def _block(matrix: Array, rows: Tensor, columns: Tensor) -> Tensor:
    """The values at `rows` and `columns`. Of the other rows nothing is read."""
    first = int(columns.min())
    between = slice(first, int(columns.max()) + 1)
    breaks = (rows.diff() != 1).nonzero()[:, 0] + 1
    parts = [
        matrix.read(slice(int(run[0]), int(run[-1]) + 1), between)[:, columns - first]
        for run in torch.tensor_split(rows, breaks)  # runs of consecutive numbers
    ]
    return finite(torch.cat(parts), matrix.where)


def _embedding_scores(
    images: str, texts: str, files: ExternalFiles, table: SplitTable
) -> tuple[Tensor, Tensor, Score]:
    arrays = open_array(images), open_array(texts)
    for array in arrays:
        if 0 in array.shape[1:]:
            raise DataError(f"{array.where}: {array.sizes}: no numbers to compare")
        if len(array.shape) not in (2, 3):
            raise DataError(f"{array.where}: expected (n, D) or (n, K, D), not {array.sizes}")
    if arrays[0].shape[-1] != arrays[1].shape[-1]:
        raise DataError(
            f"{arrays[0].where} has vectors of {arrays[0].shape[-1]} numbers, but "
            f"{arrays[1].where} has vectors of {arrays[1].shape[-1]}. Give files of one model."
        )
    where = f"{images} and {texts}"
    shape = arrays[0].shape[0], arrays[1].shape[0]
    rows = _rows(files, table, shape, where, "Swap the files of --images and --texts")
    similarity = files.similarity or DEFAULT
    unit = similarity != "dot"
    vectors = [_vectors(array, unit=unit)[order] for array, order in zip(arrays, rows, strict=True)]
    score = _compare(similarity, max(sets.shape[1] for sets in vectors))
    return vectors[0], vectors[1], score


def _vectors(array: Array, *, unit: bool) -> Tensor:
    """`(n, K, D)` in float32, like the embeddings of the project's methods; `unit` of length 1."""
    rows = runs(array.shape[0], _ROWS_AT_ONCE)
    parts = (array.read(run) for run in rows)
    if unit:
        parts = (_unit(finite(part, array.where)) for part in parts)
    else:
        # Products must fit into float32. One divisor of all vectors of a file changes no rank.
        largest = max(float(array.read(run).abs().amax()) for run in rows)
        if largest and not _SMALL <= largest <= _LARGE:
            parts = (part / largest for part in parts)
    vectors = finite(torch.cat([part.float() for part in parts]), array.where)
    return vectors[:, None] if vectors.ndim == 2 else vectors


def _unit(vectors: Tensor) -> Tensor:
    """Vectors of length 1 from vectors of any length; zeros stay zeros.

    The largest number is 1 before the squares are added: squares of numbers above 1e19 or below
    1e-19 do not fit into float32.
    """
    largest = vectors.abs().amax(-1, keepdim=True)
    return normalize(vectors / torch.where(largest > 0, largest, 1.0), dim=-1)


def _compare(similarity: str, elements: int) -> Score:
    if similarity == "cosine" or similarity == "dot":
        if elements > 1:
            raise ConfigError(
                f"score: '{similarity}' compares single vectors, not sets of {elements} elements. "
                "Choose mil, chamfer, smooth_chamfer or max_match."
            )
        return lambda images, texts: images.vectors[:, 0] @ texts.vectors[:, 0].T
    set_similarity = SetSimilarity(SimilaritySettings.model_validate({"name": similarity})).eval()
    return lambda images, texts: set_similarity(images.vectors, texts.vectors)
