"""The checkpoints from which the next run resumes after a kill, with the same result.

`last.ckpt` holds the state after the last whole epoch, `best-EPOCH.safetensors` the best weights so
far. A file is replaced as a whole, the weights first: after a kill at any moment, the weights that
`last.ckpt` names as the best exist.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pytorch_lightning as pl
import torch

from manymatch.config.preset import Preset
from manymatch.methods import entry_point
from manymatch.methods.base import Method
from manymatch.methods.checkpoint import load_weights, save_weights
from manymatch.shards.index import NAME as INDEX
from manymatch.system.code_hash import code_hash
from manymatch.system.files import remove, replacing, sha256
from manymatch.training.history import History

Fingerprint = dict[str, str]
"""The hashes of all that a training depends on; a run resumes only with an equal fingerprint."""


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

    @property
    def last(self) -> Path:
        return self.folder / "last.ckpt"

    def best(self, epoch: int) -> Path:
        return self.folder / f"best-{epoch:04d}.safetensors"

    def find(self) -> tuple[History | None, str]:
        """The history of the checkpoint from which to resume, and ""; without such a checkpoint
        None and the reason ("" if there is no file)."""
        if not self.last.is_file():
            return None, ""
        try:
            state = torch.load(self.last, map_location="cpu", weights_only=True, mmap=True)
            saved, rows = state["fingerprint"], state["history"]
        except Exception as error:  # a damaged or foreign file may raise anything in torch
            return None, f"it cannot be read ({type(error).__name__})"
        changed = [key for key, value in self.fingerprint.items() if saved.get(key) != value]
        if changed:
            return None, f"it was made with another {' and '.join(changed)}"
        history = History(rows)
        if not self.best(history.best).is_file():
            return None, "its best weights are missing"
        return history, ""

    def save_best(self, method: Method, name: str, epoch: int) -> None:
        """Save the weights of `epoch`, the best so far."""
        save_weights(self.best(epoch), method, name)

    def load_best(self, method: Method, name: str, epoch: int) -> None:
        load_weights(self.best(epoch), method, name)

    def save_last(self, trainer: pl.Trainer, history: History) -> None:
        """Save the state after a whole epoch; every process calls this."""
        if not trainer.is_global_zero:
            trainer.save_checkpoint(self.last)  # takes part, writes nothing
            return
        with replacing(self.last) as partial:
            trainer.save_checkpoint(partial)
        for path in self.folder.glob("best-*.safetensors"):
            if path != self.best(history.best):
                remove(path)
