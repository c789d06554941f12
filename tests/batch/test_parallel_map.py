"""Pieces of work side by side."""

import multiprocessing

import pytest
import torch

from manymatch.batch.parallel_map import map_parallel


@pytest.fixture(autouse=True)
def _several_threads():
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(threads)


def test_results_have_the_order_of_the_items_and_pieces_may_be_divided_again():
    def work(item):
        assert torch.get_num_threads() == 1 and torch.is_inference_mode_enabled()
        return map_parallel(lambda part: item + part, range(item))

    assert map_parallel(work, range(50)) == [[n + part for part in range(n)] for n in range(50)]
    assert torch.get_num_threads() == 3 and not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("faulty", [0, 7])
def test_an_error_of_a_piece_is_raised(faulty):
    with pytest.raises(ZeroDivisionError):
        map_parallel(lambda item: 1 // (item - faulty), range(8))
    assert torch.get_num_threads() == 3


def test_a_forked_process_has_threads_of_its_own():
    map_parallel(abs, range(8))
    child = multiprocessing.get_context("fork").Process(target=map_parallel, args=(abs, range(8)))
    child.start()
    child.join(60)
    assert child.exitcode == 0
