"""The latest rows of a stream, first in, first out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Queue(nn.Module):
    """Holds up to `size` rows of `width`; part of the state, so that a resumed run goes on as it
    was."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(size, width))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))
        self.rows: Tensor
        self.filled: Tensor
        # The same on the host: asking the device in every step would stop it.
        self._count: int | None = 0

    @torch.no_grad()
    def push(self, new: Tensor) -> Tensor:
        """Put `new (m, width)` in front; returns the older rows `(<= size - m, width)` that stay.

        Of more than `size` rows at once the first ones are kept.
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
