"""The datasets by name.

To add a dataset, write a module or package `manymatch.datasets.NAME` with a subclass of
`manymatch.datasets.base.Dataset`, and add one line to `DATASETS`. A dataset's module is imported
only when the dataset is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from manymatch.config.strict import Strict, validate
from manymatch.datasets.base import Dataset
from manymatch.system.errors import ConfigError, nearest

DATASETS = {
    "scenes": "Scenes",
    "flickr8k": "Flickr8k",
    "flickr30k": "Flickr30k",
    "coco": "Coco",
    "cub": "Cub",
    "youcook2": "Youcook2",
    "msrvtt": "Msrvtt",
    "lsmdc": "Lsmdc",
    "conceptual_captions": "ConceptualCaptions",
}
"""Name of the dataset and of its module -> class in that module."""


def entry_point(name: str) -> str:
    """MODULE:CLASS of the dataset `name`.

    Raises:
        ConfigError: no dataset has this name; the message names the nearest one.
    """
    if name not in DATASETS:
        raise ConfigError(f"no dataset '{name}'{nearest(name, DATASETS)}")
    return f"{__name__}.{name}:{DATASETS[name]}"


def dataset(name: str) -> Dataset:
    """The dataset called `name`; an unknown name is a `ConfigError`."""
    module, _, attribute = entry_point(name).partition(":")
    cls: type[Dataset] = getattr(import_module(module), attribute)
    return cls()


def check_settings(name: str, settings: Mapping[str, Any]) -> Strict:
    """Validate `sources.NAME` of params.yaml against the settings of dataset `name`."""
    return validate(dataset(name).settings_model, dict(settings), f"params.yaml: sources.{name}")
