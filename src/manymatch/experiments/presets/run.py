"""One run of an experiment on presets: trains a model, evaluates the model, returns the numbers."""

from __future__ import annotations

import time
from pathlib import Path

import torch

from manymatch.config.layout import Layout, ResultFiles
from manymatch.config.params import Elements
from manymatch.config.preset import Preset
from manymatch.evaluation.evaluate import evaluate
from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.ranking.metrics import CUTS
from manymatch.evaluation.split_results import EvaluationOptions
from manymatch.experiments.run_folder import Numbers
from manymatch.model.checkpoint import TRAINED_IN
from manymatch.model.facts import FACTS
from manymatch.results.machine import MachineRecord
from manymatch.training.train import train
from manymatch.util.json_file import read_object

_FACTS = "parameters images captions checkpoint_sha256 data_sha256 version"
"""The numbers of a run that its provenance states."""


def train_and_evaluate(
    preset: Preset,
    layout: Layout,
    dataset: str,
    split: str,
    folder: Path,
    trained: Path | None = None,
    elements: Elements = Elements(),  # noqa: B008  frozen
) -> Numbers:
    """Train `preset` on `dataset` and evaluate the model on `split`.

    A training that was interrupted in `folder` continues after its last epoch.

    Args:
        trained: the model, if the training has been done.
        elements: selections of set elements to evaluate besides each single element.

    Returns:
        The metrics with the `hits` of the queries and the facts of training and evaluation.
        `seconds` of training are None if the training was interrupted, or done before. `pairs`
        (which set elements meet) exist for methods of sets.
    """
    model, written = trained or folder / "model", ResultFiles.inside(folder)
    shards = layout.shards(dataset, preset.features)
    seconds = None
    if not model.exists():  # a run that was killed after the training has a model already
        checkpoints = folder / "checkpoints"
        resumed = checkpoints.exists()
        started = time.monotonic()
        vocabulary = layout.vocabulary(dataset)
        train(preset, shards, vocabulary, model, folder / "curves", checkpoints, layout.models)
        seconds = None if resumed else round(time.monotonic() - started, 1)
    tables = layout.relevance(dataset), layout.captions(dataset)
    options = EvaluationOptions(*tables, split, depth=0, samples=0)
    ranked = evaluate(model, shards, written, options, elements)
    facts, origin, sets = (
        read_object(model / FACTS),
        read_object(written.provenance),
        written.run / "sets.json",
    )
    usage = MachineRecord.read(written.machine).root["evaluate"]
    return {
        "metrics": read_object(written.full),
        "hits": _hits(ranked),
        "seconds": seconds,
        "epoch": facts["epoch"],
        "epochs": facts["epochs"],
        "validation_rsum": facts["rsum"],
        TRAINED_IN: facts.get(TRAINED_IN),
        **({"pairs": read_object(sets)["pairs"]} if sets.exists() else {}),
        **{name: origin[name] for name in _FACTS.split()},
        "device": usage.device,
        "git_revision": usage.git_revision,
    }


def _hits(ranked: RankedSplit) -> dict[str, str]:
    """Each query as a digit (`results.experiments.Hits`)."""
    i2t, t2i = (
        (way.ranks[:, None] <= torch.tensor(CUTS)).sum(1).tolist()
        for way in (ranked.ranking.i2t, ranked.ranking.t2i)
    )
    captions: list[list[int]] = [[] for _ in i2t]
    for image, digit in zip(ranked.embedded.image_index.tolist(), t2i, strict=True):
        captions[image].append(digit)
    words = ["".join(map(str, digits)) for digits in captions]
    return {"i2t": "".join(map(str, i2t)), "t2i": " ".join(words)}
