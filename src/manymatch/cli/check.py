"""Whether the settings belong together, before anything runs."""

from __future__ import annotations

import typer

from manymatch.cli import project
from manymatch.cli.project import LAYOUT
from manymatch.config.params import Params
from manymatch.config.preset import preset_path
from manymatch.system.errors import ConfigError
from manymatch.system.progress import say

commands = typer.Typer()


@commands.command()
def check() -> None:
    """Check params.yaml and the presets it names, and say what will run."""
    from manymatch import datasets
    from manymatch.experiments.experiment import Options
    from manymatch.experiments.kinds import experiment_of_file
    from manymatch.features import check_name
    from manymatch.features.importers import check_format

    params = project.params()
    for features in params.features:
        settings = params.extraction_of(features)
        for published in settings.published.values():
            check_format(published.format)
        if set(params.datasets) - set(settings.published):
            check_name(features)
    for name in params.datasets:
        datasets.check_settings(name, params.source(name))
        for method in params.methods:
            _check_preset(params, name, method, starts_from=None)
    for key, started in params.warm_starts.items():
        if key != f"{started.dataset}-{started.method}":
            raise ConfigError(f"params.yaml: warm_starts: '{key}' is not its DATASET-METHOD")
        _check_preset(params, started.dataset, started.method, starts_from=started.model)
    for name, dataset in params.experiments.items():
        experiment_of_file(LAYOUT.experiment(name), LAYOUT, Options(dataset=dataset)).check()
    say(
        f"datasets {', '.join(params.datasets)}; methods {', '.join(params.methods)}; "
        f"warm starts {', '.join(params.warm_starts) or 'none'}; "
        f"features {', '.join(params.features)}: all known"
    )


def _check_preset(params: Params, dataset: str, method: str, starts_from: str | None) -> None:
    from manymatch.methods import check_model

    path = preset_path(LAYOUT.presets, dataset, method)
    preset = project.preset(dataset, method)
    check_model(preset.method, preset.model)
    if preset.features not in params.features:
        raise ConfigError(
            f"{path}: features '{preset.features}' are not extracted; "
            "add them to 'features' in params.yaml"
        )
    own = preset.warm_start.model if preset.warm_start else None
    if own != starts_from:
        raise ConfigError(
            f"{path}: starts from {own or 'nothing'}, but from {starts_from or 'nothing'} in "
            "params.yaml; presets with a warm start are named under 'warm_starts' there, "
            "the others under 'methods'"
        )
