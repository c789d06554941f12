"""The networks: layers, poolings of local features, encoders of images and captions, backbones.

The packages are imported when they are first used.
"""

import importlib
from types import ModuleType

__all__ = ["backbones", "encoders", "layers", "pooling"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'manymatch.networks' has no attribute '{name}'")
    return importlib.import_module(f"{__name__}.{name}")
