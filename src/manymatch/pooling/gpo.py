"""Generalised pooling operator: learned weights over the sorted values of each dimension."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from manymatch.layers.gru import BiGRU
from manymatch.layers.position_code import sine_code
from manymatch.pooling.masked import Mask, real_rows
from manymatch.shards.padding import Padding, padded_rows


class GPO(nn.Module):
    """Sorts each dimension in descending order and sums with weights that depend on the set's size.

    A bi-GRU reads the sine position code of length n and gives n scores. Their softmax is the
    weight of the largest, second largest, ... value. GPO can learn mean, max and top-k pooling.

    Args:
        code_size: size of the position code.
        hidden: size of the bi-GRU, whose directions are averaged.
        temperature: of the softmax.

    References:
        Chen et al., Learning the Best Pooling Strategy for Visual Semantic Embedding
        (VSE-infinity), CVPR 2021, section 4.
    """

    def __init__(self, code_size: int = 32, hidden: int = 32, temperature: float = 0.1) -> None:
        super().__init__()
        self.code_size, self.temperature = code_size, temperature
        self.gru = BiGRU(code_size, hidden, directions="average")
        self.score = nn.Linear(hidden, 1, bias=False)

    def forward(self, local: Tensor, mask: Mask = None, globals: Tensor | None = None) -> Tensor:
        """`local (n, R, D)`, `mask (n, R)` -> `(n, 1, D)`; real rows may have any positions.

        `globals` are ignored.
        """
        padding = mask if isinstance(mask, Padding) else padded_rows(real_rows(local, mask))
        mask = padding.mask
        ordered = local.masked_fill(~mask[:, :, None], -torch.inf).sort(1, descending=True).values
        real = padding.sizes.mask[padding.size_row]
        ordered = ordered.masked_fill(~real[:, :, None], 0.0)
        return self.weights(padding)[:, None] @ ordered

    def weights(self, padding: Padding) -> Tensor:
        """`(n, R)` weights for sets of as many rows as are real; rows sum to 1 and are 0 behind
        the size."""
        real, weight = padding.sizes.mask, self.score.weight
        codes = sine_code(real.shape[1], self.code_size, weight.device, weight.dtype)
        states = self.gru(codes.expand(len(real), -1, -1), padding.sizes).states
        scores = self.score(states)[:, :, 0] / self.temperature
        return scores.masked_fill(~real, -torch.inf).softmax(1)[padding.size_row]
