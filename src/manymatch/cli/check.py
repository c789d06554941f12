"""The command `check`: do the settings fit together? It runs before any stage."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from manymatch import datasets
from manymatch.cli import killed_dvc, project
from manymatch.cli.needs import has_images, needs
from manymatch.cli.project import LAYOUT
from manymatch.config.names import preset_path
from manymatch.config.params import Extraction, Params, WarmStarted
from manymatch.config.preset import Preset
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
            yield partial(_check_trained, params, "ensembles", dataset, ensemble)
    for key in ("probes", "clusters"):
        for model in getattr(params, key).values():
            yield partial(_check_trained, params, key, model.dataset, model.preset)
    for index in params.indexes.values():
        dataset, _, name = index.model.partition("/")
        yield partial(project.preset, dataset, name)
    for name, dataset in params.experiments.items():
        yield partial(_check_experiment, name, dataset)


def _check_source(params: Params, dataset: str) -> None:
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


def _check_trained(params: Params, key: str, dataset: str, ensemble: str) -> None:
    warm = {start.preset for start in params.warm_starts.values() if start.dataset == dataset}
    for member in ensemble.split("+"):
        if member not in {*params.presets, *warm} and not LAYOUT.model(dataset, member).is_dir():
            raise ConfigError(
                f"params.yaml: {key}: no stage trains '{member}' of '{ensemble}' on {dataset}"
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

    from manymatch.training.gpu_memory import estimated_bytes, need_text

    gpus = torch.cuda.device_count()
    sizes = [torch.cuda.get_device_properties(number).total_memory for number in range(gpus)]
    size, needed = min(sizes, default=_LARGE_GPU), estimated_bytes(preset) // max(1, gpus)
    if needed > size:
        say(
            f"{path}: {need_text(needed)}, but "
            f"{'this machine has' if gpus else 'a large GPU has'} {size / 1e9:.0f} GB. "
            "Set checkpointing: true under cnn or backbone, raise training.accumulate, or lower "
            "training.images_per_batch."
        )


def _check_pixels(path: Path, backbone: Any, extraction: Extraction, features: str) -> None:
    """Refuse an extraction that makes other pixels than the `backbone` in the preset reads."""
    from manymatch.networks.backbones.picture_recipe import read_recipe
    from manymatch.training.gpu_memory import folder_here

    mend = (
        f"Set extraction.{features} in params.yaml to {{kind: pixels, model: {backbone.model}}}, "
        "with the backbone's size and geometry"
    )
    if extraction.kind != "pixels":
        raise ConfigError(f"{path}: a backbone reads pixels. {mend}")
    if extraction.model is None:  # published
        return
    asked: list[Any] = [(one.size, one.geometry) for one in (backbone, extraction)]
    fits = asked[0] == asked[1] or backbone.model != extraction.model
    try:
        read, made = folder_here(backbone.model), folder_here(extraction.model)
        if read and made:  # two models may have one recipe, and null may be the other's size
            asked = [read_recipe(read, *asked[0]), read_recipe(made, *asked[1])]
            fits = str(asked[0]) == str(asked[1])
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    if not fits:
        raise ConfigError(
            f"{path}: the backbone reads {asked[0]}, but the features '{features}' are "
            f"{asked[1]}. {mend}"
        )


def _check_preset(params: Params, dataset: str, name: str, starts_from: str | None) -> None:
    from manymatch.methods.pretrained import PretrainedSettings

    path = preset_path(LAYOUT.presets, dataset, name)
    preset = project.preset(dataset, name)
    settings = check_model(preset.method, preset.model, path)
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
    backbone = getattr(getattr(settings, "image", settings), "backbone", None)
    if backbone is not None:
        _check_pixels(path, backbone, params.extraction_of(preset.features), preset.features)
    warn_of_memory(path, preset)
    source_model = preset.warm_start.model if preset.warm_start else None
    if source_model != starts_from:
        raise ConfigError(
            f"{path}: the preset starts from {source_model or 'no model'}, but params.yaml says "
            f"{starts_from or 'no model'}. Name presets with a warm start under 'warm_starts', "
            "and the others under 'presets'."
        )
