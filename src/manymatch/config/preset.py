"""A preset: all settings of one trained model.

`presets/DATASET/NAME.yaml` is the preset of the stage `train@DATASET-NAME`. A preset that starts
from another preset's model belongs to the stage `warm_train@DATASET-NAME`.
"""

import copy
import operator
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field

from manymatch.config.names import ModelPath, Name
from manymatch.config.strict import Strict, group_at, read_yaml, validate
from manymatch.util.errors import ConfigError

Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
NonNegative = Annotated[float, Field(ge=0.0)]
Count = Annotated[int, Field(ge=1)]
Setting = Literal["small-scale", "reproduced"]
Precision = Literal["auto", "32-true", "bf16-mixed", "16-mixed"]
Logger = Literal["dvclive", "tensorboard", "csv", "wandb", "mlflow"]
Strategy = Literal["auto", "ddp", "fsdp"]


def _compiles(expression: str) -> str:
    try:
        re.compile(expression)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return expression


Expression = Annotated[str, AfterValidator(_compiles)]
"""A regular expression that selects parameters by a part of their names."""


def names_matching(expression: str, names: Iterable[str]) -> set[str]:
    """The `names` in which the regular expression occurs."""
    return {name for name in names if re.search(expression, name)}


def _rising(epochs: tuple[int, ...]) -> tuple[int, ...]:
    if sorted(set(epochs)) != list(epochs):
        raise ValueError("epochs must be in ascending order, without repetition")
    return epochs


class CheckpointEvery(Strict):
    """The least number of epochs and minutes between two checkpoints. The last epoch of a training
    always has a checkpoint."""

    epochs: Count = 1
    minutes: NonNegative = 0.0


def _is_default(value: str | bool | CheckpointEvery) -> bool:
    """Whether a preset file omits the key. Files that are older than the key omit it too."""
    return value in ("auto", "batch", "dvclive", "float32", CheckpointEvery())


class Optimizer(Strict):
    """The optimiser: AdamW, Adam, Adam with AMSGrad, or AdamP."""

    name: Literal["adamw", "adam", "amsgrad", "adamp"] = "adamw"
    lr: Positive = 5e-4
    weight_decay: NonNegative = 1e-4


class ParameterGroup(Strict):
    """Settings of the parameters whose full name matches the regular expression `match`.

    Their learning rate is `lr_scale * lr` (0: they are frozen). They are frozen before the 0-based
    epoch `from_epoch`, and no gradient is computed for them until then. They may have a
    `weight_decay` of their own. With `layer_decay` d, the rate of a model of transformers is
    multiplied by d in its last layer, by d^2 in the layer before, and so on.
    """

    match: Expression
    lr_scale: NonNegative = 1.0
    from_epoch: Annotated[int, Field(ge=0)] = 0
    weight_decay: NonNegative | None = None
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0, exclude_if=lambda d: d == 1.0)] = 1.0


class Schedule(Strict):
    """The learning rate over time, after a linear warm-up over `warmup_epochs`.

    `constant`: the preset's rate.
    `step`: the rate is multiplied by `factor` every `every` epochs, or after each number of epochs
    in `milestones`.
    `cosine`: the rate falls with every step. It restarts after each number of epochs in `restarts`,
    each time from `factor` times the height before. The rate is zero at the end of a phase, or
    `period` epochs after the start of the phase, and stays zero after that.
    """

    name: Literal["constant", "step", "cosine"] = "cosine"
    every: Count = 10
    milestones: Annotated[tuple[Count, ...], AfterValidator(_rising)] | None = None
    restarts: Annotated[tuple[Count, ...], AfterValidator(_rising)] = ()
    period: Count | None = None
    factor: Positive = 0.1
    warmup_epochs: NonNegative = 0.0


class Augmentation(Strict):
    """Probabilities with which parts of a sample are dropped in training, each part independently;
    at least one part stays."""

    region_drop: Probability = 0.0
    word_drop: Probability = 0.0
    """A dropped word becomes the mask (50%) or a random word (10%), or is deleted (40%)."""
    caption_drop: Probability = 0.0
    """PCME's augmentation: each word becomes the unknown word with this probability; then this
    share of the words, rounded down, is deleted."""
    object_drop: Probability = 0.0
    attribute_drop: Probability = 0.0
    relation_drop: Probability = 0.0
    phrase_word_mask: Probability = 0.0
    """Probability that a word of an object's, attribute's or relation's phrase becomes the mask."""
    phrase_word_delete: Probability = 0.0
    """Probability that an unmasked word of a phrase is deleted; the last word of a phrase stays."""

    @property
    def changes_captions(self) -> bool:
        """Whether words or parts of graphs are dropped or masked."""
        return self != Augmentation(region_drop=self.region_drop)


class Training(Strict):
    """The settings of training: epochs, batches, optimiser, precision and devices."""

    epochs: Count = 30
    images_per_batch: Annotated[int, Field(ge=2)] = 64
    """At least 2, because a single image has no captions of other images as negatives."""
    fraction: Annotated[float, Field(gt=0.0, le=1.0, exclude_if=lambda share: share == 1.0)] = 1.0
    """The share of the training images that is used; the seed draws them (learning curves)."""
    captions_per_image: Count | None = None
    """Captions that are drawn for each image in an epoch; null: all captions."""
    accumulate: Count = 1
    """The number of parts of a batch: a GPU holds the activations of one part at a time.

    The loss and its gradients are those of the whole batch, but batch norms use the statistics of
    a part, and dropout draws other numbers. Each part is encoded twice.
    """
    one_per_class: bool = False
    """Whether all images of a batch are of different classes (CUB: an image has one class). After
    the last image of a class, the first one follows again."""
    optimizer: Optimizer = Optimizer()
    parameter_groups: tuple[ParameterGroup, ...] = ()
    schedule: Schedule = Schedule()
    clip_norm: Positive | None = 2.0
    """The largest norm of the gradient of all parameters together; null: no clipping."""
    weight_average: Probability = 0.0
    """Decay of the exponential moving average of the weights, which is validated and saved; 0: the
    weights themselves."""
    precision: Precision = "auto"
    """`auto`: bf16-mixed on a GPU or CPU that multiplies bfloat16, 16-mixed on other GPUs, 32-true
    on other CPUs. A CPU embeds in float32 after training nevertheless."""
    devices: Count | Literal["auto"] = "auto"
    strategy: Annotated[Strategy, Field(exclude_if=_is_default)] = "auto"
    """How several devices share a training: each has the whole model (`auto`, `ddp`) or a part of
    the weights (`fsdp`; docs/scaling.md has the settings that `fsdp` refuses)."""
    compile: Annotated[bool | Literal["auto"], Field(exclude_if=_is_default)] = "auto"
    """Whether `torch.compile` compiles parts of the method for training; see docs/scaling.md.
    Results change by rounding, and compiled dropout draws other numbers."""
    exchange: Annotated[Literal["float32", "bfloat16"], Field(exclude_if=_is_default)] = "float32"
    """The numbers in which devices exchange gradients; bfloat16 halves the bytes."""
    shared_statistics: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Whether batch norms of a CNN use the statistics of all devices, as all other batch norms do.
    The papers' code used the statistics of each GPU."""
    deterministic: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Whether a GPU uses slower algorithms with the same bits in every run, as far as torch has
    them; a CPU always does."""
    features_in: Literal["auto", "shards", "memory", "device"] = "auto"
    """Where the training split's features are between epochs. The results are the same.

    `shards`: on the disk; worker processes read and decode them in each epoch.
    `memory`: in memory that the processes of a host share, with 2 bytes for each number (COCO's
    regions: 16.7 GB). `device`: in the memory of each GPU, so that no step copies features.
    `auto`: on the device, else in memory, if a quarter of what is free is enough; else in shards.
    """
    negatives: Annotated[Literal["batch", "oracle"], Field(exclude_if=_is_default)] = "batch"
    """Which captions are negatives of an image. `batch`: those of all other images of the batch.
    `oracle`: without those that are true of the image by the data set's judgments. `scenes` has
    judgments of training images. The setting measures what false negatives cost."""
    logger: Annotated[Logger, Field(exclude_if=_is_default)] = "dvclive"
    """The library that writes the curves: of the extra `pipeline` (dvclive) or of its own name."""
    checkpoint_every: Annotated[CheckpointEvery, Field(exclude_if=_is_default)] = CheckpointEvery()
    """How often a training writes a checkpoint, from which a killed training resumes."""
    patience: Count | None = None
    """Number of epochs without a better validation rsum after which training stops."""


class WarmStart(Strict):
    """The trained model from which training starts (the source), and the parts that do not fit.

    Every parameter and buffer of the source must have a counterpart of equal shape in the method.
    Every parameter and buffer of the method must have a counterpart in the source. The parts that
    are named here are excepted. Word vectors are matched by word.

    `params.yaml` names such a preset with its source under `warm_starts`, not under `presets`,
    because a stage of a DVC matrix cannot wait for another stage of the matrix. `dvc repro` then
    trains the source first, and trains both again after a change of the source.
    """

    model: ModelPath
    rename: dict[str, str] = Field(default_factory=dict)
    """Prefixes of dotted names in the source -> prefixes in the method."""
    fresh: tuple[Expression, ...] = ()
    """Regular expressions of the method's parameters that start as without a warm start."""
    unused: tuple[Expression, ...] = ()
    """Regular expressions of the source's parameters that are not used."""


class Preset(Strict):
    """The content of one preset file. The method checks `model`."""

    method: str
    features: Name
    seed: Annotated[int, Field(ge=0)] = 0
    setting: Setting = "small-scale"
    """`reproduced` only if data and settings are the paper's; see `setting_after`."""
    model: dict[str, Any] = Field(default_factory=dict)
    augmentation: Augmentation = Augmentation()
    training: Training = Training()
    warm_start: WarmStart | None = None

    def to_yaml(self) -> str:
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False)


WholeModel = Callable[[str, dict[str, Any]], Any]
"""The mapping `model` of a preset of a method as all settings, the defaults filled in."""


def read_preset(
    path: Path,
    overrides: dict[str, Any] | None = None,
    whole_model: WholeModel | None = None,
) -> Preset:
    """The preset in `path` with the values of dotted keys in `overrides`; see `setting_after`.

    Raises:
        ConfigError: the file is missing or malformed, or a key or value is wrong.
    """
    stated = read_yaml(path)
    if not overrides:
        return validate(Preset, stated, str(path))
    value = copy.deepcopy(stated)
    changed_keys: list[str] = []
    for key, setting in copy.deepcopy(overrides).items():  # a key may lie in another key's group
        if lost := next((one for one in changed_keys if one.startswith(f"{key}.")), None):
            raise ConfigError(
                f"{path}: {key}: the whole group is set after '{lost}', which would be lost. Set "
                f"the keys of '{key}' one by one"
            )
        changed_keys.append(key)
        *groups, last = key.split(".")
        group_at(value, groups, f"{path}: {key}")[last] = setting
    changed = validate(Preset, value, str(path))
    stated_setting = setting_after(validate(Preset, stated, str(path)), changed, whole_model)
    return changed.model_copy(update={"setting": stated_setting})


def setting_after(
    stated: Preset, changed: Preset, whole_model: WholeModel | None = None
) -> Setting:
    """The `setting` of the preset `stated` in a file after it was `changed`.

    A `reproduced` preset stays so with another seed, other devices, other places of features or
    another logger; any other change makes it `small-scale`. The points of a paper's ablation are
    the exception. By `whole_model` (`methods.check_model`) a setting of the model with the value
    that the preset has anyway is no change, also where the preset leaves the key to the method's
    default.

    Raises:
        ConfigError: `whole_model` refuses the model of one of the two.
    """
    if _results(stated) != _results(changed):
        return "small-scale"
    models = [(preset.method, preset.model) for preset in (stated, changed)]
    if models[0] != models[1] and whole_model is not None:
        models = [(name, whole_model(name, model)) for name, model in models]
    return changed.setting if models[0] == models[1] else "small-scale"


def _results(preset: Preset) -> Preset:
    """The preset without its model and the settings that change results by chance alone, or not at
    all."""
    machine = ("devices", "strategy", "compile", "features_in", "logger", "checkpoint_every")
    unset = {key: Training.model_fields[key].default for key in machine}
    training = preset.training.model_copy(update=unset)
    return preset.model_copy(update={"seed": 0, "training": training, "model": {}})
