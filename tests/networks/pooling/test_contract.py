"""What every pooling takes and gives: `(local, mask or None, globals or None) -> (n, K, D)`."""

import pytest
import torch

from manymatch.networks.pooling import (
    GPO,
    MaxPooling,
    MeanPooling,
    PIENet,
    PrototypeAttention,
    SlotAttention,
    TransformerDecoder,
)

SIZE = 6
POOLINGS = {
    "mean": (MeanPooling, 1),
    "max": (MaxPooling, 1),
    "gpo": (GPO, 1),
    "slots": (lambda: SlotAttention(SIZE, SIZE, 3, 2, heads=2, position_code="sequence"), 3),
    "pie_net": (lambda: PIENet(SIZE, SIZE, 3), 3),
    "decoder": (lambda: TransformerDecoder(SIZE, SIZE, 3, 2, heads=2), 3),
    "prototypes": (lambda: PrototypeAttention(SIZE, 3), 3),
}


@pytest.mark.parametrize("name", POOLINGS)
def test_masks_of_any_type_and_none_and_no_samples(name):
    torch.manual_seed(0)
    make, count = POOLINGS[name]
    pool, local, whole = make().double(), torch.randn(3, 4, SIZE).double(), torch.randn(3, SIZE)
    mask, whole = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]), whole.double()
    expected = pool(local.requires_grad_(), mask.bool(), whole)
    assert expected.shape == (3, count, SIZE) and expected.dtype == torch.float64
    assert torch.autograd.grad(expected.square().sum(), local)[0].isfinite().all()
    for dtype in (torch.int64, torch.float16):
        assert torch.equal(pool(local, mask.to(dtype), whole), expected), dtype
    everything = pool(local, torch.ones(3, 4, dtype=torch.bool), whole)
    assert torch.equal(pool(local, globals=whole), everything)
    assert pool(local[:0], mask[:0], None).shape == (0, count, SIZE)
