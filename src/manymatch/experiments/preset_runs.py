"""Trainings of presets in experiments and searches: settings, inputs, one training, its test."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from manymatch.config.layout import Layout, ResultFiles
from manymatch.config.params import Elements
from manymatch.config.preset import Preset, read_preset
from manymatch.evaluation.ranking.metrics import CUTS
from manymatch.experiments.engine import Numbers, Run, key_of
from manymatch.experiments.grid import PRESET, Settings
from manymatch.methods import check_model, check_read, entry_point, method_class
from manymatch.model.checkpoint import TRAINED_IN
from manymatch.model.facts import FACTS
from manymatch.results.machine import MachineRecord
from manymatch.shards.index import NAME as INDEX
from manymatch.shards.index import read_index
from manymatch.training.warm_start import find_source
from manymatch.util import files
from manymatch.util.code_hash import code_hash
from manymatch.util.errors import ConfigError, DataError, nearest
from manymatch.util.json_file import read_object

if TYPE_CHECKING:
    from manymatch.evaluation.protocols.ranked_split import RankedSplit
    from manymatch.training.checkpoints import History

STAGES = "manymatch.training.train", "manymatch.evaluation.evaluate"
_DEVICES = "training.devices"
_ORIGIN = "parameters", "images", "captions", "checkpoint_sha256", "data_sha256", "version"
"""The numbers of a run that the provenance of its metrics states."""


def training_inputs(layout: Layout, dataset: str, preset: Preset) -> dict[str, str]:
    """The hashes of the data that the training of `preset` reads."""
    start = find_source(preset, layout.models)
    return {
        "shards": files.sha256(layout.shards(dataset, preset.features) / INDEX),
        "vocabulary": files.sha256(layout.vocabulary(dataset)),
        "start": start.sha256 if start else "",
    }


def portable_inputs(
    layout: Layout, dataset: str, preset: Preset, inputs: dict[str, Any]
) -> dict[str, Any]:
    """`inputs` with what the method reads of the shards in place of their hash, because processors
    compute features with other last bits: the kind of the features, and the hash of the graphs. A
    missing table of graphs is a `DataError`."""
    same: dict[str, Any] = {
        "shards": read_index(layout.shards(dataset, preset.features)).attributes
    }
    if method_class(preset.method).reads_graphs:
        graphs = layout.scene_graphs(dataset)
        if not graphs.is_file():
            raise DataError(f"{graphs}: no such file. Run the stage 'scene-graphs' first")
        same["scene_graphs"] = files.sha256(graphs)
    return inputs | same


def training_run(
    layout: Layout, dataset: str, preset: Preset, inputs: dict[str, str], label: str = ""
) -> Run:
    """The run that only trains `preset`. `tune` does such runs, and keeps the best models."""
    key = key_of(preset=preset.model_dump(mode="json"), inputs=inputs)
    return Run(
        label=label,
        settings=preset,
        seed=preset.seed,
        code=code_hash(STAGES[0], entry_point(preset.method)),
        folder=layout.experiment_runs("tuning") / key,
    )


def run_preset(path: Path, overrides: Settings) -> Preset:
    """The preset `path` with `overrides`, for a run of an experiment, which one device trains. The
    devices that the file asks for are those of `train`.

    Raises:
        ConfigError: a key is unknown, a value does not fit, or `overrides` ask for several devices.
    """
    preset = read_preset(path, overrides, check_model)
    if preset.training.devices not in (1, "auto"):
        if _DEVICES in overrides:
            raise ConfigError(
                f"{_DEVICES}: an experiment trains each run on one device. Set it to 'auto'"
            )
        preset = read_preset(path, {**overrides, _DEVICES: "auto"}, check_model)
    check_model(preset.method, preset.model)
    check_read(preset, f"{path}: ")
    return preset


def full_keys(settings: Settings, method: str) -> Settings:
    """The settings of the preset, without its name, by the keys that `full_key` gives. An unknown
    key is a `ConfigError`, and so are two keys of the same setting."""
    full: Settings = {}
    for key, value in settings.items():
        if key == PRESET:
            continue
        name = full_key(key, method)
        if name in full:
            raise ConfigError(f"'{name}' is given twice, also without 'model.'. Leave one out")
        full[name] = value
    return full


def full_key(key: str, method: str) -> str:
    """`key` as a key of the preset: a key that the preset does not have belongs to the model."""
    first = key.partition(".")[0]
    if first in Preset.model_fields:
        return key
    settings = method_class(method).Settings.model_fields
    if first not in settings:
        known = {PRESET, *Preset.model_fields, *settings} - {"seed"}
        raise ConfigError(f"unknown key '{key}' of method '{method}'{nearest(first, known)}")
    return f"model.{key}"


def train_preset(
    preset: Preset,
    layout: Layout,
    dataset: str,
    folder: Path,
    end_of_epoch: "Callable[[History], None] | None" = None,
) -> Path:
    """Train `preset` on `dataset` in the folder of a run, and return the folder of the model. A run
    that was killed continues after its last epoch, or has a model already."""
    from manymatch.training.train import train

    model, relevance = folder / "model", layout.relevance(dataset)
    if not model.exists():
        train(
            preset,
            layout.shards(dataset, preset.features),
            layout.vocabulary(dataset),
            model,
            folder / "curves",
            folder / "checkpoints",
            layout.models,
            end_of_epoch=end_of_epoch,
            relevance=relevance if relevance.is_file() else None,
        )
    return model


def train_and_evaluate(
    preset: Preset,
    layout: Layout,
    dataset: str,
    split: str,
    folder: Path,
    trained: Path | None = None,
    elements: Elements = Elements(),  # noqa: B008  frozen
) -> Numbers:
    """Train `preset` on `dataset`, unless there is a `trained` model, and evaluate the model on
    `split`, with selections of set `elements` besides each single element.

    Returns:
        The metrics with the `hits` of the queries and the facts of training and evaluation.
        `seconds` of training are None if the training was interrupted, or done before. `pairs`
        (which set elements meet) exist for methods of sets.
    """
    from manymatch.evaluation.evaluate import evaluate
    from manymatch.evaluation.split_results import EvaluationOptions

    started = time.monotonic()
    begun = any(folder.joinpath(name).exists() for name in ("model", "checkpoints"))
    model = trained or train_preset(preset, layout, dataset, folder)
    seconds = None if trained or begun else round(time.monotonic() - started, 1)
    written = ResultFiles.inside(folder)
    tables = layout.relevance(dataset), layout.captions(dataset)
    options = EvaluationOptions(*tables, split, depth=0, samples=0)
    ranked = evaluate(model, layout.shards(dataset, preset.features), written, options, elements)
    facts, origin = read_object(model / FACTS), read_object(written.provenance)
    sets = written.run / "sets.json"
    usage = MachineRecord.read(written.machine).root["evaluate"]
    return {
        "metrics": read_object(written.full),
        "hits": _hits(ranked),
        "seconds": seconds,
        "epoch": facts.get("epoch"),  # None: nothing was learnt
        "epochs": facts.get("epochs"),
        "validation_rsum": facts["rsum"],
        TRAINED_IN: facts.get(TRAINED_IN),
        **({"pairs": read_object(sets)["pairs"]} if sets.exists() else {}),
        **{name: origin[name] for name in _ORIGIN},
        "device": usage.device,
        "git_revision": usage.git_revision,
    }


def _hits(ranked: "RankedSplit") -> dict[str, str]:
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
