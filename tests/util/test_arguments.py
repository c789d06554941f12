"""A wrong argument of a public function is one line that names the argument."""

from __future__ import annotations

import inspect

import pytest
import torch

from manymatch import losses, similarities
from manymatch.networks import pooling
from manymatch.util.arguments import checked, documented_shapes
from manymatch.util.errors import ConfigError, DataError, ManyMatchError

ODD = [None, "x", float("nan"), [], {}, b"x", object(), ["x"]]
EXPORTED = [
    pytest.param(getattr(package, name), id=name)
    for package in (similarities, losses, pooling)
    for name in package.__all__
    if getattr(package, name) not in (pooling.MaxPooling, pooling.MeanPooling)  # no arguments
]


@pytest.mark.parametrize("function", EXPORTED)
def test_odd_arguments_are_named_in_one_line(function):
    parameters = inspect.signature(function).parameters
    several = [
        name for name, one in parameters.items() if one.kind is inspect.Parameter.VAR_POSITIONAL
    ]
    for odd in ODD:
        given = dict.fromkeys(parameters, odd)
        rest = [given.pop(name) for name in several]
        with pytest.raises(ManyMatchError, match=r"^\S+: \w+ = ") as raised:
            function(*rest, **given)
        assert "\n" not in str(raised.value)


def test_an_argument_has_the_type_of_its_annotation():
    one, none, text = torch.ones(1, 1, 2), None, "x"
    for wrong in (none, text, one.numpy(), True, [one]):
        with pytest.raises(ConfigError, match=r"chamfer: texts = .*: expected a tensor\."):
            similarities.chamfer(one, wrong)
    with pytest.raises(ConfigError, match=r"top_match: k = 0.5: expected a whole number or None"):
        similarities.top_match(one, one, 0.5)
    with pytest.raises(ConfigError, match="slot_diversity: slots"):
        losses.slot_diversity(one, none)
    with pytest.raises(DataError, match=r"chamfer: texts = Tensor \(1, 1, 3\) .* D = 2$"):
        similarities.chamfer(one, torch.ones(1, 1, 3))
    with pytest.raises(DataError, match=r"smooth_chamfer: the arguments do not fit .*\(5,\)"):
        similarities.smooth_chamfer(one, one, torch.ones(5))
    with pytest.raises(DataError, match="specificity: the arguments do not fit"):
        losses.specificity(torch.ones(2), torch.ones(2), torch.tensor([0, -1]), 0.2)
    assert similarities.top_match(one, one, k=None).shape == (1, 1)
    assert similarities.smooth_chamfer(one, one, torch.tensor(2.0)).shape == (1, 1)


CALLED = [
    pytest.param(getattr(one, "forward", one), id=one.__name__)
    for package in (similarities, losses, pooling)
    for one in (getattr(package, name) for name in package.__all__)
]


@pytest.mark.parametrize("function", CALLED)
def test_tensors_have_the_documented_shapes(function):
    shapes = documented_shapes(function)
    annotations = function.__annotations__
    assert {name for name, kind in annotations.items() if kind == "Tensor"} <= {*shapes, "return"}
    axes = sorted({axis for stated in shapes.values() for shape in stated for axis in shape})
    sizes = {axis: int(axis) if axis.isdigit() else 2 + place for place, axis in enumerate(axes)}
    good = {
        name: [torch.ones([sizes[axis] for axis in shape]) for shape in stated]
        for name, stated in shapes.items()
    }
    parameters = inspect.signature(function).parameters
    own = {"self": None} if "self" in parameters else {}
    rest = {"temperature", "margin", "scale", "eta", "shift"} & parameters.keys()
    used = set()
    for name, stated in shapes.items():
        for place, shape in enumerate(stated):
            right = good[name][place]
            wrong = [right[None], right[0]]
            if used & set(shape):  # an axis that an argument before has
                wrong.append(torch.ones([sizes[axis] + (axis in used) for axis in shape]))
            used |= set(shape)
            for one in wrong:
                values = {**good, name: [*good[name][:place], one, *good[name][place + 1 :]]}
                given = {key: each[0] if len(each) == 1 else each for key, each in values.items()}
                several = [given.pop(key) for key in given.copy() if _is_several(parameters[key])]
                with pytest.raises(DataError, match=rf"^\S+: {name} = .*: expected the shape"):
                    function(*several, **own, **given, **dict.fromkeys(rest, 1.0))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda one: losses.info_nce(one[0], torch.zeros(2).long(), 0.0), "temperature"),
        (lambda one: losses.entity_contrastive(one[0], one[0] > 0, float("nan")), "temperature"),
        (lambda one: losses.mmd(one, one, -1), "gamma"),
        (lambda one: losses.sinkhorn(one[0], -5.0), "eta"),
        (lambda one: losses.sinkhorn(one[0], 5.0, rounds=0), "rounds"),
        (lambda one: losses.triplet(one[0], torch.zeros(2).long(), float("inf")), "margin"),
        (lambda one: similarities.smooth_chamfer(one, one, -1.0), "alpha"),
        (lambda one: similarities.match_probability(one, one, 0.0, 0.0), "scale"),
        (lambda one: similarities.top_match(one, one, 0), "k"),
        (lambda _: pooling.SlotAttention(8, 8, n_slots=0), "n_slots"),
        (lambda _: pooling.PrototypeAttention(8, 4, temperature=0.0), "temperature"),
        (lambda _: pooling.GPO(temperature=-1.0), "temperature"),
        (lambda _: pooling.PIENet(0, 8, 2), "width"),
    ],
)
def test_numbers_have_their_range(call, named):
    with pytest.raises(ConfigError, match=rf"^\S+: {named} = .*: expected (1|a) "):
        call(torch.ones(1, 2, 2))


def _is_several(parameter):
    return parameter.kind is inspect.Parameter.VAR_POSITIONAL


def test_errors_that_no_argument_causes_stay_as_they_are():
    def score(fault: str) -> None:
        raise RuntimeError(fault)

    for fault, raised in (
        ("size 3 of tensor a", DataError),
        ("CUDA error: device-side assert triggered", RuntimeError),
        ("CUDA out of memory. Tried to allocate 2 GiB", RuntimeError),
        ("DataLoader worker (pid 7) is killed by signal: Killed.", RuntimeError),
    ):
        with pytest.raises(raised, match=fault[:9]):
            checked(score, pure=True)(fault)
