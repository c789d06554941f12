"""LoRA: each linear layer of a pretrained network learns a product of two narrow matrices."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from manymatch.util.errors import ConfigError


class LoRALinear(nn.Linear):
    """`W x + b + (alpha / rank) B A x` with fixed W and b. B starts at zero, so that the layer
    starts as the linear layer whose W and b it has.

    Args:
        layer: the linear layer from Din to Dout numbers.
        rank: r; `A (r, Din)` and `B (Dout, r)` learn.
        alpha: see above.

    References:
        Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, ICLR 2022, eq. 3.
    """

    def __init__(self, layer: nn.Linear, rank: int, alpha: float) -> None:
        nn.Module.__init__(self)  # the weights are those of `layer`
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        self.requires_grad_(False)
        self.scale = alpha / rank
        self.lora_a = nn.Parameter(layer.weight.new_empty(rank, self.in_features))
        self.lora_b = nn.Parameter(layer.weight.new_zeros(self.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """`(..., Din)` -> `(..., Dout)`."""
        narrow = functional.linear(functional.linear(x, self.lora_a), self.lora_b)
        return super().forward(x) + self.scale * narrow

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """One linear layer that computes the same."""
        has_bias, device = self.bias is not None, self.weight.device
        layer = nn.Linear(self.in_features, self.out_features, has_bias, device)
        layer.weight.copy_(self.weight + self.scale * self.lora_b @ self.lora_a)
        if has_bias:
            layer.bias.copy_(self.bias)
        return layer


def add_lora(network: nn.Module, rank: int, alpha: float) -> None:
    """Replace each linear layer in `network` by a `LoRALinear`. Nothing else learns any more.

    Raises:
        ConfigError: there is no linear layer.
    """
    network.requires_grad_(False)
    linear = [(n, part) for n, part in network.named_modules() if type(part) is nn.Linear]
    if not linear:  # as in GPT-2, which has layers of its own kind
        raise ConfigError(
            "train: lora, but the layers of the model hold no torch.nn.Linear. Set train: "
            "last N, all or none"
        )
    for name, layer in linear:
        network.set_submodule(name, LoRALinear(layer, rank, alpha))


def merge_lora(network: nn.Module) -> None:
    """Replace each `LoRALinear` in `network` by one linear layer that computes the same."""
    for name, layer in [*network.named_modules()]:
        if isinstance(layer, LoRALinear):
            network.set_submodule(name, layer.merged())
