"""Dropout that draws its mask faster on a CPU."""

import numpy as np
import torch
from torch import Tensor, nn

_CHUNK = 2**15
"""Numbers that are drawn at once: they fit in a processor's cache."""


class Dropout(nn.Dropout):
    """`nn.Dropout`, whose mask takes a third of the time on a CPU.

    Torch's generator draws the seed of a faster one, and this draws 32 bits for each element. The
    element is kept if the bits, as a signed number, are below a limit.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """`inputs (...)`; in training each element is zero or `1 / (1 - p)` times as large."""
        plain = inputs.device.type != "cpu" or not inputs.is_contiguous()
        if not self.training or not self.p or plain or torch.compiler.is_compiling():
            return super().forward(inputs)
        generator = np.random.SFC64(int(torch.randint(2**63 - 1, ())))
        limit = min(round((1 - self.p) * 2**32) - 2**31, 2**31 - 1)
        scale = torch.empty(inputs.shape, dtype=inputs.dtype)
        for part in scale.view(-1).split(_CHUNK):
            drawn = torch.from_numpy(generator.random_raw((len(part) + 1) // 2).view(np.int32))
            torch.lt(drawn[: len(part)], limit, out=part)
        return inputs * scale.div_(1 - self.p)
