"""Padding says of a mask what networks would otherwise count."""

from dataclasses import asdict

import torch
from torch.nn.utils.rnn import pack_padded_sequence

from manymatch.batch.padding import all_real, padded_rows, padded_sequences

LENGTHS = torch.tensor([2, 5, 1, 2])


def test_sequences_are_read_as_torch_packs_them():
    rows = torch.arange(4 * 6).view(4, 6)
    packed = pack_padded_sequence(rows, LENGTHS, batch_first=True, enforce_sorted=False)
    sequences = padded_sequences(LENGTHS, 6).sequences
    assert torch.equal(rows.flatten()[sequences.rows], packed.data)
    assert list(sequences.steps) == packed.batch_sizes.tolist()
    assert torch.equal(sequences.ranks, packed.unsorted_indices)
    assert torch.equal(sequences.mask, torch.arange(6) < LENGTHS[:, None])


def test_longer_sequences_have_more_rows_in_front():
    longer = padded_sequences(LENGTHS, 6).longer(2)
    torch.testing.assert_close(asdict(longer), asdict(padded_sequences(LENGTHS + 2, 8)))


def test_rows_are_real_at_any_position():
    mask = torch.tensor([[True, False, True], [False, False, True], [False, True, True]])
    padding = padded_rows(mask)
    assert torch.equal(torch.arange(9).view(3, 3)[mask], padding.rows)
    assert torch.equal(padding.sizes[padding.size_row], mask.sum(1))
    whole = padded_rows(torch.ones(2, 3, dtype=torch.bool))
    torch.testing.assert_close(asdict(all_real(2, 3, torch.device("cpu"))), asdict(whole))
