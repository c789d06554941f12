"""What another model made, embeddings or a similarity matrix in files, as the protocols take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.external.arrays import Array, open_array
from manymatch.evaluation.external.listed import Listed, places, read_ids
from manymatch.evaluation.ranking.blocks import Score, runs
from manymatch.methods.base import Embeddings
from manymatch.similarities.by_name import SetSimilarity
from manymatch.system.errors import ConfigError, DataError, nearest

Similarity = Literal["cosine", "dot", "mil", "chamfer", "smooth_chamfer", "max_match"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Made:
    """What a model made, in files `FILE` or `FILE:KEY`: `scores (n, m)`, of several matrices their
    mean, or `images (n, D)` or `(n, K, D)` and `texts` with the `similarity` to compare them by.

    The rows are the images and captions of `image_ids` and `caption_ids`, files of ids, or those
    of the caption table in its order.
    """

    scores: tuple[str, ...] = ()
    images: str | None = None
    texts: str | None = None
    similarity: Similarity = "cosine"
    image_ids: Path | None = None
    caption_ids: Path | None = None


def similarity_name(text: str) -> Similarity:
    """`text`, if it is one."""
    for name in SIMILARITIES:
        if name == text:
            return name
    raise ConfigError(f"no similarity '{text}'{nearest(text, SIMILARITIES)}")


def embedded(made: Made, listed: Listed) -> tuple[Embedded, Score]:
    """The split as protocols take it, and what scores it: of a matrix, rows and columns stand in
    place of embeddings.

    Raises:
        ConfigError: neither or both of scores and embeddings.
        DataError: a file that cannot be used, or does not fit the others.
    """
    if made.scores and made.images is None and made.texts is None:
        images, texts, by = _of_matrices([*map(open_array, made.scores)], made, listed)
    elif not made.scores and made.images is not None and made.texts is not None:
        images, texts, by = _of_embeddings(made.images, made.texts, made, listed)
    else:
        raise ConfigError("score: give either --scores, or --images and --texts")
    ids = listed.image_ids, listed.caption_ids
    return Embedded(Embeddings(images), Embeddings(texts), *ids, listed.owner), by


def _rows(made: Made, listed: Listed, shape: tuple[int, int], where: str) -> tuple[Tensor, Tensor]:
    """At which rows the split's images and captions lie in files of so many of each."""
    captions = listed.listed_captions
    images = read_ids(made.image_ids) if made.image_ids else listed.image_ids
    texts = read_ids(made.caption_ids) if made.caption_ids else captions
    if shape != (len(images), len(texts)):
        counts = f"{shape[0]:,} images x {shape[1]:,} captions"
        hint = "; it is the other way round" if shape == (len(texts), len(images)) else ""
        expected = f"{len(images):,} x {len(texts):,} are listed"
        raise DataError(f"{where}: {counts}, but {expected}{hint}")
    return (
        places(listed.image_ids, images, f"{made.image_ids or where}: image"),
        places(listed.caption_ids, texts, f"{made.caption_ids or where}: caption"),
    )


def _of_matrices(
    matrices: Sequence[Array], made: Made, listed: Listed
) -> tuple[Tensor, Tensor, Score]:
    """In place of embeddings the rows and columns of the matrices, of which blocks are read."""
    for matrix in matrices:
        if len(matrix.shape) != 2:
            raise DataError(f"{matrix.where}: expected images x captions, found {_shown(matrix)}")
        rows, columns = _rows(made, listed, (matrix.shape[0], matrix.shape[1]), matrix.where)

    def read(images: Embeddings, texts: Embeddings) -> Tensor:
        chosen = images.vectors.flatten(), texts.vectors.flatten()
        return torch.stack([_block(matrix, *chosen) for matrix in matrices]).mean(0)

    return rows[:, None, None], columns[:, None, None], read


def _block(matrix: Array, rows: Tensor, columns: Tensor) -> Tensor:
    """Chosen rows and columns; of the file the columns between are read too, but no other row."""
    first = int(columns.min())
    between = slice(first, int(columns.max()) + 1)
    parts = [
        matrix.read(slice(start, stop), between)[:, columns - first]
        for start, stop in _unbroken(rows)
    ]
    return _finite(torch.cat(parts), matrix.where)


def _unbroken(rows: Tensor) -> list[tuple[int, int]]:
    """`rows` as runs (first, behind the last) of numbers that follow each other."""
    breaks = (rows.diff() != 1).nonzero()[:, 0] + 1
    parts = torch.tensor_split(rows, breaks)
    return [(int(part[0]), int(part[-1]) + 1) for part in parts]


def _of_embeddings(
    images: str, texts: str, made: Made, listed: Listed
) -> tuple[Tensor, Tensor, Score]:
    arrays = open_array(images), open_array(texts)
    for array in arrays:
        if 0 in array.shape[1:]:
            raise DataError(f"{array.where}: {_shown(array)}: no numbers to compare")
        if len(array.shape) not in (2, 3):
            raise DataError(f"{array.where}: expected (n, D) or (n, K, D), found {_shown(array)}")
    if arrays[0].shape[-1] != arrays[1].shape[-1]:
        raise DataError(
            f"{arrays[0].where} has vectors of {arrays[0].shape[-1]} numbers, "
            f"{arrays[1].where} of {arrays[1].shape[-1]}"
        )
    where = f"{images} and {texts}"
    places = _rows(made, listed, (arrays[0].shape[0], arrays[1].shape[0]), where)
    vectors = [_vectors(array)[rows] for array, rows in zip(arrays, places, strict=True)]
    by = _compare(made.similarity, max(each.shape[1] for each in vectors))
    if made.similarity != "dot":
        vectors = [normalize(each, dim=2) for each in vectors]
    return vectors[0], vectors[1], by


def _vectors(array: Array) -> Tensor:
    """`(n, K, D)` in float32, as the project's own methods are compared."""
    parts = [array.read(run).float() for run in runs(array.shape[0], _ROWS_AT_ONCE)]
    found = _finite(torch.cat(parts), array.where)
    return found[:, None] if found.ndim == 2 else found


def _compare(similarity: Similarity, elements: int) -> Score:
    if similarity == "cosine" or similarity == "dot":
        if elements > 1:
            raise ConfigError(
                f"score: '{similarity}' compares single vectors, but there are sets of {elements}; "
                "choose mil, chamfer, smooth_chamfer or max_match"
            )
        return lambda images, texts: images.vectors[:, 0] @ texts.vectors[:, 0].T
    of_sets = SetSimilarity(similarity).eval()
    return lambda images, texts: of_sets(images.vectors, texts.vectors)


def _finite(values: Tensor, where: str) -> Tensor:
    if not bool(torch.isfinite(values).all()):
        raise DataError(f"{where}: holds NaN or infinite numbers, among which nothing has a rank")
    return values


def _shown(array: Array) -> str:
    return " x ".join(map(str, array.shape)) or "a single number"
