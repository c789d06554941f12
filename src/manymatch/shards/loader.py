"""Batches that worker processes prepare while the network trains."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from manymatch.batch.batch import Batch
from manymatch.shards.read import Batches
from manymatch.util.errors import ManyMatchError


class Loader:
    """The batches of epoch after epoch, prepared by `workers` processes (0: by this process).

    The workers live as long as the loader: starting them takes as long as many batches.

    Args:
        batches: the batches of an epoch.
        pin_memory: speeds up copies to a GPU.
    """

    def __init__(
        self, batches: Callable[[int], Batches], workers: int = 0, pin_memory: bool = False
    ) -> None:
        self._epochs = _Epochs(batches)
        self._loader = DataLoader(
            self._epochs,
            batch_size=None,
            num_workers=workers,
            pin_memory=pin_memory,
            prefetch_factor=2 if workers else None,
            persistent_workers=bool(workers),
        )

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of one epoch."""
        if self._loader.num_workers:
            self._epochs.batches(number).check_shards()
        self._epochs.number.fill_(number)
        for batch in self._loader:
            if isinstance(batch, ManyMatchError):
                raise batch
            yield batch


class _Epochs(IterableDataset[Batch | ManyMatchError]):
    """The batches of the epoch `number`, which the workers share with the training process.

    It yields our errors as values: an error that a worker raises would arrive as a traceback.
    """

    def __init__(self, batches: Callable[[int], Batches]) -> None:
        self.batches = batches
        self.number = torch.zeros((), dtype=torch.int64).share_memory_()

    def __iter__(self) -> Iterator[Batch | ManyMatchError]:
        if get_worker_info():
            gc.freeze()  # else each collection searches what the worker has of the training process
        try:
            yield from self.batches(int(self.number))
        except ManyMatchError as error:
            yield error
