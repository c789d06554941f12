"""Feature stores and the backbones that fill them.

A new backbone is one file with a function `build(name, sources) -> Backbone` (see `backbone.py`)
or `-> Detector` (see `detector.py`), and one line here. The files are imported when asked for: they
need torch and transformers. Features that others have published come by way of `importers`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from manymatch.system.errors import ConfigError, nearest

if TYPE_CHECKING:
    from manymatch.features.backbone import Backbone, Sources
    from manymatch.features.detector import Detector

BACKBONES = {
    "butd": "butd",
    "lite0": "lite0",
    "objects": "objects",
    "pixels256": "pixels",
    "pixels512": "pixels",
    "resnet50": "resnet",
    "resnet101": "resnet",
    "resnet152": "resnet",
    "resnext101_wsl": "resnext",
}
"""Name in the configuration -> module of this package."""


def check_name(name: str) -> None:
    """An unknown backbone is a `ConfigError` that tells the nearest."""
    if name not in BACKBONES:
        raise ConfigError(f"unknown features '{name}'{nearest(name, BACKBONES)}")


def entry_point(name: str) -> str:
    """MODULE:FUNCTION that builds the backbone `name`."""
    check_name(name)
    return f"{__name__}.{BACKBONES[name]}:build"


def build_backbone(name: str, sources: Sources) -> Backbone | Detector:
    """The backbone called `name`, its weights loaded."""
    module, function = entry_point(name).split(":")
    backbone: Backbone | Detector = getattr(import_module(module), function)(name, sources)
    return backbone
