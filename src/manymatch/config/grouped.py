"""Settings whose groups may be given in part."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from manymatch.config.strict import Strict


class Grouped(Strict):
    """A field that is itself a `Strict` keeps, where a preset names only some of its keys, the
    others as this model's default has them, not as the group has them in general."""

    @model_validator(mode="before")
    @classmethod
    def _fill_groups(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        defaults = {name: field.default for name, field in cls.model_fields.items()}
        return {name: _filled(defaults.get(name), part) for name, part in value.items()}


def _filled(default: Any, part: Any) -> Any:
    if not isinstance(default, Strict) or not isinstance(part, dict):
        return part
    whole = {name: getattr(default, name) for name in type(default).model_fields}
    return whole | {name: _filled(whole.get(name), own) for name, own in part.items()}
