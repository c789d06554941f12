"""Lightning, without two libraries that it loads and training does not use.

Lightning loads torchmetrics. For metrics of sound and of text, torchmetrics loads SciPy's signal
processing and transformers. Without both, a training starts after 1.8 instead of 3.1 seconds of
processor time. Whoever imports both libraries later gets them whole.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

__all__ = ["LightningEnvironment", "pl"]


@contextmanager
def _hide_modules(*names: str) -> Iterator[None]:
    """In the block, modules of these names that are not loaded yet are empty: all they have is
    None."""
    empty = {name: ModuleType(name) for name in names if name not in sys.modules}
    for module in empty.values():
        module.__getattr__ = lambda _: None  # type: ignore[method-assign]
    sys.modules.update(empty)
    try:
        yield
    finally:
        for name in empty:
            del sys.modules[name]


with _hide_modules("scipy.signal", "transformers"):
    import pytorch_lightning as pl
    from pytorch_lightning.plugins.environments import LightningEnvironment
