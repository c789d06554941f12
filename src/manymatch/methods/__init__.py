"""The methods by name. A new one is a file here and a line in `METHODS`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from manymatch.config.strict import Strict, validate
from manymatch.system.errors import ConfigError, nearest

if TYPE_CHECKING:
    from manymatch.methods.base import Method
    from manymatch.text.vocabulary import Vocabulary
    from manymatch.text.wordpieces import AnyVocabulary

METHODS = {
    "vsepp": "manymatch.methods.vsepp:VSEPP",
    "vse_infinity": "manymatch.methods.vse_infinity:VSEInfinity",
    "pcme": "manymatch.methods.pcme:PCME",
    "swamp": "manymatch.methods.swamp:SwAMP",
    "swamp_video": "manymatch.methods.swamp_video:SwAMPVideo",
    "msrm": "manymatch.methods.msrm:MSRM",
    "pvse": "manymatch.methods.pvse:PVSE",
    "dive": "manymatch.methods.dive:DivE",
    "maxmatch": "manymatch.methods.maxmatch:MaxMatch",
    "cora": "manymatch.methods.cora:CORA",
}


def entry_point(name: str) -> str:
    """MODULE:CLASS of the method `name`; an unknown name is a `ConfigError` that suggests one."""
    if name not in METHODS:
        raise ConfigError(f"method '{name}' does not exist{nearest(name, METHODS)}")
    return METHODS[name]


def method_class(name: str) -> type[Method]:
    """The class registered as `name`; imports its module only now."""
    module, attribute = entry_point(name).split(":")
    found: type[Method] = getattr(import_module(module), attribute)
    return found


def check_model(name: str, settings: dict[str, Any]) -> Strict:
    """A preset's `model:` mapping as the method's own settings; a fault is a `ConfigError`."""
    return validate(method_class(name).Settings, settings, f"model of method '{name}'")


def vocabulary_of(name: str, settings: dict[str, Any], words: Vocabulary) -> AnyVocabulary:
    """What the method `name` numbers captions by: the training captions' `words` or wordpieces."""
    return method_class(name).vocabulary(check_model(name, settings), words)


def build_method(
    name: str, settings: dict[str, Any], *, vocabulary: AnyVocabulary, feature_width: int
) -> Method:
    """The method `name` with fresh weights (torch's seed decides them)."""
    return method_class(name)(check_model(name, settings), vocabulary, feature_width)
