"""A GRU, by default bidirectional, whose states never depend on padding."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from manymatch.batch.padding import Sequences
from manymatch.networks.layers.recurrence import read_on_cpu
from manymatch.networks.layers.segments import scattered
from manymatch.similarities.vectors import keep_precision

# `read_padded` gives cuDNN the weights of one direction, a part of the buffer of both. cuDNN copies
# these weights at every call, which takes microseconds.
warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous")

Directions = Literal["average", "concatenate", "forward"]


class Read(Protocol):
    """What the GRU has read. Few networks need both the states and the final states: each is made
    when it is asked for."""

    @property
    def states(self) -> Tensor:
        """`(n, L, D)`, zero where padded."""

    @property
    def final(self) -> Tensor:
        """`(n, D)`."""


@dataclass(frozen=True)
class RowsRead:
    """`Read` of sequences without padding."""

    rows: Tensor  # (V, d H): the states of the d directions side by side, in the order of reading
    last: Tensor  # (d, n, H), the longest sequence first
    sequences: Sequences
    average: bool

    @property
    def states(self) -> Tensor:
        parts = self.rows.chunk(2, 1) if self.average else [self.rows]
        return scattered(_joined(parts, self.average), self.sequences)

    @property
    def final(self) -> Tensor:
        last = self.last.index_select(1, self.sequences.ranks)
        return _joined(last.unbind(0), self.average)


@dataclass(frozen=True)
class PaddedRead:
    """`Read` of padded sequences."""

    sides: list[Tensor]  # the states (L, n, H) of each direction, in its own order of reading
    ends: Tensor  # (n,): the last real position of each sequence
    mirrored: Tensor  # (L, n, 1): the position that the other direction reads at the same time
    mask: Tensor  # (n, L), True for real positions
    average: bool

    @property
    def states(self) -> Tensor:
        ahead, *back = self.sides
        sides = [ahead, *(side.gather(0, self.mirrored.expand_as(side)) for side in back)]
        joined = _joined(sides, self.average).transpose(0, 1)
        return joined.masked_fill(~self.mask[:, :, None], 0.0)

    @property
    def final(self) -> Tensor:
        ends = self.ends[None, :, None].expand(1, -1, self.sides[0].shape[2])
        return _joined([side.gather(0, ends).squeeze(0) for side in self.sides], self.average)


def _joined(sides: Sequence[Tensor], average: bool) -> Tensor:
    if average:
        return (sides[0] + sides[1]) / 2
    return torch.cat(list(sides), -1) if len(sides) > 1 else sides[0]


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
        self.directions = directions
        both = directions != "forward"
        self.gru = nn.GRU(width, hidden, batch_first=True, bidirectional=both)
        for name, parameter in self.gru.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, sequence: Tensor, sequences: Sequences) -> Read:
        """`sequence (n, L, width)` -> `Read`. Every sequence has a real position."""
        average = self.directions == "average"
        if not len(sequence):
            none = sequence.new_zeros(1 + self.gru.bidirectional, 0, self.gru.hidden_size)
            return RowsRead(torch.cat(list(none), 1), none, sequences, average)
        if sequence.is_cuda:
            with keep_precision(sequence):
                sequence = sequence.to(self.gru.all_weights[0][0].dtype)
                return read_padded(self.gru, sequence, sequences.mask, average)
        rows = sequence.flatten(0, 1).index_select(0, sequences.rows)
        return RowsRead(*self.read(rows, sequences.steps), sequences, average)

    def read(self, rows: Tensor, steps: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """The states `(V, d H)` and final states `(d, n, H)` of sequences, `steps` of which have
        position 0, 1, ..., by their `rows (V, width)` in the order of `Sequences`."""
        device, kind = rows.device.type, self.gru.all_weights[0][0].dtype
        half = torch.is_autocast_enabled(device)
        # In half precision gradients vanish without loss scaling; under CUDA's autocast cuDNN reads
        # in float16.
        with keep_precision(rows):
            rows = rows.to(kind)
            if device == "cpu" and torch.is_grad_enabled():
                factors = torch.get_autocast_dtype(device) if half else kind
                return read_on_cpu(self.gru, rows, steps, factors)
            return read_by_torch(self.gru, rows, steps)


def read_by_torch(gru: nn.GRU, rows: Tensor, steps: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """What `read_on_cpu` returns, by torch's GRU.

    Sequences of one length are not packed. cuDNN starts two kernels for each position and direction
    of packed sequences, but three for all positions of others with at most 128 states.
    """
    if steps[0] == steps[-1]:
        states, final = gru(rows.unflatten(0, (len(steps), steps[0])).transpose(0, 1))
        return states.transpose(0, 1).flatten(0, 1), final
    packed, final = gru(PackedSequence(rows, torch.tensor(steps)))
    return packed.data, final


def read_padded(gru: nn.GRU, sequence: Tensor, mask: Tensor, average: bool) -> PaddedRead:
    """`gru` over the padded `sequence (n, L, width)`, by one call of torch for each direction. The
    `mask (n, L)` is True for real positions, which are in front.

    Padding is read behind each sequence, where it changes no state of the sequence. cuDNN copies
    the states of every packed sequence by a kernel of its own: 600 kernels for 640 captions.
    """
    by_time, (n, length) = sequence.transpose(0, 1), mask.shape
    ends = mask.sum(1) - 1
    # The real positions in reverse order, and behind them the padding in reverse order.
    mirrored = ((ends - torch.arange(length, device=ends.device)[:, None]) % length)[:, :, None]
    start = sequence.new_zeros(1, n, gru.hidden_size)

    def read(inputs: Tensor, weights: list[nn.Parameter]) -> Tensor:
        return torch.gru(inputs, start, list(weights), True, 1, 0.0, gru.training, False, False)[0]

    ahead, *back = gru.all_weights
    sides = [read(by_time, ahead)]
    for weights in back:
        reverse = by_time.gather(0, mirrored.expand(-1, -1, sequence.shape[2]))
        sides.append(read(reverse, weights))
    return PaddedRead(sides, ends, mirrored, mask, average)
