"""Settings with groups of which a preset may give some keys alone."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from manymatch.config.strict import Strict


class Grouped(Strict):
    """Settings with fields that are groups of settings (`Strict`) themselves.

    If a preset gives some keys of a group, the other keys have the values of this class's default
    for the field, instead of the defaults of the group's class.
    """

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
    defaults = {name: getattr(default, name) for name in type(default).model_fields}
    return defaults | {name: _filled(defaults.get(name), value) for name, value in part.items()}
