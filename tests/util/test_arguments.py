"""A wrong argument of a public function is one line that names the argument."""

import inspect

import pytest
import torch

from manymatch import losses, similarities
from manymatch.networks import pooling
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
    with pytest.raises(DataError, match=r"chamfer: the arguments do not fit .*\(1, 1, 3\)"):
        similarities.chamfer(one, torch.ones(1, 1, 3))
    assert similarities.top_match(one, one, k=None).shape == (1, 1)
    assert similarities.smooth_chamfer(one, one, torch.tensor(2.0)).shape == (1, 1)
