"""Regular expressions of presets are matched within a bounded time."""

from __future__ import annotations

import re

import pytest

from manymatch.config import expressions
from manymatch.config.expressions import names_matching
from manymatch.util.errors import ConfigError

NAMES = ["image.encoder.cnn.weight", "text.sets.bias", "text.bert.layer.0.weight"]


@pytest.mark.parametrize(
    "expression", [r"^image\.|^text\.sets\.", "(image|text)", "x", "", "(.*)*$"]
)
def test_expressions_match_as_in_python(expression: str) -> None:
    expected = {name for name in NAMES if re.search(expression, name)}
    assert names_matching(expression, NAMES, "match") == expected


def test_an_expression_that_takes_too_long_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "_SECONDS", 0.2)
    with pytest.raises(ConfigError, match="match: the expression"):
        names_matching(r"^(?:\w|\w\w)*(?:\d|y)$", ["x" * 90 + ".y"], "match")
