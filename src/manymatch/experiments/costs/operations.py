"""Operations of one similarity, counted as the papers count them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from manymatch.evaluation.ranking.blocks import Score
from manymatch.methods.base import Embeddings


def multiply_adds(compute: Callable[[], Tensor]) -> int:
    """Multiply-adds of the matrix products in `compute()`: what the papers call FLOPs.

    Element by element operations are left out, as they are there (DivE, section 4.4: K K D).
    """
    with FlopCounterMode(display=False) as counter:
        compute()
    return counter.get_total_flops() // 2


def similarity_operations(score: Score, image: Embeddings, text: Embeddings) -> int:
    """`multiply_adds` of `score` for one image and one text.

    Counted on the way that training takes: torch's counter does not see the products that the
    fast ways of retrieval make in place.
    """
    with torch.enable_grad():
        return multiply_adds(lambda: score(_tracked(image), _tracked(text)))


def _tracked(embeddings: Embeddings) -> Embeddings:
    """Copies, since those made in inference mode cannot have a gradient."""
    copies = embeddings.map(lambda part: part.detach().clone())
    copies.vectors.requires_grad_()
    return copies
