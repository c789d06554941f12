"""The device that networks run on."""

from __future__ import annotations

import torch

from manymatch.system.errors import ConfigError


def pick_device(name: str = "auto") -> torch.device:
    """The device `name`: "cpu", "cuda", "cuda:1", or "auto" for the GPU if there is one.

    Raises:
        ConfigError: the name is unknown, or this machine does not have the device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device: unknown name '{name}'. Use auto, cpu or cuda") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device: '{name}' is not supported. Use auto, cpu or cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device: this machine does not have '{name}'. Use auto or cpu")
    return device
