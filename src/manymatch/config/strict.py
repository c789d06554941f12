"""Settings that refuse unknown keys and say which known one is nearest."""

import itertools
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from manymatch.util.errors import ConfigError, DataError, first_line, nearest
from manymatch.util.regular_file import read_regular

Settings = TypeVar("Settings", bound=BaseModel)
_LARGEST = 2**63 - 1
_MOST = 100_000
"""Values in a file of settings."""
_MOST_BYTES = 2**20
"""Bytes of a file of settings; PyYAML reads about a megabyte in several seconds."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class Strict(BaseModel):
    """A group of typed settings, in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="wrap")
    @classmethod
    def _check_numbers(cls, value: Any, validated: ValidatorFunctionWrapHandler) -> Any:
        result = validated(value)
        if fault := _number_fault(value, result):
            raise ValueError(fault)
        return result


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


def _number_fault(value: Any, result: Any) -> str | None:
    """What is wrong with the numbers in `result`, a field that pydantic made of `value`.

    Pydantic takes True for 1, and whole numbers of any size.
    """
    if isinstance(result, dict) and isinstance(value, dict):
        pairs = [(value.get(key), part) for key, part in result.items()]
    elif isinstance(result, list | tuple) and isinstance(value, list | tuple):
        pairs = list(zip(value, result, strict=False))
    elif isinstance(value, bool) and not isinstance(result, bool):
        return "expected a number"
    elif isinstance(result, int) and abs(result) > _LARGEST:
        return "a number of more than 64 bits"
    else:
        return None
    return next(filter(None, (_number_fault(*pair) for pair in pairs)), None)


def group_at(value: Any, path: list[str], where: str) -> Any:
    """The group at `path` in `value`, made if it is missing; a `ConfigError` if it is a value."""
    for part in path:
        value = value.setdefault(part, {})
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: '{part}' is a value, not a group of settings")
    return value


def validate(model: type[Settings], value: Any, where: str) -> Settings:
    """`value` as `model`.

    Raises:
        ConfigError: a setting is wrong; one line names `where`, the key and the first fault.
    """
    if not isinstance(value, dict):
        raise ConfigError(
            f"{where}: expected a mapping of settings, not {_shown(value)}. Write KEY: VALUE."
        )
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ConfigError(_one_line(model, error, value, where)) from None


def _one_line(model: type[BaseModel], error: ValidationError, value: Any, where: str) -> str:
    fault, *others = error.errors()
    path = _stated_path(fault, value)
    key = ".".join(path)
    if fault["type"] == "extra_forbidden":
        return (
            f"{where}: unknown key '{key}'{nearest(path[-1], _keys_at(model, fault['loc'][:-1]))}"
        )
    # A setting of several types has a fault for each.
    faults = fault, *(other for other in others if _stated_path(other, value) == path)
    problem = " or ".join(dict.fromkeys(one["msg"].removeprefix("Value error, ") for one in faults))
    # A missing key has no value of its own, and a group's values would fill the screen.
    shows_value = fault["type"] != "missing" and not isinstance(fault["input"], dict | list)
    end = f", found {_shown(fault['input'])}" if shows_value else ""
    return f"{where}: {key + ': ' if key else ''}{problem}{end}"


def _stated_path(fault: ErrorDetails, value: Any) -> list[str]:
    """The keys in `value` that lead to `fault`. Pydantic also names the types of a union, which
    stand in no file."""
    *parts, last = fault["loc"] or (None,)
    path = []
    for part in parts:
        if part in _keys_of(value):
            value = value[part]
            path.append(str(part))
    missing = fault["type"] == "missing" and isinstance(value, dict)
    return [*path, str(last)] if missing or last in _keys_of(value) else path


def _keys_of(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value
    return range(len(value)) if isinstance(value, list) else ()


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python prints no number of more than 4,300 digits.
        return "a number of thousands of digits"


def _keys_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The known keys of the group at `path` below `model`. A part of `path` that is no field is a
    position in a list of groups, or the name of a group."""
    current: Any = model
    for part in path:
        if field := getattr(current, "model_fields", {}).get(part):
            current = _group_in(field.annotation)
    return list(getattr(current, "model_fields", ()))


def _group_in(annotation: Any) -> type[BaseModel] | None:
    """The first group of settings in a type such as `Group | None` or `tuple[Group, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_group_in, get_args(annotation))), None)


class YamlFault(Exception):
    """Why a text is not read, and the line of the fault, if it is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


class _Loader(yaml.SafeLoader):
    """A loader that refuses repeated keys, of which YAML's own loader takes the last, halves of
    surrogate pairs, which no file can hold, and aliases that stand for a billion values."""

    _composed = 0  # nodes so far

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if _SURROGATE.search(node.value):
            problem = f"{node.value!a} is not a text. Remove the escapes \\ud800 to \\udfff"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return node

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._composed += 1
        self._refuse_many(self._composed)
        return super().compose_node(parent, index)

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None:
            self._refuse_many(_count(node, {}))
        return node

    def _refuse_many(self, count: float) -> None:
        if count > _MOST:
            problem = f"more than {_MOST:,} values. Write less, or use fewer aliases"
            raise yaml.MarkedYAMLError(problem=problem)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        known: set[tuple[str, str]] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in known:
                problem = f"the key '{key.value}' is given twice. Remove one of the two."
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            known.add((key.tag, key.value))
        return node


def _count(node: yaml.Node, known: dict[int, float]) -> float:
    """The number of values in a node, in which an alias counts as what it stands for; infinite if
    a value contains itself. `known` has the counts of nodes by their `id`."""
    if id(node) not in known:
        known[id(node)] = math.inf
        parts: Iterable[yaml.Node] = ()
        if isinstance(node, yaml.SequenceNode):
            parts = node.value
        elif isinstance(node, yaml.MappingNode):
            parts = itertools.chain.from_iterable(node.value)
        known[id(node)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(node)]


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    """A number, or the text of a number to the base 60 (1:30), which YAML 1.2 has given up. 010
    would be 8 here and 10 for DVC."""
    if re.fullmatch(r"[-+]?0[0-9_]+", node.value):
        problem = f"{node.value}: a number with a leading zero. Leave the zero out"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    construct = yaml.SafeLoader.yaml_constructors[node.tag]
    return node.value if ":" in node.value else construct(loader, node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number)


def parse(text: str) -> Any:
    """The value of the YAML in `text`.

    Raises:
        YamlFault: the text is not YAML.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise YamlFault(error.problem or first_line(error), line) from None
    except Exception as error:  # PyYAML raises almost any exception, such as KeyError for !!bool x.
        raise YamlFault(f"not valid YAML: {first_line(error)}") from None


def yaml_value(text: str, where: str) -> Any:
    """The value of the YAML in `text`, which a user gave by the option `where`."""
    try:
        return parse(text)
    except YamlFault:
        raise ConfigError(
            f"{where}: not a YAML value. Put a text with special characters in quotes."
        ) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file of the user.

    Raises:
        ConfigError: the file is missing or malformed; the message names the file and the line.
    """
    try:
        content = read_regular(path, _MOST_BYTES)
        text = content.decode("utf-8")
    except FileNotFoundError:
        problem = "a link to a file that is missing" if path.is_symlink() else "no such file"
        raise ConfigError(f"{path}: {problem}") from None
    except DataError as error:
        raise ConfigError(str(error)) from None
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{number}: not UTF-8. Save the file as UTF-8") from None
    try:
        value = parse(text)
    except YamlFault as fault:
        line = f":{fault.line}" if fault.line else ""
        raise ConfigError(f"{path}{line}: {fault}") from None
    if not isinstance(value, dict):
        raise ConfigError(
            f"{path}: expected a mapping of settings. Write KEY: VALUE in every line."
        )
    return value
