"""The results of finished runs, kept by what they depend on: none is trained a second time.

`models/.ablations/DATASET/KEY/` holds `result.json` of a finished run; while one is running, its
checkpoints, model and log. KEY is the hash of preset and data, so that every ablation finds what
any other has finished.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from manymatch import __version__
from manymatch.config.layout import Layout
from manymatch.config.preset import Preset
from manymatch.experiments.ablation.kept import Result, key_of
from manymatch.shards.index import NAME as INDEX
from manymatch.shards.index import read_index
from manymatch.system import files
from manymatch.system.errors import DataError
from manymatch.training.warm_start import find_source


@dataclass(frozen=True)
class Inputs:
    """What a run reads; `models` is where the model lies that a preset may start from."""

    shards: Path
    vocabulary: Path
    captions: Path
    relevance: Path
    models: Path
    split: str

    def hashes(self, preset: Preset) -> dict[str, str]:
        """Of each input; raises `DataError` or `CheckpointError` if one is missing."""
        read_index(self.shards).split(self.split)
        for path in (self.vocabulary, self.captions, self.relevance):
            if not path.is_file():
                raise DataError(f"{path}: no such file; run the stage 'captions' first")
        start = find_source(preset, self.models)
        return {
            "start": start.sha256 if start else "",
            "shards": files.sha256(self.shards / INDEX),
            "vocabulary": files.sha256(self.vocabulary),
            "captions": files.sha256(self.captions),
            "relevance": files.sha256(self.relevance),
            "split": self.split,
        }


@dataclass(frozen=True)
class Job:
    """One run: a preset, what it reads, the folder it has for itself, and the hash of the code."""

    label: str
    preset: Preset
    inputs: Inputs
    folder: Path
    sources: str


def folder_of(layout: Layout, dataset: str, preset: Preset, inputs: Inputs) -> Path:
    """The folder of a run; equal runs have the same."""
    key = key_of(preset=preset.to_yaml(), version=__version__, **inputs.hashes(preset))
    return layout.ablation_runs(dataset) / key


def kept(job: Job, accept_stale: bool = False) -> Result | None:
    """The result of a finished run, if there is one and the code has not changed since (or that
    does not matter)."""
    try:
        result: Result = json.loads((job.folder / "result.json").read_text(encoding="utf-8"))
        current = accept_stale or result["sources"] == job.sources
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if current else None


@contextlib.contextmanager
def alone(job: Job) -> Iterator[None]:
    """Wait until no other process works on the same run, and keep others out."""
    job.folder.mkdir(parents=True, exist_ok=True)
    with (job.folder / "lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
