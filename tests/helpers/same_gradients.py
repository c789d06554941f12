"""A value and its gradients against those of a naive loop."""

from random import Random

import torch


def assert_same(value, expected, inputs, atol=1e-9):
    """Equal values, and equal gradients of the `inputs` for random weights of the entries."""
    torch.testing.assert_close(value, expected, atol=atol, rtol=0)
    generator = torch.Generator().manual_seed(9)
    weights = torch.randn(value.shape, generator=generator, dtype=value.dtype)
    gradients, wanted = (
        torch.autograd.grad((weights * one).sum(), inputs) for one in (value, expected)
    )
    torch.testing.assert_close(gradients, wanted, atol=atol, rtol=0)


def normal(*shape, seed=0, dtype=torch.float64):
    """Standard normal numbers that need a gradient."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()


def left_out(positive, share):
    """About this share of the pairs that are not positive, drawn."""
    drawn = torch.rand(positive.shape, generator=torch.Generator().manual_seed(3))
    return (drawn < share) & ~positive


def image_indices(count=3):
    """The image of each caption, drawn: some images have several captions, or one image has all."""
    drawn = Random(0)
    cases = [[0], [0, 0, 0]]
    for _ in range(count):
        images = list(range(drawn.randint(2, 5)))
        cases.append(
            drawn.sample(images, len(images)) + drawn.choices(images, k=drawn.randint(0, 4))
        )
    return cases
