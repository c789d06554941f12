"""Real rows of padded tensors, and the poolings to one vector: mean, maximum and GPO."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from manymatch.batch.padding import PaddedRows, Padding, padded_rows
from manymatch.networks.layers.gru import BiGRU
from manymatch.networks.layers.linear import precise
from manymatch.networks.layers.position_code import sine_code
from manymatch.similarities.vectors import full_precision, keep_precision

Mask = Tensor | Padding | None
"""The real rows of `(n, R, ...)`: `(n, R)` of bool, or of 0 and 1 in any other type; None: all."""


def real_rows(local: Tensor, mask: Mask) -> Tensor:
    """The mask `(n, R)` of `local (n, R, D)` as bool, True for real rows."""
    if mask is None:
        return torch.ones(local.shape[:2], dtype=torch.bool, device=local.device)
    if isinstance(mask, Padding):
        return mask.mask
    return mask.bool()


def zeroed(local: Tensor, mask: Mask) -> Tensor:
    """`local (n, R, D)` with zeros where padded."""
    if mask is None or (isinstance(mask, PaddedRows) and mask.all_real):
        return local
    return local.masked_fill(~real_rows(local, mask)[:, :, None], 0.0)


def cleared(local: Tensor, mask: Mask) -> Tensor:
    """`zeroed` by a mask. With the `Padding` of an encoder, `local` is zero there already."""
    return local if isinstance(mask, Padding) else zeroed(local, mask)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax of `scores (n, ..., K, R)` over the real inputs by `mask (n, ..., R)`, 0 elsewhere.

    The result is in float32 or better, even if `scores` have half precision.
    """
    return full_precision(scores).masked_fill(~mask[..., None, :], -torch.inf).softmax(-1)


class MeanPooling(nn.Module):
    """The mean of the real rows: `(n, R, D), (n, R) -> (n, 1, D)`; `globals` are ignored."""

    def forward(self, local: Tensor, mask: Mask = None, globals: Tensor | None = None) -> Tensor:
        """`local (n, R, D)`, `mask (n, R)` -> `(n, 1, D)`; `globals` are ignored."""
        # NaN or infinity times a weight of 0 would still be NaN.
        local, mask = zeroed(local, mask), real_rows(local, mask)
        weights = mask.to(local.dtype) / mask.sum(1, keepdim=True)
        with keep_precision(local):
            return weights[:, None] @ local


class MaxPooling(nn.Module):
    """The largest value of each dimension over the real rows: `(n, R, D), (n, R) -> (n, 1, D)`;
    `globals` are ignored."""

    def forward(self, local: Tensor, mask: Mask = None, globals: Tensor | None = None) -> Tensor:
        """`local (n, R, D)`, `mask (n, R)` -> `(n, 1, D)`; `globals` are ignored."""
        padding = ~real_rows(local, mask)
        return local.masked_fill(padding[:, :, None], -torch.inf).amax(1, keepdim=True)


class GPO(nn.Module):
    """Sorts each dimension in descending order and sums with weights that depend on the set's size.

    A bi-GRU reads the sine position code of length n and gives n scores. Their softmax is the
    weight of the largest, second largest, ... value. GPO can learn mean, max and top-k pooling.

    Args:
        code_size: size of the position code.
        hidden: size of the bi-GRU, whose directions are averaged.
        temperature: > 0, of the softmax.

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
        if isinstance(padding, PaddedRows) and padding.all_real:
            ordered = local.sort(1, descending=True).values
        else:
            ordered = local.masked_fill(~padding.mask[:, :, None], -torch.inf)
            ordered = ordered.sort(1, descending=True).values
            behind = _surplus(padding).index_select(0, padding.size_row)
            ordered = ordered.masked_fill(behind[:, :, None], 0.0)
        weights = self.weights(padding)[:, None].to(ordered.dtype)
        with keep_precision(local):
            return weights @ ordered

    def weights(self, padding: Padding) -> Tensor:
        """`(n, R)` weights for sets of as many rows as are real; rows sum to 1 and are 0 behind
        the size.

        The GRU reads the codes of all S sizes at once as sequences without padding: a size's codes
        stand at the end, behind rows without a meaning. These rows come last in the direction that
        reads backwards, and cannot change its states of the codes. The states of the direction that
        reads forwards do not depend on what follows: those of the largest size R serve all sizes.
        """
        (rows, sizes), weight = (padding.mask.shape[1], padding.sizes), self.score.weight
        codes = sine_code(rows, self.code_size, weight.device, weight.dtype)
        places = torch.arange(rows, device=sizes.device)[:, None]
        reading = codes.index_select(0, ((places + sizes) % rows).flatten())
        states, _ = self.gru.read(reading, (len(sizes),) * rows)
        scores = precise(self.score, states.view(rows, len(sizes), 2, -1)).squeeze(3)
        forward, backward = scores.unbind(2)
        backward = backward.gather(0, (places - sizes) % rows)
        scores = ((forward[:, -1:] + backward) / (2 * self.temperature)).T
        weights = scores.masked_fill(_surplus(padding), -torch.inf).softmax(1)
        return weights.index_select(0, padding.size_row)


def _surplus(padding: Padding) -> Tensor:
    """`(S, R)`: the places behind each size."""
    sizes = padding.sizes
    return torch.arange(padding.mask.shape[1], device=sizes.device) >= sizes[:, None]


PoolingName = Literal["mean", "max", "gpo"]
_POOLINGS: dict[PoolingName, type[nn.Module]] = {"mean": MeanPooling, "max": MaxPooling, "gpo": GPO}


def pooling(name: PoolingName) -> nn.Module:
    """A fresh module `(local (n, R, D), mask (n, R) or None) -> (n, 1, D)`."""
    return _POOLINGS[name]()
