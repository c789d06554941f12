"""Settings that refuse unknown keys and say which known one is nearest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from manymatch.foreign.regular_file import read_regular
from manymatch.system.errors import ConfigError, first_line, nearest

Settings = TypeVar("Settings", bound=BaseModel)
_YAML_ERRORS = (yaml.YAMLError, ValueError)
"""Errors of the YAML parser; a date such as 2026-13-01 is a `ValueError`."""


class Strict(BaseModel):
    """A group of typed settings, in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def validate(model: type[Settings], value: Any, where: str) -> Settings:
    """`value` as `model`.

    Raises:
        ConfigError: a setting is wrong; one line names `where`, the key and the first fault.
    """
    if not isinstance(value, dict):
        raise ConfigError(
            f"{where}: expected a mapping of settings, not {value!r}. Write KEY: VALUE."
        )
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
    problem = fault["msg"].removeprefix("Value error, ")
    # A missing key has no value of its own, and a group's values would fill the screen.
    shows_value = fault["type"] != "missing" and not isinstance(fault["input"], dict | list)
    value = f", found {fault['input']!r}" if shows_value else ""
    return f"{where}: {key + ': ' if key else ''}{problem}{value}"


def _keys_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The known keys of the group at `path` below `model`; a whole number in `path` is a position
    in a list."""
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
    groups = (_group_in(part) for part in get_args(annotation))
    return next((group for group in groups if group is not None), None)


class _UniqueKeyLoader(yaml.SafeLoader):
    """A loader that refuses a repeated key; YAML's own loader takes the last value."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        known: set[tuple[str, str]] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in known:
                problem = f"the key '{key.value}' is given twice. Remove one of the two."
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            known.add((key.tag, key.value))
        return node


def yaml_value(text: str, where: str) -> Any:
    """The value of the YAML in `text`, which a user gave by the option `where`."""
    try:
        return yaml.safe_load(text)
    except _YAML_ERRORS:
        raise ConfigError(
            f"{where}: not a YAML value. Put a text with special characters in quotes."
        ) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        ConfigError: the file is missing or malformed; the message names the file and the line.
    """
    try:
        value = yaml.load(read_regular(path).decode("utf-8"), Loader=_UniqueKeyLoader)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    except _YAML_ERRORS as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or first_line(error)
        raise ConfigError(f"{path}{line}: {problem}") from None
    if not isinstance(value, dict):
        raise ConfigError(
            f"{path}: expected a mapping of settings. Write KEY: VALUE in every line."
        )
    return value
