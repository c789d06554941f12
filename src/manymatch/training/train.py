"""The stage `train`: one preset makes one model."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Preset
from manymatch.methods import build_method, vocabulary_of
from manymatch.methods.shared.method import Method
from manymatch.model.checkpoint import TRAINED_IN, save_model
from manymatch.networks.device import tf32
from manymatch.networks.encoders.cnn import CNN
from manymatch.results.machine import Clock, record
from manymatch.shards.read import Index, caption_texts, read_index
from manymatch.training.checkpoint_writer import Writer
from manymatch.training.checkpoints import RSUM, Checkpoints, History, fingerprint
from manymatch.training.curves import Curves
from manymatch.training.data import Data
from manymatch.training.helpers import first_process, helped
from manymatch.training.loop import AfterEpoch, fit, reseed
from manymatch.training.machine import Machine, choose_machine, description
from manymatch.training.run_context import deterministic, memory_faults, quiet
from manymatch.training.torchrun import end_with_torchrun
from manymatch.training.validation import precision_by_score
from manymatch.training.warm_start import Source, find_source
from manymatch.util.errors import ConfigError
from manymatch.util.progress import say


def train(
    preset: Preset,
    shards: Path,
    vocabulary: Path,
    model: Path,
    curves: Path,
    checkpoints: Path,
    models: Path = Path("models"),
    usage: Path | None = None,
    end_of_epoch: AfterEpoch | None = None,
    relevance: Path | None = None,
) -> None:
    """Train by `preset` and write the folder `model` with the weights of the best epoch.

    A killed run resumes from its last checkpoint. On the CPU its result is bit-identical to the
    result without a kill. With several devices every process runs this function (`helpers`); the
    first one writes.

    Args:
        preset: the settings.
        shards: a folder of shards with the splits `train` and `validation`.
        vocabulary: the file of the training captions' words.
        model: the folder to write.
        curves: folder for the curves of the training.
        checkpoints: folder of the files from which a killed run resumes; removed at the end.
        models: the folder of the preset's `warm_start.model`.
        usage: file for the time and memory of the training (`util.machine`); None: no file.
        end_of_epoch: see `AfterEpoch`.
        relevance: the data set's judgments, for the shares of right results at scores.

    Raises:
        ConfigError, DataError: preset and data do not fit, or training diverges.
        DeviceMemoryError: a batch needs more memory than the device has.
        CheckpointError: the model of the warm start is missing or does not fit.
        ManyMatchError: another process of the training was killed.
    """
    end_with_torchrun()
    clock = Clock()
    index = _checked_index(preset, shards)
    machine = choose_machine(preset.training)
    words = vocabulary_of(
        preset.method, preset.model, Vocabulary.load(vocabulary), caption_texts(shards)
    )
    data = Data(shards, words)
    source = find_source(preset, models)
    inputs = fingerprint(
        preset, shards, vocabulary, repr(machine), source.sha256 if source else None
    )
    store = Checkpoints(checkpoints, inputs)
    history = _history(store)
    resumed = bool(history.rows)
    method = _method(preset, data.vocabulary, index, source)
    method.precision = machine.precision  # validation embeds as training does
    has_cnn = any(isinstance(part, CNN) for part in method.modules())
    exact = deterministic(machine.accelerator == "cpu", same_shapes=has_cnn)
    if first_process():
        say(description(preset.training, machine))
    with (
        quiet(),
        exact,
        tf32(machine.tf32),
        Curves(curves, history, preset.training.logger) as live,
    ):
        # A run that was killed between the last epoch and the model is already trained.
        if not history.ended(preset.training.epochs, preset.training.patience):
            places = shards, vocabulary, model, curves, checkpoints, models
            help_here = partial(train, preset, *places, end_of_epoch=end_of_epoch)
            trained = copy.deepcopy(method) if machine.sharded else method
            every, epochs = preset.training.checkpoint_every, len(history.rows)
            writer = Writer(store, every, epochs, preset.method)
            with memory_faults(), helped(machine.devices, help_here), writer:
                fit(trained, preset, data, machine, history, writer, live, end_of_epoch)
    if first_process():
        _write(model, method, preset, data, index, history, store, source, machine, relevance)
        if usage is not None:
            record(usage, "train", clock.usage(str(machine.first_device), resumed))


def _checked_index(preset: Preset, shards: Path) -> Index:
    index = read_index(shards)
    if index.features != preset.features:
        raise ConfigError(
            f"features: the preset is for '{preset.features}', but {shards} holds "
            f"'{index.features}'. Run 'manymatch shards {index.dataset} {preset.features}'."
        )
    for split in ("train", "validation"):
        index.split(split)
    if index.dtype == "uint8" and preset.augmentation.region_drop:
        raise ConfigError(
            f"augmentation.region_drop: '{index.features}' are pixels without regions. Set it to 0."
        )
    return index


def _history(store: Checkpoints) -> History:
    """The history of the checkpoint from which to resume, or an empty history."""
    history, fault = store.find()
    if first_process():
        if history.rows:
            cause = f", because {store.folder}: {fault}" if fault else ""
            say(f"resuming after epoch {len(history.rows)}{cause}")
        elif fault:
            say(f"{store.folder} is ignored and training starts anew: {fault}")
    return history


def _method(
    preset: Preset, vocabulary: AnyVocabulary, index: Index, source: Source | None
) -> Method:
    """The method with the weights with which training begins."""
    reseed(preset.seed, 0, 0)
    method = build_method(
        preset.method, preset.model, vocabulary=vocabulary, feature_width=index.width
    )
    if index.dtype == "uint8" and not any(isinstance(part, CNN) for part in method.modules()):
        raise ConfigError(
            f"'{index.features}' are pixels, which only a CNN can read. Give the preset's images a "
            "cnn, or set other features."
        )
    if source is not None:
        source.load(method, vocabulary)
    return method


def _write(
    folder: Path,
    method: Method,
    preset: Preset,
    data: Data,
    index: Index,
    history: History,
    store: Checkpoints,
    source: Source | None,
    machine: Machine,
    relevance: Path | None,
) -> None:
    """Write the model of the best epoch, then remove the checkpoints."""
    best = history.best
    store.load_best(method, preset.method, best)
    rsum = history.rows[best][RSUM]
    images, device = preset.training.images_per_batch, machine.first_device
    method.precision = preset.training.precision  # searches embed as the preset says
    with deterministic(machine.accelerator == "cpu"):
        precision = precision_by_score(method.to(device), data, images, device, relevance)
    facts: dict[str, Any] = {
        "dataset": index.dataset,
        "extraction": index.attributes,
        "parser": index.parser,
        "epoch": best + 1,
        "epochs": len(history.rows),
        "rsum": rsum,
        "precision": precision.curves,
        "precision_of": {"images": precision.images, "right": precision.right},
        TRAINED_IN: machine.precision,
    }
    if source is not None:
        facts["warm_start_sha256"] = source.sha256
    save_model(folder, method, preset, data.vocabulary, index.width, **facts)
    store.remove()
    say(f"{folder}: epoch {best + 1} of {len(history.rows)}, validation rsum {rsum:.1f}")
