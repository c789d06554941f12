"""The project that a command works in: the folder it is called from, its settings and models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manymatch.config.layout import Layout
from manymatch.config.params import Params, read_params
from manymatch.config.preset import Preset, preset_path, read_preset
from manymatch.config.strict import yaml_value
from manymatch.system.errors import ConfigError
from manymatch.system.parts import Part, Parts

LAYOUT = Layout()


def params() -> Params:
    """What params.yaml says."""
    return read_params(LAYOUT.params)


def preset(dataset: str, method: str, overrides: list[str] | None = None) -> Preset:
    """The preset, with what `--set` says on top."""
    path = preset_path(LAYOUT.presets, dataset, method)
    return read_preset(path, dict(override(text) for text in overrides or []))


def override(text: str) -> tuple[str, Any]:
    """Key and value of a `--set`."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise ConfigError(f"--set {text}: expected KEY=VALUE")
    return key, yaml_value(value, f"--set {text}")


def parts(output: Path, part: str | None) -> Parts:
    """The parts of a stage's `output`, and which of them `--part` wants."""
    return Parts(LAYOUT.parts(output), Part.read(part) if part else None)


def trained(dataset: str, name: str) -> tuple[Path, Path]:
    """A trained model's folder, and that of the shards of its features."""
    folder = LAYOUT.model(dataset, name)
    own = folder / "preset.yaml"
    found = read_preset(own) if own.is_file() else preset(dataset, name)
    return folder, LAYOUT.shards(dataset, found.features)


def trained_names(params: Params, dataset: str) -> list[str]:
    """The models that params.yaml names and that are trained."""
    warm = [each.method for each in params.warm_starts.values() if each.dataset == dataset]
    return [name for name in [*params.methods, *warm] if LAYOUT.model(dataset, name).is_dir()]


def outputs(dataset: str, name: str) -> tuple[Path, Path, Path]:
    """Where the metrics, provenance and ranks of a model or ensemble go."""
    return (
        LAYOUT.metrics(dataset, name),
        LAYOUT.provenance(dataset, name),
        LAYOUT.run(dataset, name),
    )


def ranking(split: str | None) -> dict[str, Any]:
    """Which split is ranked, and how much of it is kept: `evaluation` in params.yaml."""
    settings = params().evaluation
    return {
        "split": split or settings.split,
        "depth": settings.depth,
        "samples": settings.samples,
    }
