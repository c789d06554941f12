"""A preset: everything that makes one trained model, as a preset file states it.

`presets/DATASET/NAME.yaml` is the preset of the stage `train@DATASET-NAME`, or, if it starts from
another preset's model, of `warm_train@DATASET-NAME`.
"""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field

from manymatch.config.strict import Strict, read_yaml, validate
from manymatch.system.errors import ConfigError, nearest

Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NonNegative = Annotated[float, Field(ge=0.0)]
Count = Annotated[int, Field(ge=1)]
Setting = Literal["small-scale", "reproduced"]
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"


def _compiles(expression: str) -> str:
    try:
        re.compile(expression)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return expression


def _rising(epochs: tuple[int, ...]) -> tuple[int, ...]:
    if sorted(set(epochs)) != list(epochs):
        raise ValueError("each must be later than the one before")
    return epochs


Expression = Annotated[str, AfterValidator(_compiles)]


class Optimizer(Strict):
    """AdamW, Adam or AdamP."""

    name: Literal["adamw", "adam", "adamp"] = "adamw"
    lr: Positive = 5e-4
    weight_decay: NonNegative = 1e-4


class ParameterGroup(Strict):
    """Parameters whose full name matches the expression `match` learn in their own way.

    At `lr_scale * lr` (0: never), from the 0-based epoch `from_epoch` on (before it they are
    frozen, and nothing is computed for them), with their own `weight_decay` if it is given.
    """

    match: Expression
    lr_scale: NonNegative = 1.0
    from_epoch: Annotated[int, Field(ge=0)] = 0
    weight_decay: NonNegative | None = None


class Schedule(Strict):
    """Learning rate over time, after a linear warm-up over `warmup_epochs`.

    `constant`: the preset's rate.
    `step`: the rate is multiplied by `factor` every `every` epochs, or after each number of epochs
    in `milestones`.
    `cosine`: the rate falls with every step and starts anew after each number of epochs in
    `restarts`, each time from `factor` of the height before. A phase ends at zero, or falls as if
    zero were `period` epochs after its start, and stays zero from there on.
    """

    name: Literal["constant", "step", "cosine"] = "cosine"
    every: Count = 10
    milestones: tuple[Count, ...] | None = None
    restarts: Annotated[tuple[Count, ...], AfterValidator(_rising)] = ()
    period: Count | None = None
    factor: Positive = 0.1
    warmup_epochs: NonNegative = 0.0


class Augmentation(Strict):
    """What is dropped in training, each independently with the given probability; never all."""

    region_drop: Probability = 0.0
    word_drop: Probability = 0.0
    """A hit word becomes the mask (50%), a random word (10%) or is deleted (40%)."""
    caption_drop: Probability = 0.0
    """PCME's form: each word becomes the unknown word with this probability, then this share of
    the words, rounded down, is deleted."""
    object_drop: Probability = 0.0
    attribute_drop: Probability = 0.0
    relation_drop: Probability = 0.0
    phrase_word_mask: Probability = 0.0
    """A word of an object's, an attribute's or a relation's phrase becomes the mask."""
    phrase_word_delete: Probability = 0.0
    """A word of a phrase that is not masked is deleted, unless it is the last word left."""


class Training(Strict):
    """How long, how much at once, how fast."""

    epochs: Count = 30
    images_per_batch: Count = 64
    captions_per_image: Count | None = None
    """Captions drawn per image and epoch; None takes all."""
    one_per_class: bool = False
    """No two images of a batch are of one class; each image must have exactly one (CUB)."""
    optimizer: Optimizer = Optimizer()
    parameter_groups: tuple[ParameterGroup, ...] = ()
    schedule: Schedule = Schedule()
    clip_norm: Positive | None = 2.0
    """The largest norm of the gradient of all parameters together; null: gradients stay whole."""
    weight_average: Probability = 0.0
    """Decay of an exponential moving average of the weights that is validated and kept (0: off)."""
    precision: Literal["auto", "32-true", "bf16-mixed", "16-mixed"] = "auto"
    """`auto`: bf16-mixed on a GPU that has it, 16-mixed on one that has not, 32-true on the CPU."""
    devices: Count | Literal["auto"] = "auto"
    patience: Count | None = None
    """Stop after so many epochs without a better validation rsum."""


class WarmStart(Strict):
    """The trained model that training starts from, and what of it does not fit.

    Every parameter and buffer of the source must find its place with equal shape, and every one
    of ours must be given a value, but for those named here. Word vectors go by word.

    `params.yaml` names such a preset under `warm_starts` with its source, not under `presets`: in
    DVC's matrix no stage can wait for another. `dvc repro` then trains the source first, and both
    again when it changes.
    """

    model: Annotated[str, Field(pattern=rf"^{_NAME}/{_NAME}$")]
    """DATASET/PRESET: a folder under `models/`."""
    rename: dict[str, str] = Field(default_factory=dict)
    """Beginnings of dotted names in the source -> what stands in their place here."""
    fresh: tuple[Expression, ...] = ()
    """Of our parameters, those that match one start as without a warm start."""
    unused: tuple[Expression, ...] = ()
    """Of the source's parameters, those that match one are left behind."""


class Preset(Strict):
    """One preset file. `model` belongs to the method and is checked by it."""

    method: str
    features: str
    seed: Annotated[int, Field(ge=0)] = 0
    setting: Setting = "small-scale"
    """`reproduced` only where data and settings are the paper's; see `setting_after`."""
    model: dict[str, Any] = Field(default_factory=dict)
    augmentation: Augmentation = Augmentation()
    training: Training = Training()
    warm_start: WarmStart | None = None

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False)


def preset_path(presets: Path, dataset: str, name: str) -> Path:
    """The file of a preset; an unknown one, or an unknown data set, is an error that names the
    nearest."""
    path = presets / dataset / f"{name}.yaml"
    if not path.parent.is_dir():
        folders = [folder.name for folder in presets.glob("*/")]
        raise ConfigError(f"{path}: no presets for dataset '{dataset}'{nearest(dataset, folders)}")
    if not path.is_file():
        known = [file.stem for file in (presets / dataset).glob("*.yaml")]
        raise ConfigError(f"{path}: no such preset for dataset '{dataset}'{nearest(name, known)}")
    return path


def read_preset(path: Path, overrides: dict[str, Any] | None = None) -> Preset:
    """The preset in `path`, with dotted keys of `overrides` set on top (see `setting_after`)."""
    stated = read_yaml(path)
    if not overrides:
        return validate(Preset, stated, str(path))
    value = copy.deepcopy(stated)
    for key, setting in overrides.items():
        _set(value, key.split("."), setting, f"{path}: {key}")
    changed = validate(Preset, value, str(path))
    kept = setting_after(validate(Preset, stated, str(path)), changed)
    return changed.model_copy(update={"setting": kept})


def setting_after(stated: Preset, changed: Preset) -> Setting:
    """What the preset `stated` in a file may be called once it was `changed`: its `reproduced`
    holds for another seed and other devices, and no change makes one. The points of a paper's
    ablation are the exception (see `ablation.presets.preset_of`)."""
    return changed.setting if _results(stated) == _results(changed) else "small-scale"


def _results(preset: Preset) -> Preset:
    """The same without what decides no result but by chance."""
    training = preset.training.model_copy(update={"devices": "auto"})
    return preset.model_copy(update={"seed": 0, "training": training})


def _set(value: dict[str, Any], path: list[str], setting: Any, where: str) -> None:
    for part in path[:-1]:
        value = value.setdefault(part, {})
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: '{part}' is a value, not a group of settings")
    value[path[-1]] = setting
