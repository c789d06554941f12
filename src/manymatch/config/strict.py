"""Settings that refuse unknown keys and say which known one is nearest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from manymatch.system.errors import ConfigError, first_line, nearest

Settings = TypeVar("Settings", bound=BaseModel)
_FAULTS = (yaml.YAMLError, ValueError)
"""Of YAML; the second is a date such as 2026-13-01."""


class Strict(BaseModel):
    """A group of settings: typed, unknown keys are errors, values are not coerced silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def validate(model: type[Settings], value: Any, where: str) -> Settings:
    """`value` as `model`; the first fault becomes one line that names `where` and the key."""
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: expected a mapping of settings, found {value!r}")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ConfigError(_one_line(model, error, where)) from None


def _one_line(model: type[BaseModel], error: ValidationError, where: str) -> str:
    fault = error.errors()[0]
    path = [str(part) for part in fault["loc"]]
    key = ".".join(path)
    if fault["type"] == "extra_forbidden":
        return (
            f"{where}: unknown key '{key}'{nearest(path[-1], _keys_at(model, fault['loc'][:-1]))}"
        )
    found = "" if fault["type"] == "missing" else f", found {fault['input']!r}"
    return f"{where}: {key or 'value'}: {fault['msg']}{found}"


def _keys_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The known keys of the group at `path` below `model`; whole numbers in it are places in a
    list."""
    current: type[BaseModel] | None = model
    for part in path:
        if isinstance(part, str):
            field = current.model_fields.get(part) if current is not None else None
            current = _group_in(field.annotation) if field is not None else None
    return list(current.model_fields) if current is not None else []


def _group_in(annotation: Any) -> type[BaseModel] | None:
    """The first group of settings in a type such as `Group | None` or `tuple[Group, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_group_in(part) for part in get_args(annotation))
    return next((group for group in found if group is not None), None)


class _EachKeyOnce(yaml.SafeLoader):
    """Refuses a key that a mapping has twice, of which YAML's own loader would take the last."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        known: set[tuple[str, str]] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in known:
                problem = f"the key '{key.value}' is there twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            known.add((key.tag, key.value))
        return node


def yaml_value(text: str, where: str) -> Any:
    """What `text`, a part of the option `where`, says in YAML; a `ConfigError` if nothing."""
    try:
        return yaml.safe_load(text)
    except _FAULTS:
        raise ConfigError(f"{where}: not a YAML value; put texts with signs in quotes") from None


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping; a missing or malformed file is a `ConfigError` with file and line."""
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), Loader=_EachKeyOnce)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    except _FAULTS as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or first_line(error)
        raise ConfigError(f"{path}{line}: {problem}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a mapping of settings")
    return value
