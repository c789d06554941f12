"""The checkpoints from which the next run resumes after a kill, with the same result.

epoch-N.ckpt         the state after N epochs
best-N.safetensors   the best weights, of epoch N
epoch-N.json         the history of N epochs, and the hashes of the two files

Each file is written completely or not at all. `epoch-N.json` comes last, so a checkpoint with this
file is complete, after a kill at any moment. The last two checkpoints are kept: if a file of the
newer one is damaged, training resumes from the one before, with the same result.

`epoch-N.json` is the seal of its checkpoint and holds the hash of its own content. `util.seal` does
not fit: it seals a folder or one file, but two checkpoints can share one file of best weights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from manymatch.config.preset import Preset
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
Fingerprint = dict[str, str]
"""The hashes of all that a training depends on; a run resumes only with an equal fingerprint."""


@dataclass
class History:
    """One row of named values for each epoch."""

    rows: list[dict[str, float]] = field(default_factory=list)

    @property
    def best(self) -> int:
        """The epoch (0-based) of the highest validation rsum; the earliest of equal ones."""
        return max(range(len(self.rows)), key=lambda epoch: self.rows[epoch][RSUM])

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
    preset: Preset, shards: Path, vocabulary: Path, machine: str, start: str | None
) -> Fingerprint:
    """The hashes of all that a training depends on.

    Args:
        preset: the whole preset.
        shards: the folder of shards, whose index holds the hash of each shard.
        vocabulary: the vocabulary file.
        machine: kind and number of devices.
        start: hash of the model of a warm start.
    """
    return {
        "preset": hashlib.sha256(preset.to_yaml().encode()).hexdigest(),
        "shards": sha256(shards / INDEX),
        "vocabulary": sha256(vocabulary),
        "devices": machine,
        "code": code_hash("manymatch.training.train", entry_point(preset.method)),
        "start": start or "",
    }


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one run in a folder of their own."""

    folder: Path
    fingerprint: Fingerprint
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 by name, of the files that this process wrote or compared."""

    def state(self, epochs: int) -> Path:
        """The file with the state after so many epochs."""
        return self.folder / f"epoch-{epochs:04d}.ckpt"

    def find(self) -> tuple[History, str]:
        """The history of the last undamaged checkpoint, and the fault of any newer file, else "".

        Without such a checkpoint the history has no rows.
        """
        faults: list[str] = []
        for record in self._records():
            try:
                return self._read(record), "; ".join(faults)
            except CheckpointError as error:
                faults.append(str(error))
        return History(), "; ".join(dict.fromkeys(faults))

    def _read(self, record: Path) -> History:
        """The history in a `epoch-N.json`, after a check of all files of the checkpoint.

        Raises:
            CheckpointError: a file is missing or damaged, or the training depends on other things.
        """
        try:
            content = read_object(record)
            if content.pop(_OWN, None) != content_hash(content):
                raise ValueError
            fingerprint, hashes = dict(content["fingerprint"]), dict(content["files"])
            history = History(list(content["history"]))
            names = [path.name for path in self._files(history)]
        except (DataError, KeyError, TypeError, ValueError, IndexError):
            raise CheckpointError(f"{record.name} is damaged") from None
        changed = [key for key, value in self.fingerprint.items() if fingerprint.get(key) != value]
        if changed:
            raise CheckpointError(f"it was made with another {' and '.join(changed)}")
        for name in names:
            if not has_sha256(self.folder / name, hashes.get(name, "")):
                fault = "damaged" if (self.folder / name).is_file() else "missing"
                raise CheckpointError(f"{name} is {fault}")
        self.hashes.update(hashes)
        return history

    def load_best(self, method: Method, name: str, epoch: int) -> None:
        """Load the weights of `epoch` (from 0).

        Raises:
            CheckpointError: the file was damaged since this process wrote or compared it.
        """
        path = self._best(epoch)
        if not has_sha256(path, self.hashes[path.name]):
            raise CheckpointError(
                f"{path}: damaged or removed while training. Run 'train' again: an earlier "
                "checkpoint is used"
            )
        load_weights(path, method, name)

    def write(
        self,
        history: History,
        before: int,
        save_state: Callable[[Path], None],
        best: Mapping[str, Tensor] | None,
        name: str,
    ) -> None:
        """Write the checkpoint after the epochs of `history`.

        Args:
            before: the number of epochs of the checkpoint before, which is kept; 0: there is none.
            save_state: writes the state.
            best: the best weights, if they are not those of the checkpoint before.
            name: the name of the method.
        """
        state, weights = self._files(history)
        if best is not None:
            self.hashes[weights.name] = save_weights(weights, best, name)
        with replacing(state) as partial:
            save_state(partial)
            self.hashes[state.name] = sha256(partial)
        content = {
            "fingerprint": self.fingerprint,
            "history": history.rows,
            "files": {path.name: self.hashes[path.name] for path in (state, weights)},
        }
        write_json(state.with_suffix(".json"), content | {_OWN: content_hash(content)})
        kept = {state.stem, weights.stem}
        if before:
            kept |= {path.stem for path in self._files(History(history.rows[:before]))}
        for path in [*self.folder.glob("epoch-*"), *self.folder.glob("best-*")]:
            if path.stem not in kept:
                remove(path)

    def remove(self) -> None:
        """Remove the folder. The records go first, so that a kill leaves whole checkpoints."""
        for record in self._records():
            remove(record)
        remove(self.folder)

    def _records(self) -> list[Path]:
        """The records of all checkpoints, the last epoch first."""
        return sorted(self.folder.glob("epoch-*.json"), reverse=True)

    def _files(self, history: History) -> tuple[Path, Path]:
        """The state and the best weights of the checkpoint with this history."""
        return self.state(len(history.rows)), self._best(history.best)

    def _best(self, epoch: int) -> Path:
        return self.folder / f"best-{epoch + 1:04d}.safetensors"
