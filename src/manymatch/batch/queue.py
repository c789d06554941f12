"""The latest rows of a stream, first in, first out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Queue(nn.Module):
    """Up to `size` rows of `width`. The rows are part of the state dict, so that a resumed run
    continues with the same rows."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(size, width))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))
        self.rows: Tensor
        self.filled: Tensor
        # A copy on the host, read before the first step, when a warm start has filled the buffers:
        # reading it from the device in every step would wait for the device.
        self._count: int | None = None

    @torch.no_grad()
    def push(self, new: Tensor) -> Tensor:
        """Put the rows `new (m, width)` in front.

        The first `size` rows are kept.

        Returns:
            The older rows that are kept, `(<= size - m, width)`.
        """
        size = len(self.rows)
        count = int(self.filled) if self._count is None else self._count
        self._count = min(size, count + len(new))
        self.rows = torch.cat([new.detach(), self.rows])[:size]
        self.filled.fill_(self._count)
        return self.rows[len(new) : self._count]

    def _load_from_state_dict(self, *arguments: Any, **options: Any) -> None:
        super()._load_from_state_dict(*arguments, **options)
        self._count = None
