"""The device that networks run on, and what a CPU can do."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

from manymatch.util.errors import ConfigError

# torch and oneDNN each keep what they compiled for the bfloat16 products of the last 1,024 shapes,
# half a megabyte each. Nearly every batch of captions has another shape, so that a training grew by
# more than a gigabyte. Both read their limit at the first product.
for _cache in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
    os.environ.setdefault(_cache, "64")


def multiplies_bfloat16() -> bool:
    """Whether this CPU has instructions that multiply bfloat16, with twice the speed of float32."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


_LOCK = Lock()
_ASKED: list[bool] = []  # one entry for each open block of `tf32`
_OUTSIDE: list[bool] = []  # the two values of torch before the first block


@contextmanager
def tf32(enabled: bool) -> Iterator[None]:
    """In the block, float32 products on a GPU keep 10 bits of their factors behind the point, as
    float16 does, or all 23 bits. They include cuDNN's recurrences and convolutions, for which torch
    has another default than for matrix products.

    Training in mixed precision enables TF32: what a product loses is a tenth of what bfloat16 loses
    elsewhere. Training in `32-true`, evaluation and search do not.

    torch has one value for the whole process. The last block that is open decides, in whatever
    order threads leave their blocks. After the last block, torch has its former values again.
    """
    products, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    with _LOCK:
        if not _ASKED:
            _OUTSIDE[:] = products.allow_tf32, cudnn.allow_tf32
        _ASKED.append(enabled)
        products.allow_tf32 = cudnn.allow_tf32 = enabled
    try:
        yield
    finally:
        with _LOCK:
            del _ASKED[-1 - _ASKED[::-1].index(enabled)]
            values = [_ASKED[-1]] * 2 if _ASKED else _OUTSIDE
            products.allow_tf32, cudnn.allow_tf32 = values


def pick_device(name: str = "auto") -> torch.device:
    """The device `name`: "cpu", "cuda", "cuda:1", or "auto" for the GPU if there is one.

    Raises:
        ConfigError: the name is unknown, or this machine does not have the device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ConfigError(f"device: unknown name '{name}'. Use auto, cpu or cuda") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device: '{name}' is not supported. Use auto, cpu or cuda")
    if device.type == "cpu" and device.index is not None:
        raise ConfigError(f"device: '{name}': there is one CPU. Use cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device: this machine does not have '{name}'. Use auto or cpu")
    return device
