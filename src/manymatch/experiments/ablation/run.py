"""One run of an ablation: train, evaluate, keep the numbers."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymatch.config.layout import ResultFiles
from manymatch.evaluation.evaluate import evaluate
from manymatch.experiments.ablation.store import Job, Result, alone, kept
from manymatch.methods.checkpoint import FACTS
from manymatch.system import files
from manymatch.system.machine import MachineRecord
from manymatch.training.train import train

_FROM_PROVENANCE = (
    "parameters",
    "images",
    "captions",
    "checkpoint_sha256",
    "data_sha256",
    "version",
)


def run(job: Job, keep: bool, accept_stale: bool) -> Result:
    """The result of `job`, trained now unless another process has finished it meanwhile.

    What training says goes to the file `log.txt` in the job's folder. `keep`: the trained model
    stays there, in `model/`.
    """
    with alone(job):
        result = kept(job, accept_stale)
        if result is None:
            _forget_other_sources(job)
            with _log(job.folder / "log.txt"):
                result = _train_and_evaluate(job)
            files.write_json(job.folder / "result.json", result)
        _tidy(job.folder, keep={"result.json", "log.txt", *(["model"] if keep else [])})
    return result


@contextlib.contextmanager
def _log(path: Path) -> Iterator[None]:
    with path.open("w", encoding="utf-8") as log, contextlib.redirect_stderr(log):
        yield


def _train_and_evaluate(job: Job) -> Result:
    folder, inputs = job.folder, job.inputs
    seconds = _train(job)
    written = ResultFiles.inside(folder)
    evaluate(
        folder / "model",
        inputs.shards,
        inputs.relevance,
        written,
        captions=inputs.captions,
        split=inputs.split,
        depth=0,
        samples=0,
    )
    facts, provenance = _read(folder / "model" / FACTS), _read(written.provenance)
    usage = MachineRecord.read(written.machine).root["evaluate"]
    return {
        "metrics": _read(written.full),
        "seconds": seconds,
        "epoch": facts["epoch"],
        "epochs": facts["epochs"],
        "validation_rsum": facts["rsum"],
        "sources": job.sources,
        "device": usage.device,
        "git_revision": usage.git_revision,
        **_pairs(written.run / "sets.json"),
        **{name: provenance[name] for name in _FROM_PROVENANCE},
    }


def _pairs(sets: Path) -> dict[str, Any]:
    """Which elements of sets meet; nothing of a method without sets."""
    return {"pairs": _read(sets)["pairs"]} if sets.exists() else {}


def _train(job: Job) -> float | None:
    """Train, or go on training; the seconds it took, if all of it was now."""
    folder, inputs = job.folder, job.inputs
    model, curves, checkpoints = (folder / name for name in ("model", "curves", "checkpoints"))
    if model.exists():  # a run killed between training and result
        return None
    resumed = checkpoints.exists()
    started = time.monotonic()
    places = model, curves, checkpoints
    train(job.preset, inputs.shards, inputs.vocabulary, *places, inputs.models)
    return None if resumed else round(time.monotonic() - started, 1)


def _forget_other_sources(job: Job) -> None:
    """Nothing of a run that other code began, or finished, goes into this one."""
    mark = job.folder / "sources"
    if not mark.is_file() or mark.read_text() != job.sources:
        _tidy(job.folder, keep=set())
        files.write_text(mark, job.sources)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _tidy(folder: Path, keep: set[str]) -> None:
    for path in folder.iterdir():
        if path.name not in {"lock", *keep}:
            files.remove(path)
