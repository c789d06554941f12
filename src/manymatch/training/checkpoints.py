"""What a killed run leaves, so that the next one goes on and ends exactly as it would have.

`last.ckpt` holds the state after the last whole epoch, `best-EPOCH.safetensors` the best weights
so far. Each is replaced whole, the weights first: whenever a run is killed, the weights that
`last.ckpt` calls the best are there.
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
"""What a run depends on; only a run with an equal one may go on from a checkpoint."""


def fingerprint(
    preset: Preset, shards: Path, vocabulary: Path, machine: str, start: str | None
) -> Fingerprint:
    """The hashes of what decides a training. `shards` are known by their index, which holds the
    hash of each; `machine` says on what kind and number of devices it runs; `start` is the hash
    of the model that it starts from, if there is one."""
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
    """The folder of one run's checkpoints."""

    folder: Path
    fingerprint: Fingerprint

    @property
    def last(self) -> Path:
        return self.folder / "last.ckpt"

    def best(self, epoch: int) -> Path:
        return self.folder / f"best-{epoch:04d}.safetensors"

    def find(self) -> tuple[History | None, str]:
        """The history of a checkpoint to go on from, or None and why there is none to speak of
        ("" if there is no file at all)."""
        if not self.last.is_file():
            return None, ""
        try:
            state = torch.load(self.last, map_location="cpu", weights_only=True, mmap=True)
            found, rows = state["fingerprint"], state["history"]
        except Exception as error:  # whatever a damaged or foreign file raises in torch
            return None, f"it cannot be read ({type(error).__name__})"
        changed = [key for key, value in self.fingerprint.items() if found.get(key) != value]
        if changed:
            return None, f"it was made with another {' and '.join(changed)}"
        history = History(rows)
        if not self.best(history.best).is_file():
            return None, "its best weights are gone"
        return history, ""

    def save_best(self, method: Method, name: str, epoch: int) -> None:
        """Keep the weights of `epoch`, which is the best so far."""
        save_weights(self.best(epoch), method, name)

    def load_best(self, method: Method, name: str, epoch: int) -> None:
        load_weights(self.best(epoch), method, name)

    def save_last(self, trainer: pl.Trainer, history: History) -> None:
        """Save the state after a whole epoch; called in every process."""
        if not trainer.is_global_zero:
            trainer.save_checkpoint(self.last)  # takes part, writes nothing
            return
        with replacing(self.last) as partial:
            trainer.save_checkpoint(partial)
        for path in self.folder.glob("best-*.safetensors"):
            if path != self.best(history.best):
                remove(path)
