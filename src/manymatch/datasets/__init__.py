"""The data sets by name.

To add a data set, write a module or package `manymatch.datasets.NAME` with a subclass of
`manymatch.datasets.base.Dataset`, and add one line to `DATASETS`. A data set's module is imported
only when the data set is used.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from manymatch.config.strict import Strict, validate
from manymatch.datasets.base import Dataset
from manymatch.util.packages import importing, registered

DATASETS = {
    "scenes": "Scenes",
    "flickr8k": "Flickr8k",
    "flickr30k": "Flickr30k",
    "coco": "Coco",
    "cub": "Cub",
    "youcook2": "video:Youcook2",
    "msrvtt": "video:Msrvtt",
    "lsmdc": "video:Lsmdc",
    "conceptual_captions": "ConceptualCaptions",
    "own": "Own",
}
"""Name of the data set -> class in the module of this name, or MODULE:CLASS. `own` is a kind: its
data sets have names of their own. So have further generated data sets of the kind `scenes`."""


def entry_point(name: str) -> str:
    """Return MODULE:CLASS of the data set `name`, which may be one of another installed package.

    Raises:
        ConfigError: no data set has this name; the message names the nearest one.
    """
    own = {key: _place(key) for key in DATASETS}
    return registered("datasets", name, own, "data set")


def _place(name: str) -> str:
    module, _, attribute = DATASETS[name].rpartition(":")
    return f"{__name__}.{module or name}:{attribute}"


def dataset(name: str) -> Dataset:
    """Return the data set called `name`; its module is imported only now."""
    place = entry_point(name)
    module, attribute = place.split(":")
    with importing(place, f"data set '{name}'"):
        cls: type[Dataset] = getattr(import_module(module), attribute)
    return cls()


def kind(name: str, settings: Mapping[str, Any]) -> str:
    """Return which of `DATASETS` reads `sources.NAME` of params.yaml."""
    return str(settings.get("kind", name))


def check_settings(name: str, settings: Mapping[str, Any]) -> Strict:
    """Validate `sources.NAME` of params.yaml against the settings of data set `name`."""
    model = dataset(kind(name, settings)).settings_model
    return validate(model, dict(settings), f"params.yaml: sources.{name}")
