"""Dropout: the mask, and what stays torch's."""

import pytest
import torch

from manymatch.networks.layers.dropout import Dropout


@pytest.mark.parametrize(
    ("share", "kind"), [(0.3, torch.float32), (0.5, torch.bfloat16), (1e-12, torch.float64)]
)
def test_elements_are_zero_or_scaled_at_random_and_so_are_gradients(share, kind):
    inputs = torch.ones(300, 301, dtype=kind, requires_grad=True)
    outputs = Dropout(share)(inputs)
    kept = outputs != 0
    assert outputs.dtype == kind
    assert (outputs[kept] == torch.ones((), dtype=kind) / (1 - share)).all()
    spread = (share * (1 - share) / kept.numel()) ** 0.5
    assert 1 - kept.float().mean().item() == pytest.approx(share, abs=4 * spread + 1e-6)
    rows, columns = kept.float().mean(1), kept.float().mean(0)
    assert max(rows.std(), columns.std()) < 1.3 * (share * (1 - share) / 300) ** 0.5 + 1e-6
    outputs.sum().backward()
    assert torch.equal(inputs.grad, outputs)
