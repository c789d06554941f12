"""The datasets by name. A new one is a package beside these and one line below.

The package `manymatch.datasets.NAME` holds the class named here, its module `settings` the class's
settings (`Scenes` has `ScenesSettings`). Nothing is imported before it is asked for.
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


def entry_point(name: str) -> str:
    """MODULE:CLASS of the dataset `name`; an unknown name is a `ConfigError` that suggests one."""
    return f"{__name__}.{_known(name)}:{DATASETS[name]}"


def dataset(name: str) -> Dataset:
    """The dataset called `name`; imports its module only now."""
    module, attribute = entry_point(name).split(":")
    return getattr(import_module(module), attribute)()


def check_settings(name: str, settings: Mapping[str, Any]) -> Strict:
    """`sources.NAME` of params.yaml as the dataset's own settings class."""
    module = import_module(f"{__name__}.{_known(name)}.settings")
    model = getattr(module, f"{DATASETS[name]}Settings")
    return validate(model, dict(settings), f"params.yaml: sources.{name}")


def _known(name: str) -> str:
    if name not in DATASETS:
        raise ConfigError(f"no dataset '{name}'{nearest(name, DATASETS)}")
    return name
