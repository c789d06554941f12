"""TF32 on a GPU: where it is, and what its rounding, made on the CPU, changes."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import torch
from small_methods import encode, settled
from torch.utils._python_dispatch import TorchDispatchMode

from manymatch.model.embed import inference
from manymatch.networks.device import tf32

CPU = torch.device("cpu")
FACTORS = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}


class Rounded(TorchDispatchMode):
    """Matrix products keep 10 bits of their factors behind the point."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        first = FACTORS.get(function._schema.name)
        if first is not None:
            arguments = (*arguments[:first], *map(rounded, arguments[first:]))
        return function(*arguments, **(options or {}))


def rounded(factor):
    bits = factor.contiguous().view(torch.int32)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("name", ["dive", "pcmepp", "msrm", "cora"])
def test_rounded_products_in_a_loss_change_it_little(name, build, make_batch):
    batch, results = make_batch([*range(8)]), []
    for mode in (None, Rounded()):
        method = settled(build(name).train())
        images, texts = encode(method, batch)
        with mode or torch.enable_grad():
            loss = torch.stack(list(method.loss(images, texts, batch).values())).sum()
            loss.backward()
        gradients = [part.grad.flatten() for part in method.parameters() if part.grad is not None]
        results.append((loss.item(), torch.cat(gradients).double()))
    (loss, gradient), (other, turned) = results
    assert other == pytest.approx(loss, rel=1e-3)
    assert torch.cosine_similarity(gradient, turned, 0) > 0.999


def flags():
    return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32


def test_it_is_for_products_and_cudnn_but_not_in_evaluation(build):
    outside = flags()
    assert outside[0] != outside[1]  # torch's defaults
    with tf32(True):
        assert flags() == (True, True)
        with pytest.raises(KeyError), inference(build("vsepp"), CPU):
            assert flags() == (False, False)
            raise KeyError
        assert flags() == (True, True)
    assert flags() == outside


def test_blocks_that_threads_leave_in_any_order_restore_the_former_values():
    outside = flags()
    with ThreadPoolExecutor(1) as thread:
        here, there = ExitStack(), ExitStack()
        here.enter_context(tf32(False))
        thread.submit(there.enter_context, tf32(False)).result()
        here.close()
        assert flags() == (False, False)
        thread.submit(there.close).result()
    assert flags() == outside
