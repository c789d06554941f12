"""The device that computes."""

from __future__ import annotations

import torch

from manymatch.system.errors import ConfigError


def pick_device(name: str = "auto") -> torch.device:
    """The device called `name`; "auto" is the GPU if there is one, else the CPU.

    Raises:
        ConfigError: torch does not know the name, or this machine does not have the device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device: unknown '{name}'; use auto, cpu or cuda") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device: cannot use '{name}'; use auto, cpu or cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device: this machine has no '{name}'; use auto or cpu")
    return device
