"""A GRU, by default bidirectional, that never sees padding."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from manymatch.layers.recurrence import read_on_cpu
from manymatch.layers.segments import scattered
from manymatch.shards.padding import Sequences

Directions = Literal["average", "concatenate", "forward"]


class Read(NamedTuple):
    """The output of the GRU: `states (n, L, D)`, zero where padded, and `final (n, D)`."""

    states: Tensor
    final: Tensor


class BiGRU(nn.Module):
    """One GRU layer, whose two directions are averaged or concatenated; "forward" has one
    direction.

    With "concatenate" each direction has size / 2, so that D = `size` in all three forms. The final
    state joins the forward direction's state at the last real position and the backward direction's
    state at the first. Biases start at zero, because torch's own biases outweigh fresh word vectors
    and make words similar.

    Args:
        width: size of the inputs.
        size: D.
        directions: how the directions are joined.
    """

    def __init__(self, width: int, size: int, directions: Directions = "average") -> None:
        super().__init__()
        hidden = size // 2 if directions == "concatenate" else size
        self.size, self.directions = size, directions
        both = directions != "forward"
        self.gru = nn.GRU(width, hidden, batch_first=True, bidirectional=both)
        for name, parameter in self.gru.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, sequence: Tensor, sequences: Sequences) -> Read:
        """`sequence (n, L, width)` -> `Read`. Every sequence has a real position."""
        if not len(sequence):
            states = sequence.new_zeros(*sequences.mask.shape, self.size)
            return Read(states, states.sum(1))
        rows = sequence.flatten(0, 1).index_select(0, sequences.rows)
        # In half precision gradients vanish without loss scaling; under CUDA's autocast cuDNN reads
        # in float16.
        with torch.autocast(rows.device.type, enabled=False):
            rows = rows.to(next(self.gru.parameters()).dtype)
            trained_on_cpu = rows.device.type == "cpu" and torch.is_grad_enabled()
            read = read_on_cpu if trained_on_cpu else read_by_torch
            states, final = read(self.gru, rows, sequences.steps)
        states = scattered(states, sequences)
        final = final.index_select(1, sequences.place)
        if self.directions == "forward":
            return Read(states, final[0])
        return Read(self._join(*states.chunk(2, 2)), self._join(*final))

    def _join(self, forward: Tensor, backward: Tensor) -> Tensor:
        if self.directions == "average":
            return (forward + backward) / 2
        return torch.cat([forward, backward], -1)


def read_by_torch(gru: nn.GRU, rows: Tensor, steps: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """What `read_on_cpu` returns, by torch's GRU."""
    packed, final = gru(PackedSequence(rows, torch.tensor(steps)))
    return packed.data, final
