"""Batches that worker processes prepare while the network trains."""

from __future__ import annotations

from collections.abc import Iterator

from torch.utils.data import DataLoader, IterableDataset

from manymatch.shards.batch import Batch
from manymatch.shards.read import Batches
from manymatch.system.errors import ManyMatchError


class Loader:
    """The `batches`, in the same order, prepared by `workers` processes (0: by this process).

    `pin_memory` speeds up copies to a GPU.
    """

    def __init__(self, batches: Batches, workers: int = 0, pin_memory: bool = False) -> None:
        self._batches = batches
        self._loader = DataLoader(
            _Guarded(batches),
            batch_size=None,
            num_workers=workers,
            pin_memory=pin_memory,
            prefetch_factor=2 if workers else None,
        )

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        if self._loader.num_workers:
            self._batches.check_shards()
        for batch in self._loader:
            if isinstance(batch, ManyMatchError):
                raise batch
            yield batch


class _Guarded(IterableDataset[Batch | ManyMatchError]):
    """Yields our errors as values: an error that a worker raises would arrive as a traceback."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Batch | ManyMatchError]:
        try:
            yield from self._batches
        except ManyMatchError as error:
            yield error
