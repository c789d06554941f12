"""The GRU that is trained on a CPU is torch's."""

import pytest
import torch
from torch import nn

from manymatch.batch.padding import padded_sequences
from manymatch.networks.layers.gru import BiGRU, RowsRead, read_by_torch, read_padded
from manymatch.networks.layers.recurrence import read_on_cpu


@pytest.mark.parametrize(
    ("both", "steps"), [(True, (4, 4, 3, 1, 1)), (False, (4, 4, 3, 1, 1)), (True, (3,))]
)
@pytest.mark.parametrize("used", [(0, 1), (0,), (1,)], ids=["both", "states", "final"])
def test_states_and_gradients_are_those_of_torch(both, steps, used):
    torch.manual_seed(0)
    gru = nn.GRU(5, 3, batch_first=True, bidirectional=both, dtype=torch.float64)
    rows = torch.randn(sum(steps), 5, dtype=torch.float64, requires_grad=True)
    expected = read_by_torch(gru, rows, steps)
    actual = read_on_cpu(gru, rows, steps, torch.float64)
    parameters = [rows, *gru.parameters()]
    factors = [torch.randn_like(part) for part in expected]
    torch.testing.assert_close(actual, expected)

    def gradients(read):
        parts = [(read[n] * factors[n]).sum() for n in used]
        return torch.autograd.grad(sum(parts), parameters)

    torch.testing.assert_close(gradients(actual), gradients(expected))


@pytest.mark.parametrize(
    ("both", "average"), [(True, True), (True, False), (False, False)], ids=str
)
def test_padding_behind_sequences_changes_no_state(both, average):
    torch.manual_seed(0)
    gru = nn.GRU(5, 3, batch_first=True, bidirectional=both, dtype=torch.float64)
    words = padded_sequences(torch.tensor([4, 1, 6, 6, 3]), 8).sequences
    padded = torch.randn(5, 8, 5, dtype=torch.float64, requires_grad=True)
    rows = read_by_torch(gru, padded.flatten(0, 1)[words.rows], words.steps)
    expected = RowsRead(*rows, words, average)
    actual = read_padded(gru, padded, words.mask, average)
    torch.testing.assert_close((actual.states, actual.final), (expected.states, expected.final))
    factors = [torch.randn_like(part) for part in (expected.states, expected.final)]
    gradients = [
        torch.autograd.grad(
            (read.states * factors[0]).sum() + (read.final * factors[1]).sum(),
            [padded, *gru.parameters()],
        )
        for read in (actual, expected)
    ]
    torch.testing.assert_close(*gradients)


def test_autocast_rounds_factors_and_leaves_the_states_in_float32():
    torch.manual_seed(0)
    gru, rows = BiGRU(32, 16), torch.randn(5, 8, 32)
    words = padded_sequences(torch.tensor([8, 3, 5, 1, 8]), 8).sequences
    plain = gru(rows, words).states
    with torch.autocast("cpu", torch.bfloat16):
        rounded = gru(rows, words).states
    assert rounded.dtype == torch.float32 and not torch.equal(plain, rounded)
    torch.testing.assert_close(rounded, plain, rtol=0, atol=0.02)


LENGTHS = torch.tensor([4, 1, 6, 6])
MASK = torch.arange(8) < LENGTHS[:, None]
WORDS = padded_sequences(LENGTHS, 8)


@pytest.mark.parametrize("directions", ["average", "concatenate", "forward"])
def test_the_gru_never_sees_padding(directions):
    gru, x = BiGRU(5, 6, directions), torch.randn(4, 8, 5)
    read = gru(x.masked_fill(~MASK[:, :, None], 9.0), WORDS.sequences)
    assert read.states.shape == (4, 8, 6)
    assert (read.states[~MASK] == 0).all()
    for row, length in enumerate(LENGTHS):
        states = gru.gru(x[row, :length][None])[0][0]
        ahead, back = (states, None) if directions == "forward" else states.chunk(2, 1)
        if directions == "forward":
            expected = ahead, ahead[-1]
        elif directions == "average":
            expected = (ahead + back) / 2, (ahead[-1] + back[0]) / 2
        else:
            expected = states, torch.cat([ahead[-1], back[0]])
        torch.testing.assert_close((read.states[row, :length], read.final[row]), expected)
