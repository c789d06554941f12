"""Set modules and prototype attention: naive loops, padding, maps, gradients."""

import math

import pytest
import torch
from naive_sets import naive_sets, naive_slots, ragged
from torch import nn
from torch.nn import functional

from manymatch.methods.shared.set_method import SetSettings, set_module
from manymatch.networks.pooling import PIENet, PrototypeAttention, SlotAttention, TransformerDecoder
from manymatch.util.errors import ConfigError

WIDTH, SIZE = 6, 8
LENGTHS = [3, 1, 5, 2]
SETS = {
    "wide slots": lambda: SlotAttention(WIDTH, SIZE, 4, 4, heads=4, attention_size=12),
    "one pass": lambda: SlotAttention(WIDTH, SIZE, 3, 1, heads=1),
    "slots in order": lambda: SlotAttention(WIDTH, SIZE, 3, 2, heads=2, position_code="sequence"),
    "random slots": lambda: SlotAttention(WIDTH, SIZE, 3, 2, heads=2, start="random").eval(),
    "slots by gru": lambda: SlotAttention(WIDTH, SIZE, 3, 2, heads=2, update="gru"),
    "pie_net": lambda: PIENet(WIDTH, SIZE, 3),
    "one element": lambda: PIENet(WIDTH, SIZE, 1, hidden=5),
    "decoder": lambda: TransformerDecoder(WIDTH, SIZE, 3, 2, heads=2),
    "one query": lambda: TransformerDecoder(WIDTH, SIZE, 1, 1, heads=1),
}
every_set = pytest.mark.parametrize("name", SETS)
PROTOTYPES = {
    "prototypes": lambda: PrototypeAttention(WIDTH, 4),
    "sharp prototypes": lambda: PrototypeAttention(WIDTH, 3, temperature=0.1),
}
ALL = SETS | PROTOTYPES


def build(name):
    """The module in double precision, no parameter at a start that would hide a fault."""
    torch.manual_seed(0)
    module = ALL[name]().double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def samples(garbage=50.0):
    return ragged(LENGTHS, WIDTH, SIZE, garbage)


@every_set
def test_a_set_module_equals_the_naive_loop(name):
    module = build(name)
    members, local, mask, wholes = samples()
    result = module.predict(local, mask, wholes)
    torch.testing.assert_close(module(local, mask, wholes), result.vectors)
    for row, inputs in enumerate(members):
        vectors, slots, seen = naive_sets(module, inputs, wholes[row])
        torch.testing.assert_close(result.vectors[row], vectors, atol=1e-9, rtol=0)
        torch.testing.assert_close(result.slots[row], slots, atol=1e-9, rtol=0)
        seen = functional.pad(seen, (0, local.shape[1] - len(inputs)))
        torch.testing.assert_close(result.attention[row], seen, atol=1e-9, rtol=0)
    assert result.attention.shape == (len(LENGTHS), result.vectors.shape[1], local.shape[1])
    assert (result.attention.mT[~mask] == 0).all() and (result.attention >= 0).all()
    alone = module.predict(local, mask)  # without globals nothing is added
    expected = module.norm(alone.slots) if isinstance(module, PIENet) else alone.slots
    torch.testing.assert_close(alone.vectors, expected)


def call(module, local, mask, wholes):
    if isinstance(module, PrototypeAttention):
        return module(local, mask)
    return module(local, mask, wholes)


@pytest.mark.parametrize("name", ALL)
def test_padding_never_matters(name):
    module = build(name)
    for garbage in (1e8, torch.nan):
        members, local, mask, wholes = samples(garbage)
        local.requires_grad_()
        together = call(module, local, mask, wholes)
        for row, inputs in enumerate(members):
            real = torch.ones(1, len(inputs), dtype=torch.bool)
            alone = call(module, inputs[None], real, wholes[row : row + 1])
            torch.testing.assert_close(together[row], alone[0], atol=1e-12, rtol=1e-12)
        together.square().sum().backward()
        assert (local.grad[~mask] == 0).all()
        assert local.grad.isfinite().all()


def test_slot_attention_drops_where_the_released_code_does():
    """What attention gathers, after its last layer, and the MLP's hidden units, after GELU."""
    block = SlotAttention(WIDTH, SIZE, dropout=0.5).block
    assert [type(layer) for layer in block.mlp] == [nn.Linear, nn.GELU, nn.Dropout, nn.Linear]
    with torch.no_grad():
        block.mlp[3].weight.zero_(), block.mlp[3].bias.zero_(), block.gather.bias.fill_(1.0)
        block.gather.weight.zero_()
    slots, inputs = torch.zeros(50, 4, SIZE), block.read(torch.randn(50, 3, WIDTH), None, None)
    slots, linear = block.linear_layers(slots)
    gathered, _ = block(slots, inputs, linear)
    assert set(gathered.flatten().tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("name", [name for name in SETS if "slot" in name or "pass" in name])
def test_slot_attention_shows_the_maps_of_every_pass(name):
    module = build(name)
    members, local, mask, wholes = samples()
    slots, maps = module.attend(local, mask)
    torch.testing.assert_close(slots, module.predict(local, mask, wholes).slots)
    assert maps.shape == (module.iterations, len(members), slots.shape[1], local.shape[1])
    for row, inputs in enumerate(members):
        for result, expected in zip(maps[:, row], naive_slots(module, inputs)[1], strict=True):
            torch.testing.assert_close(result[:, : len(inputs)], expected, atol=1e-9, rtol=0)


GRADIENTS = ["slots in order", "random slots", "slots by gru", "pie_net", "decoder"]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    module = build(name)
    _, local, mask, wholes = samples()
    parameters = [p for p in module.parameters() if p.numel() <= 64]
    leaves = [local[[0, 1], :4].requires_grad_(), wholes[:2].requires_grad_(), *parameters]

    def run(local, wholes, *_):
        return call(module, local, mask[[0, 1], :4], wholes)

    assert torch.autograd.gradcheck(run, leaves, fast_mode=True)


@pytest.mark.parametrize("name", PROTOTYPES)
def test_prototype_attention_equals_the_naive_loop(name):
    """In values and gradients; the length of a local feature does not matter."""
    module = build(name)
    members, local, mask, _ = samples()
    leaves = [module.queries, local.requires_grad_()]
    result = module(local, mask)
    expected = torch.zeros_like(result)
    for row, inputs in enumerate(members):
        units = [local[row, r] / local[row, r].norm() for r in range(len(inputs))]
        for j, query in enumerate(module.queries):
            weights = torch.stack([query @ x / module.temperature for x in units]).softmax(0)
            expected[row, j] = sum(w * x for w, x in zip(weights, units, strict=True))
    torch.testing.assert_close(result, expected, atol=1e-9, rtol=0)
    torch.testing.assert_close(module(7 * local, mask), expected, atol=1e-9, rtol=0)
    gradients = [torch.autograd.grad(x.sin().sum(), leaves) for x in (result, expected)]
    torch.testing.assert_close(*gradients, atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", ALL)
def test_half_precision_keeps_near_to_single(name):
    """Modules in half precision, and under autocast, whose scores no half could hold."""
    _, local, mask, wholes = samples()
    local, wholes = local.float(), wholes.float()
    exact = call(build(name).float(), local, mask, wholes)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = [call(build(name).float(), local, mask, wholes)]
    for dtype in (torch.float16, torch.bfloat16):
        module = build(name).float().to(dtype)
        outputs.append(call(module, local.to(dtype), mask, wholes.to(dtype)))
    for output in outputs:
        assert output.isfinite().all()
        assert (output.float() - exact).abs().mean() < 0.05


@pytest.mark.parametrize("name", ["slots by gru", "decoder"])
def test_nothing_depends_on_the_data_but_the_numbers(name):
    """The module can be exported whole: no control flow looks at a tensor's values."""
    module = build(name)
    _, local, mask, wholes = samples()
    inputs = local, mask, wholes
    exported = torch.export.export(module, inputs, strict=False).module()
    torch.testing.assert_close(exported(*inputs), module(*inputs))


@pytest.mark.parametrize(
    ("settings", "size", "message"),
    [
        ({"heads": 3}, 8, "attention_size 8 is not a multiple of 3 heads"),
        ({"attention_size": 10}, 8, "attention_size 10 is not a multiple of 4 heads"),
        ({"module": "decoder", "heads": 3}, 8, "size 8 is not a multiple of 3 heads"),
    ],
)
def test_heads_must_divide_what_they_share(settings, size, message):
    with pytest.raises(ConfigError, match=message):
        set_module(SetSettings(**settings), WIDTH, size)


def test_random_slots_are_drawn_in_training_and_fixed_in_evaluation():
    slots = SlotAttention(6, 64, 40, start="random").random
    with torch.no_grad():
        slots.mean.fill_(3.0), slots.log_std.fill_(-1.0)
    first, second = slots(50), slots(50)
    assert (first - second).abs().max() > 1 and (first[0] - first[1]).abs().max() > 1
    for drawn in (first, slots.eval()(50)):
        assert abs(drawn.mean().item() - 3) < 0.05
        assert abs(drawn.std().item() - math.exp(-1)) < 0.02
    fixed = slots(50)
    assert torch.equal(fixed, slots(7)[:1].expand(50, -1, -1))
    assert torch.equal(SlotAttention(6, 64, 40, start="random").random.noise, slots.noise)
    assert (fixed[0, 0] - fixed[0, 1]).abs().max() > 0.1
