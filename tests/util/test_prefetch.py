"""Threads that prepare the next items."""

import threading

import pytest

from manymatch.util.prefetch import ahead, map_ahead


def test_results_come_in_order_and_are_computed_before_they_are_wanted():
    second, taken = threading.Event(), []

    def work(item):
        if item == 0:  # can only end if the next item is computed at the same time
            assert second.wait(10)
        second.set()
        return item * item

    assert list(map_ahead(work, range(20), depth=3, threads=4)) == [k * k for k in range(20)]
    results = map_ahead(lambda item: item, (taken.append(k) or k for k in range(100)), depth=3)
    assert next(results) == 0
    results.close()
    assert taken == [0, 1, 2, 3]


def test_an_error_takes_the_place_of_its_item_and_the_thread_ends():
    def items():
        yield from range(3)
        raise ValueError("item 3")

    results, threads = [], threading.active_count()
    with pytest.raises(ValueError, match="item 3"):
        for item in ahead(items()):
            results.append(item)
    assert results == [0, 1, 2] and threading.active_count() == threads
