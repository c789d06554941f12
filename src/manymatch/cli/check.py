"""The command `check`: do the settings fit together? It runs before any stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from manymatch import datasets
from manymatch.cli import killed_dvc, project
from manymatch.cli.project import LAYOUT
from manymatch.config.names import preset_path
from manymatch.config.params import Params, WarmStarted
from manymatch.config.preset import Preset
from manymatch.datasets.base import Need, missing_file
from manymatch.methods import check_model
from manymatch.util.errors import ConfigError, ManyMatchError, nearest
from manymatch.util.progress import say

commands = typer.Typer()
_LARGE_GPU = 80 * 10**9


@commands.command()
def check(
    only_settings: Annotated[
        bool,
        typer.Option("--settings", help="Do not look for images, features, vectors and weights."),
    ] = False,
) -> None:
    """Check params.yaml and the presets it names, and say what will run and what is missing.

    What is not on this machine is listed before anything runs, without a network. The command
    repairs files that a killed dvc has left half written.
    """
    params = project.params()
    killed_dvc.mend(Path())
    faults: dict[str, None] = {}
    for part in _checks(params):
        try:
            part()
        except ManyMatchError as fault:
            faults[str(fault)] = None
    if not faults and not only_settings:
        missing = list(needs(params))
        for line in dict.fromkeys(str(need) for need in missing if not need.fault):
            say(f"will be downloaded: {line}")
        faults = dict.fromkeys(str(need.fault) for need in missing if need.fault)
    if len(faults) > 1:
        for line in faults:
            say(line)
        raise ConfigError(
            f"{len(faults)} settings do not fit, or files are missing. Correct each line above."
        )
    for line in faults:
        raise ConfigError(line)
    say(
        f"datasets {', '.join(params.datasets)}; presets {', '.join(params.presets)}; "
        f"warm starts {', '.join(params.warm_starts) or 'none'}; "
        f"features {', '.join(params.features)}: all known"
    )


def _checks(params: Params) -> Iterator[Callable[[], object]]:
    """The parts of the check. Each part raises its own fault, so that one check shows all."""
    for features in params.features:
        yield partial(_check_features, params, features)
    for dataset in params.datasets:
        yield partial(_check_source, params, dataset)
        for preset in params.presets:
            yield partial(_check_preset, params, dataset, preset, None)
    for key, started in params.warm_starts.items():
        yield partial(_check_warm_start, params, key, started)
    for ensemble in params.ensembles:
        for dataset in params.datasets:
            yield partial(_check_ensemble, params, dataset, ensemble)
    for index in params.indexes.values():
        dataset, _, name = index.model.partition("/")
        yield partial(project.preset, dataset, name)
    for name, dataset in params.experiments.items():
        yield partial(_check_experiment, name, dataset)


def _check_source(params: Params, dataset: str) -> None:
    from manymatch import datasets

    datasets.check_settings(dataset, params.source(dataset))


def _check_features(params: Params, name: str) -> None:
    from manymatch import features
    from manymatch.features import importers

    settings = params.extraction_of(name)
    for published in settings.published.values():
        importers.entry_point(published.format)
    others = [dataset for dataset in params.datasets if dataset not in settings.published]
    if any(has_images(params, dataset) for dataset in others):
        features.entry_points(name, settings)


def _check_ensemble(params: Params, dataset: str, ensemble: str) -> None:
    warm = {start.preset for start in params.warm_starts.values() if start.dataset == dataset}
    for member in ensemble.split("+"):
        if member not in {*params.presets, *warm} and not LAYOUT.model(dataset, member).is_dir():
            raise ConfigError(
                f"params.yaml: ensembles: no stage trains '{member}' of '{ensemble}' on {dataset}"
                f"{nearest(member, [*params.presets, *warm])}"
            )


def _check_experiment(name: str, dataset: str) -> None:
    from manymatch.experiments.grid import Options, experiment_of_file

    experiment_of_file(LAYOUT.experiment(name), LAYOUT, Options(dataset=dataset)).check()


def _check_warm_start(params: Params, key: str, started: WarmStarted) -> None:
    name = f"{started.dataset}-{started.preset}"
    if key != name:
        raise ConfigError(
            f"params.yaml: warm_starts: the key '{key}' is not DATASET-PRESET of its entry. "
            f"Rename the key to '{name}'."
        )
    _check_preset(params, started.dataset, started.preset, started.model)


def warn_of_memory(path: Path, preset: Preset) -> None:
    """Say if a GPU of this machine (without one: any GPU) is too small for the preset."""
    import torch

    from manymatch.training.gpu_memory import estimated_bytes

    gpus = torch.cuda.device_count()
    sizes = [torch.cuda.get_device_properties(number).total_memory for number in range(gpus)]
    size, needed = min(sizes, default=_LARGE_GPU), estimated_bytes(preset) // max(1, gpus)
    if needed > size:
        say(
            f"{path}: a step needs about {needed / 1e9:.0f} GB of a GPU's memory, but "
            f"{'this machine has' if gpus else 'a large GPU has'} {size / 1e9:.0f} GB. "
            "Set cnn.checkpointing: true, raise training.accumulate, or lower "
            "training.images_per_batch."
        )


def _check_preset(params: Params, dataset: str, name: str, starts_from: str | None) -> None:
    from manymatch.methods import check_model
    from manymatch.methods.pretrained import PretrainedSettings

    path = preset_path(LAYOUT.presets, dataset, name)
    preset = project.preset(dataset, name)
    settings = check_model(preset.method, preset.model)
    if preset.features not in params.features:
        raise ConfigError(
            f"{path}: no stage makes the features '{preset.features}'. "
            "Add them to 'features' in params.yaml."
        )
    if isinstance(settings, PretrainedSettings):
        extraction = params.extraction_of(preset.features)
        if (extraction.model, extraction.output) != (settings.model, "projected"):
            raise ConfigError(
                f"{path}: the features of the method 'pretrained' are those of its own model. Set "
                f"extraction.{preset.features} in params.yaml to {{kind: hf, model: "
                f"{settings.model}, output: projected}}"
            )
    warn_of_memory(path, preset)
    source_model = preset.warm_start.model if preset.warm_start else None
    if source_model != starts_from:
        raise ConfigError(
            f"{path}: the preset starts from {source_model or 'no model'}, but params.yaml says "
            f"{starts_from or 'no model'}. Name presets with a warm start under 'warm_starts', "
            "and the others under 'presets'."
        )


_GLOVE = "a file of GloVe's vectors, such as glove.840B.300d.txt (5,650 MB; 2,180 MB as a zip)"
_WORD2VEC = "word2vec's binary file GoogleNews-vectors-negative300.bin (3,640 MB)"


def needs(params: Params) -> Iterator[Need]:
    """What is missing for the stages that have not run yet. Settings that do not fit are left out:
    `manymatch check` reports them."""
    for dataset in params.datasets:
        if not LAYOUT.raw(dataset).is_dir():
            source = datasets.dataset(datasets.kind(dataset, params.source(dataset)))
            settings = datasets.check_settings(dataset, params.source(dataset))
            yield from source.needs(dataset, settings)
        for features in params.features:
            made = LAYOUT.features(dataset, features).is_file()
            if not made and (need := _feature_need(params, dataset, features)):
                yield need
    trained = {(dataset, preset) for dataset in params.datasets for preset in params.presets}
    trained |= {(start.dataset, start.preset) for start in params.warm_starts.values()}
    for dataset, preset in sorted(trained):
        if not LAYOUT.model(dataset, preset).is_dir():
            settings = project.preset(dataset, preset)
            path = preset_path(LAYOUT.presets, dataset, preset)
            yield from _settings_needs(
                check_model(settings.method, settings.model), f"{path}: model"
            )
    models = {f"warm_starts.{key}.model": start.model for key, start in params.warm_starts.items()}
    models |= {f"indexes.{key}.model": index.model for key, index in params.indexes.items()}
    for where, name in models.items():
        dataset, _, preset = name.partition("/")
        if (dataset, preset) not in trained and not LAYOUT.model(dataset, preset).is_dir():
            fault = (
                f"params.yaml: {where}: there is no model {LAYOUT.model(dataset, preset)}, and no "
                f"stage trains it. Add '{dataset}' to 'datasets' and '{preset}' to 'presets'"
            )
            yield Need(where, fault=ConfigError(fault))
    for key, index in params.indexes.items():
        where = f"params.yaml: indexes.{key}.source"
        # Stages make data/KIND/DATASET..., such as data/captions/scenes.parquet.
        room, _, name, *_ = (*Path(index.source).parts, "", "", "")
        made = room == "data" and name.partition(".")[0] in params.datasets
        if not made and (need := missing_file(where, index.source, "what is to be indexed")):
            yield need


def has_images(params: Params, name: str) -> bool:
    """Whether features can be computed from images of the data set."""
    from manymatch.datasets.fetching.gather import ImageSettings

    settings = datasets.check_settings(name, params.source(name))
    absent = isinstance(settings, ImageSettings) and settings.without_images
    return datasets.dataset(datasets.kind(name, params.source(name))).has_images and not absent


def _feature_need(params: Params, dataset: str, features: str) -> Need | None:
    from manymatch.features.weights import from_hub, needed_weights

    settings = params.extraction_of(features)
    where = f"params.yaml: extraction.{features}"
    if published := settings.published.get(dataset):
        what = f"published features of the format '{published.format}'"
        return missing_file(f"{where}.published.{dataset}.path", published.path, what)
    if not has_images(params, dataset):
        fault = (
            f"{where}.published.{dataset}: '{dataset}' has no images, so these features must be "
            "imported. Set the key to {format: FORMAT, path: PATH} (docs/features.md)"
        )
        return Need(where, fault=ConfigError(fault))
    if settings.detector and (need := from_hub(settings.detector, f"{where}.detector")):
        return need
    if settings.backbone:
        settings, where = settings.backbone, f"{where}.backbone"
    if settings.model:
        return from_hub(settings.model, f"{where}.model")
    return needed_weights(settings.kind or features, settings.weights, f"{where}.weights")


def _settings_needs(settings: BaseModel, where: str) -> Iterator[Need]:
    """The needs of a group of a method's settings and of the groups in the group."""
    from manymatch.features.weights import from_hub, needed_weights
    from manymatch.methods.pretrained import PretrainedSettings
    from manymatch.networks.encoders.bert import BertSettings
    from manymatch.networks.encoders.bert_weights import PACKAGES
    from manymatch.networks.encoders.cnn import RANDOM, CNNSettings
    from manymatch.networks.encoders.hub_text import HubTextSettings

    values: dict[str, Any] = dict(settings)
    bert = "bert" in (values.get("encoder"), values.get("concept_encoder"))
    vectors = None if bert else values.get("word_vectors")
    need: Need | None = None
    if isinstance(settings, HubTextSettings | PretrainedSettings):
        need = from_hub(settings.model, f"{where}.model")
    elif vectors == "word2vec":
        need = missing_file(f"{where}.word2vec_file", values["word2vec_file"], _WORD2VEC)
    elif vectors == "glove" and (file := values.get("glove_file")) is not None:
        need = missing_file(f"{where}.glove_file", file, _GLOVE)
    elif isinstance(settings, CNNSettings) and settings.weights != RANDOM:
        need = needed_weights(settings.backbone, settings.weights, f"{where}.weights")
    if need:
        yield need
    for key, value in values.items():
        if isinstance(value, BertSettings):
            named = f"{where}.{key}.weights"
            if bert and value.weights not in PACKAGES and (need := from_hub(value.weights, named)):
                yield need
        elif isinstance(value, BaseModel):
            yield from _settings_needs(value, f"{where}.{key}")
