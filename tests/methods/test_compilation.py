"""Compiled losses and networks give the numbers of plain ones."""

import pytest
import torch
from small_methods import losses, settled

from manymatch.methods.shared.set_method import SetSettings, set_module
from manymatch.training.compilation import WORTH, compile_parts
from manymatch.util.errors import ConfigError

CPU = torch.device("cpu")
SETTINGS = {
    "vsepp": {},
    "vse_infinity": {"text": {"encoder": "bert"}},
    "swamp": {},
    "dive": {"sets": {"iterations": 1, "size": 2}},
    "cora": {},
}
"""A method of each kind of loss. A BERT is compiled too; few passes and elements make a small
graph."""
AUTOGRAD = ("vsepp", "swamp")
"""Methods of which the gradients' graphs are built too, which takes three times as long."""


def numbers(method, batches):
    """The losses of batches of different sizes, and the gradients of their sum."""
    settled(method)
    terms = [losses(method, batch) for batch in batches]
    torch.stack([term for each in terms for term in each.values()]).sum().backward()
    return terms, [part.grad for part in method.parameters() if part.grad is not None]


@pytest.mark.parametrize("name", SETTINGS)
def test_losses_and_gradients_are_those_without_compiling(name, build, make_batch):
    batches = [make_batch([*range(6)])]
    if name == "cora":  # has as many entities as the captions name
        batches.append(make_batch([*range(1, 7)]))
    plain, compiled = (build(name, SETTINGS[name]).train() for _ in range(2))
    backend = "aot_eager" if name in AUTOGRAD else "eager"
    compile_parts(compiled, True, CPU, steps=1, backend=backend)
    torch._dynamo.reset()
    expected = numbers(plain, batches)
    torch.testing.assert_close(numbers(compiled, batches), expected, rtol=1e-5, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"]


def test_a_set_module_is_one_graph_for_batches_of_all_sizes():
    sets = set_module(SetSettings(heads=2, iterations=1), 8, 8)
    compiled, graphs = torch.compile(sets._sets, fullgraph=True, backend="eager"), []
    for count, width in ((3, 5), (4, 6), (5, 7)):
        local, mask = torch.randn(count, width, 8), torch.rand(count, width) > 0.3
        mask[:, 0] = True
        given = local, mask, torch.randn(count, 8), None
        torch.testing.assert_close(compiled(*given), sets._sets(*given))
        graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert graphs[1:] == graphs[1:2] * 2  # the second size makes sizes variables


def broken(graph, inputs):
    raise NotImplementedError("no such compiler")


def test_a_loss_that_cannot_be_compiled_is_an_error_or_stays_as_it_is(build, make_batch, capsys):
    batch = make_batch([0, 1, 2])
    asked = build("vsepp").train()
    compile_parts(asked, True, CPU, steps=1, backend=broken)
    with pytest.raises(
        ConfigError, match=r"^training\.compile: VSEPP\.loss .*no such compiler.*auto"
    ):
        losses(asked, batch)
    chosen, plain = (build("vsepp").train() for _ in range(2))
    compile_parts(chosen, "auto", torch.device("cuda"), WORTH, backend=broken)
    for _ in range(2):
        torch.testing.assert_close(losses(chosen, batch), losses(plain, batch))
    assert capsys.readouterr().err.count("warning: training.compile: VSEPP.loss") == 1


@pytest.mark.parametrize(
    "case", [(False, "cuda", WORTH), ("auto", "cpu", WORTH), ("auto", "cuda", WORTH - 1)], ids=str
)
def test_nothing_is_compiled_where_it_does_not_pay(case, build):
    setting, device, steps = case
    method = build("dive")
    compile_parts(method, setting, torch.device(device), steps)
    assert not any("loss" in vars(part) or "_sets" in vars(part) for part in method.modules())
