"""The settings of one training on sketches and images, and where their features are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from manymatch.config.preset import Count, NonNegative, Positive
from manymatch.config.strict import Strict
from manymatch.experiments.synthetic.plan import Points, read_points
from manymatch.methods.matching import MatchingSettings
from manymatch.methods.swapped_labels import LabelSettings


class SketchSettings(LabelSettings, MatchingSettings):
    """One training. `weight: 0` is the contrastive loss alone.

    Weight, classes, queue, tau and eta are the paper's (section 5.2). Networks and optimiser are
    ours.
    """

    n_classes: Count = 500
    queue: Annotated[int, Field(ge=0)] = 1000
    tau: Positive = 0.25
    weight: NonNegative = 0.1
    all_negatives_epochs: Annotated[int, Field(ge=0)] = 0
    hidden: Count = 1024
    size: Count = 256
    """Of the embeddings."""
    epochs: Count = 20
    batch: Annotated[int, Field(ge=2)] = 128
    """Sketches, each with an image of its class."""
    lr: Positive = 2e-4
    validation: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1
    """Share of the seen classes that is not trained on, and decides which epoch is kept."""


class Part(Strict):
    """A file of features and whose they are."""

    features: str
    """An array (n, D): FILE or FILE:KEY, .npy, .npz, .safetensors, .h5."""
    classes: str
    """One of each row: an array `.npy` of names, numbers or paths, or a text file of lines. Of a
    path the folder is the class."""


def _several(value: object) -> object:
    return (value,) if isinstance(value, dict) else value


Parts = Annotated[tuple[Part, ...], BeforeValidator(_several), Field(min_length=1)]
"""In the file one part or a list of them."""


class DataSettings(Strict):
    """The two modalities, and the classes that are not trained on: a list or a text file."""

    sketches: Parts
    images: Parts
    unseen: Annotated[tuple[str, ...], Field(min_length=1)] | str


class SketchExperiment(Points):
    """Settings to compare, on one data set."""

    dataset: str
    """What published results call it."""
    data: DataSettings


def read_sketches(path: Path, seeds: str | None = None) -> SketchExperiment:
    """The experiment in a YAML file; a fault is a `ConfigError` that names file and key."""
    return read_points(SketchExperiment, path, seeds)
