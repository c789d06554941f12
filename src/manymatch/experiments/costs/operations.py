"""Count the operations of one similarity as the papers do."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from manymatch.evaluation.ranking.blocks import Score
from manymatch.methods.base import Embeddings


def multiply_adds(compute: Callable[[], Tensor]) -> int:
    """Multiply-adds of the matrix products in `compute()`: what the papers call FLOPs.

    Elementwise operations are left out, as in the papers (DivE, section 4.4: K K D).
    """
    with FlopCounterMode(display=False) as counter:
        compute()
    return counter.get_total_flops() // 2


def similarity_operations(score: Score, image: Embeddings, text: Embeddings) -> int:
    """`multiply_adds` of `score` for one image and one text.

    The count is of the code that training uses: torch's counter does not see the in-place products
    of the fast code for retrieval.
    """
    with torch.enable_grad():
        return multiply_adds(lambda: score(_tracked(image), _tracked(text)))


def _tracked(embeddings: Embeddings) -> Embeddings:
    """Copies that can have a gradient, unlike tensors of inference mode."""
    copies = embeddings.map(lambda part: part.detach().clone())
    copies.vectors.requires_grad_()
    return copies
