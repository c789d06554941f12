"""Regular expressions in presets, which select parameters by name within a bounded time."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterable
from typing import Annotated

import regex
from pydantic import AfterValidator, Field

from manymatch.util.errors import ConfigError

_SECONDS = 5.0
"""Limit for one expression. Ordinary expressions take milliseconds, but the time of an expression
such as `(.*)*x` doubles with every character of a name."""


def _compiles(expression: str) -> str:
    try:
        with warnings.catch_warnings(action="ignore"):  # of syntax that Python may change
            re.compile(expression)  # refuses the recursion and fuzzy matching of `regex`
            regex.compile(expression)
    except (re.error, regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return expression


Expression = Annotated[str, Field(max_length=1_000), AfterValidator(_compiles)]


def names_matching(expression: str, names: Iterable[str], key: str) -> set[str]:
    """The `names` in which `expression` occurs; `key` is the setting that holds the expression.

    Raises:
        ConfigError: the search takes too much time or memory.
    """
    pattern = regex.compile(expression)
    end = time.monotonic() + _SECONDS
    try:
        return {
            name
            for name in names
            if pattern.search(name, timeout=max(end - time.monotonic(), 1e-3))
        }
    except (TimeoutError, MemoryError):
        raise ConfigError(
            f"{key}: the expression '{expression}' takes too much time or memory. "
            "Write it without a repetition inside a repetition."
        ) from None
