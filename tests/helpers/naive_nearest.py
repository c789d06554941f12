"""What the elements of sets find, by a loop over elements and items."""

from __future__ import annotations

from torch import Tensor


def naive_nearest(
    queries: Tensor, gallery: Tensor, depth: int
) -> list[list[list[tuple[float, int, int]]]]:
    """Of each element of each query the items by their best cosine: (cosine, item, element)."""

    def cosine(x: Tensor, y: Tensor) -> float:
        return (x @ y / x.norm() / y.norm()).item()

    return [
        [
            sorted(
                (
                    max((cosine(x, y), item, met) for met, y in enumerate(elements, start=1))
                    for item, elements in enumerate(gallery)
                ),
                reverse=True,
            )[:depth]
            for x in query
        ]
        for query in queries
    ]
