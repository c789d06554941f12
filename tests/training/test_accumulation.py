"""A batch in parts has the loss and the gradients of the whole batch."""

from dataclasses import replace

import pytest
import torch
from small_methods import CLIP_METHODS, NAMES
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from manymatch.shards.read import batches
from manymatch.training.gather import encoded


@pytest.fixture
def first_batch(data):
    """The same eight images in one part and in three."""

    def parts(count):
        words = data.vocabulary
        stream = iter(batches(data.shards, "train", words, 8, shuffle=(0, 0), parts=count))
        return [next(stream).to("cpu") for _ in range(count)]

    return parts


def step(method, parts):
    """The terms of the loss, and the gradients."""
    images, texts, image_index = encoded(method, parts)
    torch.manual_seed(1)  # PCME's samples
    terms = method.loss(images, texts, replace(parts[0], image_index=image_index))
    torch.stack(list(terms.values())).sum().backward()
    gradients = {
        key: parameter.grad
        for key, parameter in method.named_parameters()
        if parameter.grad is not None
    }
    return {key: term.detach() for key, term in terms.items()}, gradients


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CLIP_METHODS])
def test_parts_have_the_gradients_of_the_whole(built, first_batch, name):
    results = []
    for count in (1, 3):
        method = built(name)
        for module in method.modules():  # statistics of a part differ by nature
            if isinstance(module, _BatchNorm | nn.Dropout):
                module.eval()
        results.append(step(method, first_batch(count)))
    (terms, gradients), (terms_of_parts, of_parts) = results
    torch.testing.assert_close(terms_of_parts, terms, rtol=1e-4, atol=1e-6)
    assert of_parts.keys() == gradients.keys()
    for key, gradient in gradients.items():  # match probabilities magnify what float32 rounds
        limit = 2e-4 * gradient.abs().max().item() + 1e-6
        torch.testing.assert_close(of_parts[key], gradient, rtol=0.0, atol=limit)


def test_parts_are_encoded_again_with_equal_random_numbers(built, first_batch):
    """And batch norms count them once: their second encoding changes no buffer."""
    method = built("maxmatch")
    drawn = []
    norm = next(part for part in method.modules() if isinstance(part, _BatchNorm))
    dropout = nn.Dropout(0.5)
    norm.register_forward_hook(lambda *call: drawn.append(dropout(torch.ones(50))))
    parts = first_batch(2)
    images, texts, image_index = encoded(method, parts)
    before = {key: value.clone() for key, value in method.named_buffers()}
    terms = method.loss(images, texts, replace(parts[0], image_index=image_index))
    torch.stack(list(terms.values())).sum().backward()
    first, second, *again = drawn
    assert not torch.equal(first, second)
    assert [row.tolist() for row in again] == [second.tolist(), first.tolist()]
    torch.testing.assert_close(dict(method.named_buffers()), before, rtol=0, atol=0)
    assert int(norm.num_batches_tracked) == 2
