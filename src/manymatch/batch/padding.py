"""The real rows of padded tensors, as masks and as numbers that the host knows beforehand.

A network that asked a GPU for the number of real rows, or for the length of a caption, would wait
until the GPU has done all earlier work. Batches therefore carry such numbers from the process that
makes them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

_ALIGNED = 64
"""The tensors in a buffer begin at multiples of so many bytes."""


class OnDevice:
    """Moves all tensors, also those of nested parts, to a device or to pinned memory."""

    def to(self, device: torch.device | str, non_blocking: bool = True) -> Any:
        """The same on `device`. The tensors of one buffer (`packed`) move in one copy."""
        views: dict[int, list[Tensor]] = {}
        numbers = {}
        for part in self.tensors():
            numbers[id(part)] = number = part.untyped_storage()._cdata
            views.setdefault(number, []).append(part)
        buffers: dict[int, Any] = {}
        for number, parts in views.items():
            storage = parts[0].untyped_storage()
            if len(parts) > 1 and 2 * sum(part.nbytes for part in parts) >= storage.nbytes():
                whole = torch.empty(0, dtype=torch.uint8, device=parts[0].device).set_(storage)
                moved_whole = whole.to(device, non_blocking=non_blocking)
                buffers[number] = moved_whole.untyped_storage()

        def moved(part: Tensor) -> Tensor:
            storage = buffers.get(numbers[id(part)])
            if storage is None:
                return part.to(device, non_blocking=non_blocking)
            empty = torch.empty(0, dtype=part.dtype, device=storage.device)
            return empty.set_(storage, part.storage_offset(), part.shape, part.stride())

        return self._map(moved)

    def packed(self, pin_memory: bool = False) -> Any:
        """The same with copies of all tensors in one buffer, which moves to a GPU in one copy."""
        starts = list(accumulate(-(-part.nbytes // _ALIGNED) * _ALIGNED for part in self.tensors()))
        buffer = torch.empty(starts[-1], dtype=torch.uint8, pin_memory=pin_memory)
        places = iter([0, *starts])

        def copied(part: Tensor) -> Tensor:
            start = next(places)
            place = buffer[start : start + part.nbytes].view(part.dtype)
            return place.view(part.shape).copy_(part)

        return self._map(copied)

    def pin_memory(self) -> Any:
        """The method that the thread of a `DataLoader` calls."""
        return self.packed(pin_memory=True)

    def tensors(self) -> Iterator[Tensor]:
        """All tensors, in the order of the fields."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                yield value
            elif isinstance(value, OnDevice):
                yield from value.tensors()

    def __getstate__(self) -> dict[str, Any]:
        """Tensors that are not in shared memory as arrays: these travel from a worker process in
        one message, while each shared tensor needs a connection of its own."""
        return {
            name: value.numpy() if isinstance(value, Tensor) and not value.is_shared() else value
            for name, value in vars(self).items()
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            vars(self)[name] = torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    def _map(self, move: Callable[[Tensor], Tensor]) -> Any:
        moved = {
            field.name: move(value) if isinstance(value, Tensor) else value._map(move)
            for field in fields(self)  # type: ignore[arg-type]
            if isinstance(value := getattr(self, field.name), Tensor | OnDevice)
        }
        return replace(self, **moved)  # type: ignore[type-var]


@dataclass(frozen=True)
class Sequences(OnDevice):
    """n sequences, padded to L, in the order in which a GRU reads their V real rows: position by
    position, and at each position the longest sequence first."""

    mask: Tensor  # (n, L) bool, True = a real row; real rows are in front
    rows: Tensor  # (V,) int64 numbers of the real rows among all n * L, in the order of reading
    ranks: Tensor  # (n,) int64 rank of each sequence by its length; the longest has 0
    steps: tuple[int, ...]  # number of sequences that have position 0, 1, ...; on the host

    def longer(self, count: int) -> "Sequences":
        """The sequences with `count` more real rows in front of each."""
        (n, length), device = self.mask.shape, self.mask.device
        longest_first = self.rows[:n] // length * (length + count)
        added = torch.arange(count, device=device)[:, None] + longest_first
        rows = self.rows + (self.rows // length + 1) * count
        return Sequences(
            mask=torch.cat([self.mask.new_ones(n, count), self.mask], 1),
            rows=torch.cat([added.flatten(), rows]),
            ranks=self.ranks,
            steps=(n,) * count + self.steps,
        )


@dataclass(frozen=True)
class Padding(OnDevice):
    """The real rows of n samples, which are padded to R rows, and how many each sample has."""

    mask: Tensor  # (n, R) bool, True = a real row
    size_row: Tensor  # (n,) int64: which one of `sizes` is the sample's number of real rows
    sizes: Tensor  # (S,) int64: the numbers of real rows that occur, ascending, and at last R


@dataclass(frozen=True)
class PaddedRows(Padding):
    """Real rows at any positions, such as an image's regions."""

    rows: Tensor  # (V,) int64 numbers of the real rows among all n * R, ascending

    @property
    def all_real(self) -> bool:
        """Whether no row is padding."""
        return len(self.rows) == self.mask.numel()


@dataclass(frozen=True)
class PaddedSequences(Padding):
    """Real rows in front, such as a caption's words."""

    sequences: Sequences

    def longer(self, count: int) -> "PaddedSequences":
        """The same with `count` more real rows in front of each sample's."""
        sequences = self.sequences.longer(count)
        return PaddedSequences(sequences.mask, self.size_row, self.sizes + count, sequences)


def sequences(lengths: Tensor, width: int) -> Sequences:
    """Sequences of the `lengths (n,)`, on the CPU, padded to `width`."""
    longest_first, order = lengths.sort(descending=True)
    positions = torch.arange(width)
    present = positions[:, None] < longest_first
    position, rank = present.nonzero(as_tuple=True)
    return Sequences(
        mask=positions < lengths[:, None],
        rows=order[rank] * width + position,
        ranks=order.argsort(),
        steps=tuple(count for count in present.sum(1).tolist() if count),
    )


def padded_rows(mask: Tensor) -> PaddedRows:
    """The real rows of a `mask (n, R)` of bool, on its device. The numbers are made on the CPU."""
    device, mask = mask.device, mask.cpu()
    rows = mask.flatten().nonzero()[:, 0]
    padding: PaddedRows = PaddedRows(mask, *_sizes(mask.sum(1), mask.shape[1]), rows).to(device)
    return padding


def all_real(count: int, width: int, device: torch.device) -> PaddedRows:
    """`count` samples with `width` real rows each, made on `device` without waiting for it."""
    rows = torch.arange(count * width, device=device)
    none = rows.new_zeros(count)
    mask = torch.ones(count, width, dtype=torch.bool, device=device)
    return PaddedRows(mask, none, rows.new_full((1,), width), rows)


def padded_sequences(lengths: Tensor, width: int) -> PaddedSequences:
    """Sequences of the `lengths (n,)`, on the CPU, padded to `width`."""
    whole = sequences(lengths, width)
    return PaddedSequences(whole.mask, *_sizes(lengths, width), whole)


def _sizes(counts: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """`size_row` and `sizes` of samples with `counts (n,)` real rows, padded to `width`."""
    sizes, rows = torch.cat([counts, counts.new_tensor([width])]).unique(return_inverse=True)
    return rows[:-1], sizes
