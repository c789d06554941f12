"""ManyMatch: one reproducible pipeline for many-to-many image-text retrieval.

The public names are imported when they are first used, so that `import manymatch` takes no time:
`load` and `Model` (a trained model in use), `Index` (many pictures or captions, to be searched),
`Client` (a running search service), and the packages `losses`, `methods`, `networks` and
`similarities`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manymatch import losses, methods, networks, similarities
    from manymatch.model.model import Model, load
    from manymatch.search.client import Client
    from manymatch.search.index.index import Index

__version__ = "0.1.0"
__all__ = ["Client", "Index", "Model", "load", "losses", "methods", "networks", "similarities"]


_MODULES = {
    "Client": "manymatch.search.client",
    "Index": "manymatch.search.index.index",
    "Model": "manymatch.model.model",
    "load": "manymatch.model.model",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'manymatch' has no attribute '{name}'")
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    return importlib.import_module(f"manymatch.{name}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
