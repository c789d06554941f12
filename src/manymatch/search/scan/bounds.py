"""Upper bounds of the scores of all items of a gallery, in one pass over its vectors."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from manymatch.batch.parallel_map import map_parallel
from manymatch.search.scan.forms import Question
from manymatch.search.scan.source import Source

_COLUMNS = 32
"""Vectors of queries for which one pass computes products, if a query does not have more."""


def upper_bounds(source: Source, questions: Sequence[Question]) -> Iterator[NDArray[np.float32]]:
    """For every question the upper bounds `(n,)` of the scores, float32."""
    for together in _passes(questions):
        yield from _one_pass(source, together)


def _passes(questions: Sequence[Question]) -> Iterator[list[Question]]:
    """Runs of questions that share a pass."""
    together: list[Question] = []
    for question in questions:
        columns = sum(len(other.vectors) for other in [*together, question])
        if together and columns > _COLUMNS:
            yield together
            together = []
        together.append(question)
    if together:
        yield together


def _one_pass(source: Source, questions: Sequence[Question]) -> NDArray[np.float32]:
    """`(q, n)`."""
    bounds = torch.empty(len(questions), source.count)
    slack = [rounding(question, source.elements) for question in questions]
    readers = threading.local()

    with source.reader(questions) as reader:

        def work(items: slice) -> None:
            if not hasattr(readers, "read"):
                readers.read = reader()
            products, mask = readers.read(items)
            for row, own in enumerate(products):
                scores = questions[row].reduce(own, mask)
                torch.add(scores, slack[row], out=bounds[row, items])

        map_parallel(work, source.runs(torch.get_num_threads()))
    return bounds.numpy()


def rounding(question: Question, elements: int) -> float:
    """A bound of the rounding error of `reduce` in float32."""
    return 2.0**-24 * (64 + elements * len(question.vectors)) * question.magnitude
