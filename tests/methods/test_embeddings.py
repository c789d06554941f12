"""The parts of embeddings are sliced, joined, moved and converted by `Embeddings` alone."""

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from manymatch.methods.shared.embeddings import Embeddings, flat


@dataclass(frozen=True)
class WithWords(Embeddings):
    """The parts of a new method: a number for each sample, and words of any number."""

    areas: Tensor | None = None
    words: Tensor | None = field(default=None, metadata=flat("word_caption"))
    word_caption: Tensor | None = field(default=None, metadata=flat("word_caption"))


def whole():
    """Four captions; caption 2 has neither an entity nor a word."""
    index = torch.tensor([0, 0, 1, 3])
    return WithWords(
        torch.arange(4).view(4, 1, 1).half(),
        globals=torch.arange(4).view(4, 1).float(),
        entities=torch.arange(4).view(4, 1).float(),
        entity_names=torch.arange(4),
        entity_caption=index,
        areas=torch.arange(4.0),
        words=torch.arange(4).view(4, 1).double(),
        word_caption=index,
    )


@pytest.mark.parametrize(("start", "stop"), [(1, 3), (2, 4)])
def test_rows_take_their_flat_parts_along(start, stop):
    rows = whole().rows(slice(start, stop)).parts()
    samples = list(range(start, stop))
    inside = [row for row, sample in enumerate([0, 0, 1, 3]) if sample in samples]
    for name in ("vectors", "globals", "areas"):
        assert rows[name].flatten().tolist() == samples
    for name in ("entities", "entity_names", "words"):
        assert rows[name].flatten().tolist() == inside
    for name in ("entity_caption", "word_caption"):
        assert rows[name].tolist() == [[0, 0, 1, 3][row] - start for row in inside]


def test_joining_rows_gives_the_whole_in_float32():
    runs = [slice(0, 1), slice(1, 3), slice(3, 4)]
    joined = Embeddings.join([whole().rows(run) for run in runs])
    assert isinstance(joined, WithWords)
    for name, value in whole().float().parts().items():
        assert torch.equal(joined.parts()[name], value), name
        assert joined.parts()[name].dtype in (torch.float32, torch.int64)


def test_joining_pads_sets_and_counts_rows_on():
    one = Embeddings(
        torch.ones(2, 1, 3),
        entities=torch.ones(3, 3),
        entity_caption=torch.tensor([0, 0, 1]),
        mask=torch.ones(2, 1, dtype=torch.bool),
        attention=torch.ones(2, 1, 4),
    )
    two = Embeddings(
        torch.ones(1, 2, 3, dtype=torch.float16),
        entities=torch.zeros(1, 3),
        entity_caption=torch.tensor([0]),
        mask=torch.ones(1, 2, dtype=torch.bool),
        attention=torch.ones(1, 2, 3),
    )
    both = Embeddings.join([one, two]).parts()
    assert both["vectors"].dtype == torch.float32
    assert both["vectors"][:, :, 0].tolist() == [[1, 0], [1, 0], [1, 1]]
    assert both["mask"].tolist() == [[True, False], [True, False], [True, True]]
    assert both["entity_caption"].tolist() == [0, 0, 1, 2]
    assert both["attention"][1:].tolist() == [[[1] * 4, [0] * 4], [[1, 1, 1, 0]] * 2]
    assert "globals" not in both
