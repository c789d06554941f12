"""The code of grid cells: a naive loop over the formula, and which cells are near each other."""

import numpy as np
import pytest
import torch
from naive_sets import grid_code, naive_sets, position_code

from manymatch.batch.padding import padded_rows
from manymatch.features.backbone import grid_boxes
from manymatch.networks.layers.position_code import (
    grid_sine_code,
    relative_sine_code,
    sine_code,
    square_grid_ends,
)
from manymatch.networks.pooling import SlotAttention
from manymatch.util.errors import ConfigError


def boxes_of(rows, columns):
    """`(1, rows * columns, 4)`: the cells of a grid, row by row."""
    cells = [(x, y, x + 1, y + 1) for y in range(rows) for x in range(columns)]
    sides = torch.tensor([columns, rows, columns, rows])
    return (torch.tensor(cells, dtype=torch.float64) / sides)[None]


@pytest.mark.parametrize(
    ("rows", "columns", "size"), [(1, 1, 1), (7, 7, 6), (2, 5, 7), (16, 3, 32)]
)
def test_the_code_is_the_released_one(rows, columns, size):
    code = grid_sine_code(boxes_of(rows, columns)[..., 2:], size, torch.float64)[0]
    torch.testing.assert_close(code, grid_code(rows, columns, size), atol=1e-5, rtol=0)
    half = grid_sine_code(boxes_of(rows, columns)[..., 2:], size, torch.bfloat16)[0]
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.double(), code, atol=4e-3, rtol=0)


def test_a_square_grid_has_the_places_of_its_boxes():
    for side in (1, 7, 16):
        ends = square_grid_ends(side * side, torch.device("cpu"))
        np.testing.assert_allclose(ends[0], grid_boxes(side)[:, 2:], atol=1e-7)
    with pytest.raises(ConfigError, match="the images have 48 features each without boxes"):
        square_grid_ends(48, torch.device("cpu"))


def sets(dtype=torch.float64):
    torch.manual_seed(0)
    return SlotAttention(6, 8, 3, 2, heads=2, position_code="grid").to(dtype)


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (2, 3)])
def test_slots_on_a_grid_equal_the_naive_loop(rows, columns):
    module = sets()
    local, whole = torch.randn(1, rows * columns, 6).double(), torch.randn(1, 8).double()
    vectors, _, seen = naive_sets(module, local[0], whole[0], (rows, columns))
    result = module.predict(local, None, whole, boxes_of(rows, columns))
    torch.testing.assert_close(result.vectors[0], vectors, atol=1e-5, rtol=0)
    torch.testing.assert_close(result.attention[0], seen, atol=1e-5, rtol=0)
    if rows == columns:  # known without boxes
        alone = module.predict(local, None, whole).vectors
        torch.testing.assert_close(alone, result.vectors, atol=1e-6, rtol=0)


def test_neither_dropped_cells_nor_other_grids_move_a_cell():
    """Images of two grids in one batch, with padding, and a cell of the first one dropped."""
    module, wide, tall = sets(), boxes_of(2, 3), boxes_of(2, 2)
    local, boxes = torch.randn(2, 6, 6).double(), torch.zeros(2, 6, 4).double()
    boxes[0], boxes[1, :4] = wide, tall
    mask = torch.tensor([[1, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]]).bool()
    together = module(local, padded_rows(mask), None, boxes)
    kept = mask[0]
    first = module(local[:1, kept], None, None, wide[:, kept])
    second = module(local[1:, :4], None, None, tall)
    torch.testing.assert_close(together, torch.cat([first, second]), atol=1e-9, rtol=0)


@pytest.mark.parametrize("size", [1, 6, 7])
def test_the_relative_code_is_the_released_one(size):
    mask = torch.arange(9) < torch.tensor([[1], [4], [9]])
    code = relative_sine_code(mask, size, torch.float64)
    for row, length in zip(code, (1, 4, 9), strict=True):
        torch.testing.assert_close(row[:length], position_code(length, size), atol=1e-12, rtol=0)
    assert relative_sine_code(mask, size, torch.bfloat16).dtype == torch.bfloat16


def test_the_position_code_is_the_papers():
    with torch.inference_mode():
        code = sine_code(4, 6)
    assert not code.is_inference()  # a code that validation has made serves training
    for position in range(4):
        for i in range(3):
            angle = torch.tensor(position / 10000 ** (2 * i / 6))
            torch.testing.assert_close(code[position, 2 * i], angle.sin())
            torch.testing.assert_close(code[position, 2 * i + 1], angle.cos())
