"""Feature stores and the backbones that fill them.

To add a backbone, write a module with a function `build(name, sources)` that returns a `Backbone`
or a `Detector` (see `backbone.py`), and add one line to `BACKBONES`. A module is imported only when
its backbone is used, because it needs torch and transformers. The package `importers` imports
published features.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from manymatch.util.packages import importing, registered

if TYPE_CHECKING:
    from manymatch.config.params import Extraction
    from manymatch.features.backbone import Backbone, Detector, Sources

BACKBONES = {
    "butd": "butd",
    "hf": "hf",
    "lite0": "lite",
    "lite2": "lite",
    "objects": "objects",
    "pixels": "pixels",
    "pixels256": "pixels",
    "pixels512": "pixels",
    "regions": "regions",
    "resnet50": "resnet",
    "resnet101": "resnet",
    "resnet152": "resnet",
    "resnext101_wsl": "resnet",
}
"""Name in the configuration -> module of this package."""
SHAPES = {
    "butd": (36, 2048),
    "howto100m": (1, 4096),
    "lite0": (49, 1280),
    "resnet50": (49, 2048),
    "resnet101": (49, 2048),
    "resnet152": (49, 2048),
    "resnext101_wsl": (256, 2048),
}
"""Usual features -> the regions or cells of an image, and the numbers of each."""


def entry_point(name: str, where: str = "") -> str:
    """Return MODULE:FUNCTION of the function that builds the backbone `name`, which may be one of
    another installed package. `where` begins a message.

    Raises:
        ConfigError: no backbone has this name; the message names the nearest one.
    """
    own = {key: f"{__name__}.{module}:build" for key, module in BACKBONES.items()}
    return registered("features", name, own, f"{where}features")


def entry_points(name: str, settings: "Extraction") -> list[str]:
    """Return MODULE:FUNCTION of each backbone that the features `name` with `settings` need."""
    inner = [str(settings.backbone.kind)] if settings.backbone else []
    where = f"params.yaml: extraction.{name}: "
    return [entry_point(kind, where) for kind in (settings.kind or name, *inner)]


def build_backbone(name: str, sources: "Sources") -> "Backbone | Detector":
    """Return the backbone called `name` with its weights."""
    place = entry_point(name)
    module, function = place.split(":")
    with importing(place, f"features '{name}'"):
        build = getattr(import_module(module), function)
    backbone: Backbone | Detector = build(name, sources)
    return backbone
