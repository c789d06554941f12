"""The comparison of methods that `init --compare` makes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from manymatch.cli.project import LAYOUT
from manymatch.util.errors import ConfigError, ManyMatchError
from manymatch.util.progress import say

_COMPARED, _FEWEST_EPOCHS = 3, 5
_EPOCHS = "training.epochs"
_SHARES = {"a quarter": 0.25, "a half": 0.5, "all": 1.0}
_FEWEST_BATCHES = 10
"""Batches of an epoch of the smallest share, so that whole epochs give nearly equal steps."""


def best_of(name: str, presets: Sequence[str], epochs: int, features: str) -> str:
    """Train the first three presets briefly, show how they rank the validation split, say what more
    captions would give, and return the best.

    A small data set has no learning curve (`_FEWEST_BATCHES`). The test split is not read.

    Args:
        name: the data set.
        epochs: those of a whole training.

    Raises:
        ManyMatchError: a stage or a training failed.
    """
    import numpy as np

    from manymatch.config.preset import read_preset
    from manymatch.experiments.engine import perform
    from manymatch.experiments.grid import Options, experiment_of_options
    from manymatch.experiments.presets import PresetExperiment, PresetPlan
    from manymatch.reporting.sections import experiments, own_data
    from manymatch.reporting.terminal import show
    from manymatch.results.experiments import Experiment
    from manymatch.shards.index import read_index
    from manymatch.shards.order import batches_of

    if len(presets) < _COMPARED:
        raise ConfigError(
            f"--compare: presets/{name} lacks presets. Restore the templates from git"
        )
    stage = f"shards@{name}-{features}"
    say(f"{name}: makes features and shards (dvc repro {stage})")
    if subprocess.run([sys.executable, "-m", "dvc", "repro", stage]).returncode:
        raise ManyMatchError(
            f"--compare: 'dvc repro {stage}' failed, as its last lines say. Correct the fault, and "
            "run the same command again"
        )
    brief = max(_FEWEST_EPOCHS, epochs // 4)
    settings = {_EPOCHS: brief, "training.patience": None}
    options = Options(name, "0,1,2", settings, split="validation")
    written = perform(experiment_of_options(presets[:_COMPARED], [], LAYOUT, options))
    result = Experiment.read(written)
    show(experiments.blocks(result), written)
    best = experiments.ranked_points(result)[0].label
    say(
        f"{name}: {best} has the highest rsum of the validation split ({result.images:,} images) "
        f"after {brief} epochs, the mean of three seeds. Where a difference is not decided, chance "
        "may have chosen; longer trainings may rank differently"
    )
    preset = read_preset(LAYOUT.presets / name / f"{best}.yaml")
    images = read_index(LAYOUT.shards(name, preset.features)).split("train").images
    size = preset.training.images_per_batch
    batches = {
        share: len(batches_of(np.arange(round(share * images)), size, 0, 1, drop_last=True))
        for share in _SHARES.values()
    }
    fewest = min(_SHARES.values())
    if round(fewest * images) < _FEWEST_BATCHES * size:
        say(
            f"{name}: no learning curve, because a quarter of {images:,} training pictures is "
            f"fewer than {_FEWEST_BATCHES} batches of {size}, and the parts would be trained for "
            f"unequal steps. From {round(_FEWEST_BATCHES * size / fewest):,} training pictures on "
            "there is one"
        )
        return best
    curve = PresetExperiment(
        own_data.LEARNING_CURVE,
        PresetPlan(
            about="The same training on a part of the training images, with about equal steps.",
            dataset=name,
            preset=best,
            points={
                label: {
                    **settings,
                    own_data.FRACTION: share,
                    _EPOCHS: round(brief * batches[1.0] / batches[share]),
                }
                for label, share in _SHARES.items()
            },
            seeds=[0, 1, 2],
        ),
        LAYOUT,
        options,
    )
    shown = Experiment.read(perform(curve))
    say(f"{name}: {best} on parts of the captions: {own_data.expectation(shown)}")
    return best
