"""The GRU that is trained on a CPU is torch's."""

import pytest
import torch
from torch import nn

from manymatch.layers.gru import read_by_torch
from manymatch.layers.recurrence import read_on_cpu


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("steps", [(4, 4, 3, 1, 1), (3,), (1, 1)])
@pytest.mark.parametrize("used", [(0, 1), (0,), (1,)], ids=["both", "states", "final"])
def test_states_and_gradients_are_those_of_torch(both, steps, used):
    torch.manual_seed(0)
    gru = nn.GRU(5, 3, bidirectional=both, dtype=torch.float64)
    rows = torch.randn(sum(steps), 5, dtype=torch.float64, requires_grad=True)
    expected, actual = read_by_torch(gru, rows, steps), read_on_cpu(gru, rows, steps)
    parameters = [rows, *gru.parameters()]
    factors = [torch.randn_like(part) for part in expected]
    torch.testing.assert_close(actual, expected)

    def gradients(read):
        parts = [(read[n] * factors[n]).sum() for n in used]
        return torch.autograd.grad(sum(parts), parameters)

    torch.testing.assert_close(gradients(actual), gradients(expected))
