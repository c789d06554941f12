"""The checkpoints from which the next run resumes after a kill, with the same result.

epoch-N.ckpt         the state after N epochs
best-N.safetensors   the best weights, of epoch N
epoch-N.json         the history of N epochs, and the hashes of the two files

Each file is written completely or not at all, and `epoch-N.json` comes last. Two checkpoints are
kept: if a file of the newer one is damaged, training resumes from the one before. `epoch-N.json`
seals its checkpoint. `util.seal` seals a folder or a file, but two checkpoints can share a file.
"""

import copy
import hashlib
import io
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies import FSDPStrategy
from torch import Tensor

from manymatch.config.preset import CheckpointEvery, Preset
from manymatch.methods import entry_point
from manymatch.methods.shared.method import Method
from manymatch.model.checkpoint import load_weights, save_weights
from manymatch.shards.index import NAME as INDEX
from manymatch.util.code_hash import code_hash
from manymatch.util.errors import CheckpointError, DataError
from manymatch.util.files import has_sha256, remove, replacing, sha256, write_json
from manymatch.util.json_file import content_hash, read_object

RSUM = "validation/rsum"
_OWN = "content_sha256"


@dataclass
class History:
    """One row of named values for each epoch."""

    rows: list[dict[str, float]] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The epoch (0-based) of the highest validation rsum; the earliest of equal ones."""
        rsums = [row[RSUM] for row in self.rows]
        return rsums.index(max(rsums))

    @property
    def improved(self) -> bool:
        """Whether the last epoch is the best."""
        return self.best == len(self.rows) - 1

    def ended(self, epochs: int, patience: int | None) -> bool:
        """Whether `epochs` are done, or `patience` of them have passed since the best."""
        done = len(self.rows)
        return done >= epochs or (
            patience is not None and done > 0 and done - 1 - self.best >= patience
        )


def fingerprint(
    preset: Preset, shards: Path, vocabulary: Path, machine: str, start: str = ""
) -> dict[str, str]:
    """The hashes of everything that a training depends on. A run resumes only if they are equal.

    The index of the folder `shards` holds the hash of each shard. `machine` is the kind and the
    number of devices, and `start` the hash of the model of a warm start, or "".
    """
    return {
        "preset": hashlib.sha256(preset.to_yaml().encode()).hexdigest(),
        "shards": sha256(shards / INDEX),
        "vocabulary": sha256(vocabulary),
        "devices": machine,
        "code": code_hash("manymatch.training.train", entry_point(preset.method)),
        "start": start,
    }


class Checkpoints:
    """The checkpoints of one run of the method `name`, in a folder of their own.

    In the block of a `with` statement a thread writes one checkpoint at a time from copies, so that
    the training continues meanwhile. The block ends when everything is written. An error of the
    thread is raised by the next checkpoint, or at the end of the block.

    Args:
        fingerprint: see the function of this name.
        every: how often checkpoints are written.
    """

    def __init__(
        self,
        folder: Path,
        fingerprint: dict[str, str],
        name: str,
        every: CheckpointEvery = CheckpointEvery(),  # noqa: B008  frozen
    ) -> None:
        self.folder, self._fingerprint, self._name, self._every = folder, fingerprint, name, every
        self._hashes: dict[str, str] = {}  # of each file that this process wrote or compared
        self._last, self._time = 0, time.monotonic()  # of the last checkpoint; 0 epochs: none
        self._best: dict[str, Tensor] | None = None
        self._writing: Future[None] | None = None

    def __enter__(self) -> "Checkpoints":
        self._thread, self._time = ThreadPoolExecutor(1), time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        self._wait()

    def find(self) -> tuple[History, str]:
        """The history of the last undamaged checkpoint, without which it has no rows; and the fault
        of any newer file, else ""."""
        faults: list[str] = []
        for record in self._records():
            try:
                history = self._read(record)
            except CheckpointError as error:
                faults.append(str(error))
            else:
                self._last = len(history.rows)
                return history, "; ".join(faults)
        return History(), "; ".join(dict.fromkeys(faults))

    def _read(self, record: Path) -> History:
        """The history in a `epoch-N.json`. It is a `CheckpointError` if a file of the checkpoint is
        missing or damaged, or if the training depends on other things."""
        try:
            content = read_object(record)
        except DataError:
            content = {}
        if content.pop(_OWN, None) != content_hash(content):
            raise CheckpointError(f"{record.name} is damaged")
        try:
            before, hashes = content["fingerprint"], content["files"]
            history = History(content["history"])
            changed = [key for key, value in self._fingerprint.items() if before.get(key) != value]
            files = {} if changed else {path: hashes[path.name] for path in self._files(history)}
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            raise CheckpointError(f"{record.name} is of another version") from None
        if changed:
            raise CheckpointError(f"it was made with another {' and '.join(changed)}")
        for path, sealed_hash in files.items():
            if not has_sha256(path, sealed_hash):
                fault = "damaged" if path.is_file() else "missing"
                raise CheckpointError(f"{path.name} is {fault}")
        self._hashes.update(hashes)
        return history

    @property
    def resumed_from(self) -> Path:
        """The state of the last checkpoint."""
        return self._state(self._last)

    def load_best(self, method: Method, epoch: int) -> None:
        """Load the weights of `epoch` (from 0). A file that was damaged since this process wrote or
        compared it is a `CheckpointError`."""
        path = self._best_weights(epoch)
        if not has_sha256(path, self._hashes[path.name]):
            fault = "the file was damaged or removed during training. Run 'train' again; the run"
            raise CheckpointError(f"{path}: {fault} continues from an earlier checkpoint")
        load_weights(path, method, self._name)

    def late(self) -> bool:
        """Whether a checkpoint is due by the minutes since the last one."""
        return time.monotonic() - self._time >= 60 * self._every.minutes

    def keep(self, method: Method) -> None:
        """Copy the weights, the best so far, for the next checkpoint."""
        self._best = _host_copy(method.state_dict())

    def save(
        self, fabric: Fabric, state: dict[str, Any], history: History, late: bool, last: bool
    ) -> None:
        """Save the `state` after a whole epoch, if a checkpoint is due; every process calls this
        with the answer of the first process to `late`. The `last` epoch is always saved."""
        epochs = len(history.rows)
        if not last and (epochs - self._last < self._every.epochs or not late):
            return
        sharded = isinstance(fabric.strategy, FSDPStrategy)
        before, best = self._last, self._best
        self._last, self._time, self._best = epochs, time.monotonic(), None
        if fabric.global_rank:
            if sharded:  # this process takes part, but writes nothing
                fabric.save(self._state(epochs), state)
            return
        self._wait()
        past = History(list(history.rows))
        if sharded:  # the processes collect the state together, so the training has to wait
            self._write(past, before, lambda path: fabric.save(path, state), best)
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
            self._write(past, before, save_state, best)

        self._writing = self._thread.submit(work)

    def _wait(self) -> None:
        """Wait for the checkpoint that is written, and raise its error."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write(
        self,
        history: History,
        before: int,
        save_state: Callable[[Path], None],
        best: Mapping[str, Tensor] | None,
    ) -> None:
        """Write the checkpoint after the epochs of `history`, with the `best` weights if they are
        not those of the checkpoint after `before` epochs, which is kept (0: there is none)."""
        state, weights = files = self._files(history)
        if best is not None:
            self._hashes[weights.name] = save_weights(weights, best, self._name)
        with replacing(state) as partial:
            save_state(partial)
            self._hashes[state.name] = sha256(partial)
        content = {
            "fingerprint": self._fingerprint,
            "history": history.rows,
            "files": {path.name: self._hashes[path.name] for path in files},
        }
        write_json(state.with_suffix(".json"), content | {_OWN: content_hash(content)})
        if before:
            files += self._files(History(history.rows[:before]))
        kept = {path.stem for path in files}
        for path in [*self.folder.glob("epoch-*"), *self.folder.glob("best-*")]:
            if path.stem not in kept:
                remove(path)

    def remove(self) -> None:
        """Remove the folder. The records go first, so that a kill leaves whole checkpoints."""
        for path in (*self._records(), self.folder):
            remove(path)

    def _records(self) -> list[Path]:
        """The records of all checkpoints, the last epoch first."""
        return sorted(self.folder.glob("epoch-*.json"), reverse=True)

    def _files(self, history: History) -> tuple[Path, ...]:
        """The state and the best weights of the checkpoint with this history."""
        return self._state(len(history.rows)), self._best_weights(history.best)

    def _state(self, epochs: int) -> Path:
        return self.folder / f"epoch-{epochs:04d}.ckpt"

    def _best_weights(self, epoch: int) -> Path:
        return self.folder / f"best-{epoch + 1:04d}.safetensors"


def _host_copy(value: Any) -> Any:
    """Copy a state to pinned memory of the host. The copy does not wait for the GPU."""
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
