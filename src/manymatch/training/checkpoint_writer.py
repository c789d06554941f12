"""Checkpoints are written in a thread while the training goes on."""

from __future__ import annotations

import copy
import io
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies import FSDPStrategy
from torch import Tensor

from manymatch.config.preset import CheckpointEvery
from manymatch.methods.shared.method import Method
from manymatch.training.checkpoints import Checkpoints, History


class Writer:
    """Writes the checkpoints of a running training from copies, in a thread, so that the training
    goes on. One checkpoint is written at a time.

    The block of a `with` statement ends when everything is written. An error of the thread is
    raised by the next checkpoint, or at the end of the block.

    Args:
        checkpoints: the place. The training has resumed from its last checkpoint.
        every: how often checkpoints are written.
        epochs: the number of epochs of the last checkpoint, 0 without one.
        name: the name of the method.
    """

    def __init__(
        self, checkpoints: Checkpoints, every: CheckpointEvery, epochs: int, name: str
    ) -> None:
        self._checkpoints, self._every, self._name = checkpoints, every, name
        self._last, self._time = epochs, time.monotonic()
        self._best: dict[str, Tensor] | None = None
        self._thread = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        self._wait()

    @property
    def resumed_from(self) -> Path:
        """The file with the state of the last checkpoint."""
        return self._checkpoints.state(self._last)

    def late(self) -> bool:
        """Whether the minutes since the last checkpoint are over."""
        return time.monotonic() - self._time >= 60 * self._every.minutes

    def keep(self, method: Method) -> None:
        """Copy the weights, the best so far, for the next checkpoint."""
        self._best = _host_copy(method.state_dict())

    def save(
        self, fabric: Fabric, state: dict[str, Any], history: History, late: bool, last: bool
    ) -> None:
        """Save the `state` after a whole epoch, if a checkpoint is due; every process calls this.

        Args:
            late: what `late` said in the first process.
            last: whether this is the last epoch.
        """
        epochs = len(history.rows)
        if not last and (epochs - self._last < self._every.epochs or not late):
            return
        sharded = isinstance(fabric.strategy, FSDPStrategy)
        before, best = self._last, self._best
        self._last, self._time, self._best = epochs, time.monotonic(), None
        if fabric.global_rank:
            if sharded:
                fabric.save(self._checkpoints.state(epochs), state)  # takes part, writes nothing
            return
        self._wait()
        write, past = self._checkpoints.write, History(list(history.rows))
        if sharded:  # the processes collect the state together, so the training has to wait
            write(past, before, lambda path: fabric.save(path, state), best, self._name)
            return
        copied = _host_copy({name: part.state_dict() for name, part in state.items()})
        gpu = fabric.device.type == "cuda"
        on_host = torch.cuda.current_stream().record_event() if gpu else None

        def save_state(path: Path) -> None:
            content = io.BytesIO()  # of a full disk torch.save would not say that the disk is full
            torch.save(copied, content)
            path.write_bytes(content.getbuffer())

        def work() -> None:
            if on_host:
                on_host.synchronize()
            write(past, before, save_state, best, self._name)

        self._writing = self._thread.submit(work)

    def _wait(self) -> None:
        """Wait for the checkpoint that is written, and raise its error."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()


def _host_copy(value: Any) -> Any:
    """A copy of a state in the memory of the host, pinned and without waiting for a GPU."""
    if isinstance(value, Tensor):
        if value.device.type == "cpu":
            return value.detach().clone()
        place = torch.empty_like(value, device="cpu", pin_memory=True)
        return place.copy_(value.detach(), non_blocking=True)
    if isinstance(value, dict):
        copied = copy.copy(value)  # with the attributes of a module's state
        copied.update({key: _host_copy(part) for key, part in value.items()})
        return copied
    return [_host_copy(part) for part in value] if isinstance(value, list) else value
