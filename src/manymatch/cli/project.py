"""The project of a command: the settings and models in the current folder."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manymatch.config.layout import Layout
from manymatch.config.names import preset_path
from manymatch.config.params import Params, read_params
from manymatch.config.preset import Preset, read_preset
from manymatch.config.strict import yaml_value
from manymatch.datasets import DATASETS
from manymatch.methods import check_model, check_read
from manymatch.util.errors import ConfigError, nearest, repeated
from manymatch.util.parts import Part, Parts

if TYPE_CHECKING:
    from manymatch.evaluation.split_results import EvaluationOptions

LAYOUT = Layout()


def require_project() -> None:
    """Raise a `ConfigError` if the current folder has no params.yaml, for every command that uses a
    project."""
    if not os.path.lexists(LAYOUT.params):
        raise ConfigError(
            f"{Path.cwd()}: no project here, because there is no params.yaml. Change to the folder "
            "of a project. To start a project, clone ManyMatch and work in the clone."
        )


def params() -> Params:
    """The settings in params.yaml.

    Raises:
        ConfigError: the file is faulty, or names a data set that is not known where a misspelt name
            would be left out without a word.
    """
    require_project()
    settings = read_params(LAYOUT.params)
    folders = (folder.name for folder in LAYOUT.presets.glob("*/"))
    known = {*DATASETS, *settings.sources, *settings.datasets, *folders}
    groups = {"shards.urls": [*settings.shards.urls]} | {
        f"extraction.{name}.published": [*one.published]
        for name, one in settings.extraction.items()
    }
    for key, names in groups.items():
        for name in names:
            if name not in known:
                raise ConfigError(f"params.yaml: {key}: no data set '{name}'{nearest(name, known)}")
    return settings


def preset(dataset: str, name: str, overrides: list[str] | None = None) -> Preset:
    """The preset, changed by the `--set` options in `overrides`."""
    require_project()
    path = preset_path(LAYOUT.presets, dataset, name)
    settings = read_preset(path, settings_of(overrides), check_model)
    check_read(settings, f"{path}: ")
    return settings


def settings_of(overrides: list[str] | None) -> dict[str, Any]:
    """The keys and values of the `--set` options.

    Raises:
        ConfigError: an option is faulty, or two have the same key.
    """
    settings = [override(text) for text in overrides or []]
    if key := repeated(key for key, _ in settings):
        raise ConfigError(f"--set {key}: the key is given twice. Remove one of the two")
    return dict(settings)


def override(text: str) -> tuple[str, Any]:
    """Key and value of one `--set` option."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise ConfigError(f"--set {text}: expected KEY=VALUE, such as training.epochs=2")
    return key, yaml_value(value, f"--set {text}")


def parts(output: Path, part: str | None) -> Parts:
    """The parts of a stage's `output`, and the part that `--part` asks for, if any."""
    return Parts(LAYOUT.parts(output), Part.read(part) if part is not None else None)


def trained(dataset: str, name: str) -> tuple[Path, Path]:
    """The folder of a trained model, and the folder of the shards with its features."""
    require_project()
    folder = LAYOUT.model(dataset, name)
    stored_preset = folder / "preset.json"
    settings = read_preset(stored_preset) if stored_preset.is_file() else preset(dataset, name)
    return folder, LAYOUT.shards(dataset, settings.features)


def trained_names(params: Params, dataset: str) -> list[str]:
    """The trained models among the presets that params.yaml names."""
    warm = [start.preset for start in params.warm_starts.values() if start.dataset == dataset]
    return [name for name in [*params.presets, *warm] if LAYOUT.model(dataset, name).is_dir()]


def evaluation_options(dataset: str, split: str | None) -> "EvaluationOptions":
    """The tables of a data set, and `evaluation` in params.yaml, with another split if given."""
    from manymatch.evaluation.split_results import EvaluationOptions

    settings = params().evaluation
    return EvaluationOptions(
        LAYOUT.relevance(dataset),
        LAYOUT.captions(dataset),
        split or settings.split,
        settings.depth,
        settings.samples,
        LAYOUT.votes(dataset),
    )
