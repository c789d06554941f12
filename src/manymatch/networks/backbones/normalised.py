"""A network on stored pixels: bytes in, normalised numbers to the network."""

import torch
from torch import Tensor, nn


class Normalised(nn.Module):
    """`network((pixels - mean) / std)` for uint8 pixels (b, 3, H, W); mean and std in 0..255.

    The network's map (b, F, h, w) becomes its cells row by row, (b, h * w, F).
    """

    mean: Tensor
    std: Tensor

    def __init__(self, network: nn.Module, mean: list[float], std: list[float]) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        maps: Tensor = self.network((pixels - self.mean) / self.std)
        return maps.flatten(2).transpose(1, 2)


def channels_last(network: nn.Module) -> nn.Module:
    """Return `network` in the memory layout of decoded pixels, the fastest for convolutions."""
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
