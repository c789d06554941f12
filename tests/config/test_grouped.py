"""Groups given in part."""

from __future__ import annotations

import pytest

from manymatch.config.grouped import Grouped
from manymatch.config.strict import Strict, validate
from manymatch.util.errors import ConfigError


class Inner(Strict):
    depth: int = 1
    width: int = 1


class Middle(Strict):
    inner: Inner = Inner()
    name: str = "plain"


class Outer(Grouped):
    middle: Middle = Middle(inner=Inner(depth=5, width=7), name="own")
    inner: Inner = Inner(width=3)
    count: int = 2


def test_what_is_not_said_is_the_models_own():
    result = validate(Outer, {"middle": {"inner": {"depth": 6}}, "inner": {}}, "test")
    assert result == Outer(middle=Middle(inner=Inner(depth=6, width=7), name="own"))


def test_a_whole_group_may_be_given():
    assert Outer(inner=Inner(depth=4)).inner == Inner(depth=4, width=1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"middle": {"inner": {"dept": 1}}}, "middle.inner.dept'; did you mean 'depth'"),
        ({"inner": 3}, "inner"),
        ({"middel": {}}, "did you mean 'middle'"),
    ],
)
def test_faults_are_still_named(value, message):
    with pytest.raises(ConfigError, match=message):
        validate(Outer, value, "test")
