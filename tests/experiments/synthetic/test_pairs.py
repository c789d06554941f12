"""The made-up pairs are those that the paper describes."""

from __future__ import annotations

import torch

from manymatch.experiments.synthetic.pairs import CLASSES, PAIRS_A_CLASS, _mapped, make_pairs


def test_sizes_are_the_papers() -> None:
    parts = make_pairs(0)
    assert [len(part.label) for part in parts] == [7000, 1000, 2000]
    for part in parts:
        assert part.a.shape == part.b.shape == (len(part.label), 100)
    labels = torch.cat([part.label for part in parts])
    assert labels.bincount().tolist() == [PAIRS_A_CLASS] * CLASSES
    assert len(parts[2].label.unique()) == CLASSES


def test_a_modality_is_a_network_with_two_hidden_layers_of_50_units() -> None:
    points = torch.randn(4, 5, generator=torch.Generator().manual_seed(1))
    drawn, values = torch.Generator().manual_seed(2), points
    for inputs, outputs in ((5, 50), (50, 50), (50, 100)):
        weights = torch.randn(inputs, outputs, generator=drawn) / inputs**0.5
        values = values @ weights + torch.randn(outputs, generator=drawn)
        values = values.relu() if outputs == 50 else values
    torch.testing.assert_close(_mapped(points, torch.Generator().manual_seed(2)), values)


def test_a_seed_is_a_world_of_its_own() -> None:
    first, again, other = (make_pairs(seed)[0] for seed in (0, 0, 1))
    assert torch.equal(first.a, again.a) and torch.equal(first.b, again.b)
    assert not torch.equal(first.a, other.a)


def test_partners_are_the_same_point_mapped_twice() -> None:
    """A linear map from one view finds the other far better for partners than for strangers of
    the same class, and classes far better than chance."""
    training, _, test = make_pairs(0)
    ones = torch.ones(len(training.label), 1)
    solution = torch.linalg.lstsq(torch.cat([training.a, ones], 1), training.b).solution
    guess = torch.cat([test.a, torch.ones(len(test.label), 1)], 1) @ solution
    nearest = torch.cdist(guess, test.b).argsort(1)
    rank = (nearest == torch.arange(len(test.label))[:, None]).int().argmax(1)
    assert rank.float().median() < 20  # of 2,000; strangers of the class alone would give 50
    same = test.label[nearest[:, 0]] == test.label
    assert same.float().mean() > 0.5
