"""The presets of a data set of one's own, which `init` adapts from those of photographs, and their
comparison (`init --compare`)."""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from manymatch.cli.backbone import HEADER, Backbone
from manymatch.cli.project import LAYOUT
from manymatch.config.preset import Preset, read_preset
from manymatch.methods import METHODS
from manymatch.util.errors import ConfigError, ManyMatchError
from manymatch.util.files import write_text
from manymatch.util.progress import say

TEMPLATES = "flickr8k"
"""The data set of photographs whose presets are adapted: 6,000 training pictures."""
BEST_ON_PHOTOGRAPHS = ("vsepp", "pcme", "dive", "vse_infinity", "pvse", "maxmatch")
"""The methods in the order of their rsum on Flickr8k (docs/results.md, flickr8k-study)."""
_SEEN = 96_000
"""Pictures that training sees, counted once an epoch, in Flickr8k's presets."""
_EPOCHS = 30
"""The maximum number of epochs of a small data set."""
_LARGE = 500_000
"""The maximum for `_SEEN` of a large data set, unless three epochs are more."""
_FEW_BATCHES = 50
"""Batches of an epoch below which a batch has 32 images."""
_FEW_CAPTIONS = 4_000
"""Training captions below which the vectors are half as long."""
FEATURES = "lite0"
_COMPARED, _FEWEST_EPOCHS = 3, 5
_EPOCHS_KEY = "training.epochs"
_SHARES = {"a quarter": 0.25, "a half": 0.5, "all": 1.0}
_FEWEST_BATCHES = 10
"""Batches of an epoch of the smallest share, so that whole epochs give nearly equal steps."""


def preset_names(presets: Path, wanted: Iterable[str]) -> list[str]:
    """Return the methods with a preset to adapt, then the presets among `wanted` with one.

    Raises:
        ConfigError: there are no presets to adapt.
    """
    known = {path.stem for path in (presets / TEMPLATES).glob("*.yaml")}
    if not known:
        raise ConfigError(f"{presets / TEMPLATES}: no presets to adapt. Restore them from git")
    return [name for name in dict.fromkeys((*METHODS, *wanted)) if name in known]


def kept_presets(folder: Path, names: Iterable[str], features: str | None) -> list[str]:
    """Return the presets of a data set that are there already, which `write_preset` keeps.

    Raises:
        ConfigError: a preset reads other features than the backbone's `features`.
    """
    kept = [name for name in names if (folder / f"{name}.yaml").exists()]
    for path in (folder / f"{name}.yaml" for name in kept if features):
        if (stated := read_preset(path).features) != features:
            raise ConfigError(
                f"{path}: reads the features '{stated}', and init changes no preset. Remove or move"
                f" the presets of other features than '{features}', or leave --features out"
            )
    return kept


def epochs(pictures: int) -> int:
    """Return the number of epochs for a number of training pictures."""
    if pictures * 10 > _LARGE:
        return max(3, _LARGE // pictures)
    return min(_EPOCHS, max(10, _SEEN // max(1, pictures)))


def write_preset(
    presets: Path,
    dataset: str,
    name: str,
    sizes: tuple[int, int],
    features: str = FEATURES,
    backbone: Backbone | None = None,
) -> Preset:
    """Write `presets/DATASET/NAME.yaml`, fitted to the numbers of training pictures and captions.

    An existing preset is kept. With a `backbone` the preset reads its `features`, and its text
    model if the method has one.
    """
    pictures, captions = sizes
    from manymatch.config.edit import edited

    source, target = presets / TEMPLATES / f"{name}.yaml", presets / dataset / f"{name}.yaml"
    if not target.exists():
        # A small validation split would end a training by chance.
        changes: dict[str, object] = {
            "training.epochs": epochs(pictures),
            "training.patience": None,
        }
        preset = read_preset(source)
        model = preset.model
        if pictures < _FEW_BATCHES * preset.training.images_per_batch:
            changes["training.images_per_batch"] = 32
        if captions < _FEW_CAPTIONS and "size" in model:
            changes["model.size"] = model["size"] // 2
        if "n_classes" in model:
            changes["model.n_classes"] = min(model["n_classes"], max(10, pictures // 6))
        if backbone:
            changes |= {"features": features} | backbone.texts(preset, narrow=True)
        header = (
            f"# {name} on {dataset}: {pictures:,} training pictures with {captions:,} captions.\n"
            f"#\n#   dvc repro evaluate@{dataset}-{name}\n#\n"
            f"# The command works if 'presets' in params.yaml lists {name}.\n"
            f"# Made by `manymatch init` from presets/{TEMPLATES}/{name}.yaml, which says what "
            f"differs from the paper.\n# Changed: {', '.join(changes)}.\n"
        )
        write_text(target, HEADER.sub(header, edited(source, changes)))
    return read_preset(target)


def best_of(name: str, presets: Sequence[str], epochs: int, features: str) -> str:
    """Train the first three presets of the data set `name` in fewer `epochs` than a whole training
    has, show how they rank the validation split, say what more captions would give, and return the
    best.

    A small data set has no learning curve (`_FEWEST_BATCHES`). The test split is not read.

    Raises:
        ManyMatchError: a stage or a training failed.
    """

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
    settings = {_EPOCHS_KEY: brief, "training.patience": None}
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
                    _EPOCHS_KEY: round(brief * batches[1.0] / batches[share]),
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
