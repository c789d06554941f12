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
every_pooling = pytest.mark.parametrize("name", POOLINGS)
IN_PLACE = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]])


def made(name, dtype=torch.float32):
    """The module, local features `(3, 4, SIZE)` and globals `(3, SIZE)`."""
    torch.manual_seed(0)
    pool = POOLINGS[name][0]().to(dtype)
    return pool, torch.randn(3, 4, SIZE, dtype=dtype), torch.randn(3, SIZE, dtype=dtype)


@every_pooling
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_three_arguments_in_and_sets_of_the_same_type_out(name, dtype):
    pool, local, globals_ = made(name, dtype)
    for whole in (globals_, None):
        pooled = pool(local.requires_grad_(), IN_PLACE.bool(), whole)
        assert pooled.shape == (3, POOLINGS[name][1], SIZE)
        assert pooled.dtype == dtype
        assert torch.autograd.grad(pooled.square().sum(), local)[0].isfinite().all()


@every_pooling
def test_without_a_mask_all_rows_are_real(name):
    pool, local, globals_ = made(name)
    expected = pool(local, torch.ones(3, 4, dtype=torch.bool), globals_)
    assert torch.equal(pool(local, None, globals_), expected)
    assert torch.equal(pool(local, globals=globals_), expected)


@every_pooling
def test_a_mask_of_numbers_is_one_of_booleans(name):
    pool, local, globals_ = made(name)
    expected = pool(local, IN_PLACE.bool(), globals_)
    for dtype in (torch.int64, torch.uint8, torch.float32, torch.float16):
        assert torch.equal(pool(local, IN_PLACE.to(dtype), globals_), expected), dtype


@every_pooling
def test_no_samples_give_no_sets(name):
    pool, local, globals_ = made(name)
    assert pool(local[:0], IN_PLACE[:0], globals_[:0]).shape == (0, POOLINGS[name][1], SIZE)
