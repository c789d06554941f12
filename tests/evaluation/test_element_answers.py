"""What single elements find: against a loop over elements and items, and in blocks."""

from __future__ import annotations

import pytest
import torch
from naive_nearest import naive_nearest
from torch import Tensor

from manymatch.evaluation.ranking import blocks
from manymatch.evaluation.sets.elements import matching_elements, nearest_items
from manymatch.system.errors import DataError


def _vectors(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(("k", "l"), [(3, 2), (1, 4), (4, 1)])
def test_nearest_items_of_each_element_are_those_of_a_loop(k: int, l: int) -> None:  # noqa: E741
    queries, gallery = 2 * _vectors(5, k, 6), 3 * _vectors(9, l, 6, seed=1)
    nearest = nearest_items(queries, gallery, depth=4)
    expected = naive_nearest(queries, gallery, 4)
    assert nearest.items.tolist() == [[[i for _, i, _ in of] for of in item] for item in expected]
    torch.testing.assert_close(nearest.cosines, torch.tensor(expected, dtype=torch.float64)[..., 0])
    met = matching_elements(queries, gallery, nearest.items)
    assert met.tolist() == [[[e for *_, e in of] for of in item] for item in expected]
    firsts = [len({of[0][1] for of in item}) for item in expected]
    assert nearest.distinct == pytest.approx(sum(firsts) / len(firsts))


def test_nearest_items_do_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, gallery = _vectors(5, 3, 6), _vectors(9, 2, 6, seed=1)
    whole = nearest_items(queries, gallery)
    monkeypatch.setattr(blocks, "CAPTIONS_PER_BLOCK", 2)
    monkeypatch.setattr(blocks.whole_rows, "__defaults__", (None, 20))
    parts = nearest_items(queries, gallery)
    assert torch.equal(parts.items, whole.items)
    torch.testing.assert_close(parts.cosines, whole.cosines)


def test_distinct_items_of_dead_and_of_lively_sets() -> None:
    one = _vectors(6, 1, 5)
    assert nearest_items(one.expand(6, 3, 5), _vectors(9, 2, 5, seed=1)).distinct == 1
    nearest = nearest_items(torch.eye(4).expand(2, 4, 4), torch.eye(4)[:, None])
    assert nearest.distinct == 4
    assert nearest.items.shape == (2, 4, 3)
    assert nearest_items(one, one[:2]).items.shape == (6, 1, 2)  # there are no three items


def test_vectors_that_are_not_finite_are_one_line() -> None:
    queries = _vectors(2, 2, 4)
    queries[1, 0, 0] = torch.nan
    with pytest.raises(DataError, match="not finite"):
        nearest_items(queries, _vectors(3, 2, 4))
