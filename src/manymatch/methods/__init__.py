"""The methods by name. A new one is a file here and a line in `METHODS`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from manymatch.config.strict import validate
from manymatch.errors import ConfigError, nearest

if TYPE_CHECKING:
    from manymatch.datasets.vocabulary import Vocabulary
    from manymatch.methods.base import Method

METHODS = {
    "vsepp": "manymatch.methods.vsepp:VSEPP",
    "cora": "manymatch.methods.cora:CORA",
}


def method_class(name: str) -> type[Method]:
    """The class registered as `name`; imports its module only now."""
    if name not in METHODS:
        raise ConfigError(f"method '{name}' does not exist{nearest(name, METHODS)}")
    module, attribute = METHODS[name].split(":")
    found: type[Method] = getattr(import_module(module), attribute)
    return found


def build_method(
    name: str, settings: dict[str, Any], *, vocabulary: Vocabulary, feature_width: int
) -> Method:
    """The method `name` with fresh weights (torch's seed decides them).

    `settings` is a recipe's `model:` mapping; a key or value that does not fit is a `ConfigError`.
    """
    kind = method_class(name)
    checked = validate(kind.Settings, settings, f"model of method '{name}'")
    return kind(checked, vocabulary, feature_width)
