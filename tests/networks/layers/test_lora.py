"""LoRA is its equation, starts as the layer that it has, and can be merged."""

import pytest
import torch
from torch import nn

from manymatch.networks.layers.lora import LoRALinear, add_lora, merge_lora


def test_lora_is_the_equation_and_can_be_merged():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 4), nn.GELU(), nn.Sequential(nn.Linear(4, 3, bias=False)))
    x = torch.randn(2, 5)
    before = network(x)
    add_lora(network, rank=2, alpha=6.0)
    torch.testing.assert_close(network(x), before)
    network(x).sum().backward()
    names = {name for name, value in network.named_parameters() if value.grad is not None}
    assert names == {"0.lora_a", "0.lora_b", "2.0.lora_a", "2.0.lora_b"}
    for layer in (network[0], network[2][0]):
        nn.init.normal_(layer.lora_b)

    layer = network[0]
    a, b, weight, bias = (
        part.tolist() for part in (layer.lora_a, layer.lora_b, layer.weight, layer.bias)
    )
    for row, result in zip(x.tolist(), layer(x).tolist(), strict=True):
        for out, value in enumerate(result):
            total = bias[out]
            for n, number in enumerate(row):
                total += weight[out][n] * number
                for k in range(2):
                    total += 6.0 / 2 * b[out][k] * a[k][n] * number
            assert value == pytest.approx(total, abs=1e-5)

    changed = network(x)
    assert not torch.allclose(changed, before, atol=1e-2)
    merge_lora(network)
    assert not any(isinstance(part, LoRALinear) for part in network.modules())
    torch.testing.assert_close(network(x), changed, atol=1e-5, rtol=0)
