"""The settings of one training on sketches and images, and the files of features."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from manymatch.config.preset import Count, NonNegative, Positive
from manymatch.config.strict import Strict
from manymatch.losses.pseudo_labels import LabelSettings
from manymatch.methods.shared.matching import MatchingSettings


class SketchSettings(LabelSettings, MatchingSettings):
    """The settings of one training. `weight: 0` trains with the contrastive loss alone.

    The defaults of weight, classes, queue, tau and eta are SwAMP's (section 5.2). The networks and
    the optimiser are ours.
    """

    n_classes: Count = 500
    queue: Annotated[int, Field(ge=0)] = 1000
    tau: Positive = 0.25
    weight: NonNegative = 0.1
    all_negatives_epochs: Annotated[int, Field(ge=0)] = 0
    hidden: Count = 1024
    size: Count = 256
    """The size of the embeddings."""
    epochs: Count = 20
    batch: Annotated[int, Field(ge=2)] = 128
    """The number of sketches in a batch; each sketch has an image of its class."""
    lr: Positive = 2e-4
    validation: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1
    """The share of the seen classes that is held out. Their mAP decides which epoch is kept."""


class Part(Strict):
    """A file of features and the classes of its rows."""

    features: str
    """An array (n, D): FILE or FILE:KEY (.npy, .npz, .safetensors, .h5)."""
    classes: str
    """The class of each row: an array `.npy` of names, numbers or paths, or a text file with a
    line for each row. The class of a path is its folder."""


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, dict) else value


Parts = Annotated[tuple[Part, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
"""The YAML file has one part or a list of parts."""


class DataSettings(Strict):
    """The two modalities, and the unseen classes: a list or a text file."""

    sketches: Parts
    images: Parts
    unseen: Annotated[tuple[str, ...], Field(min_length=1)] | str
