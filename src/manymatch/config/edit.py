"""Changes of a settings file that keep its comments, its order and the style of its lists."""

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.scalarstring import SingleQuotedScalarString
from ruamel.yaml.tokens import CommentToken

from manymatch.config.strict import YamlFault, group_at, parse, read_yaml

_LONGEST_LINE = 2**20
"""No line of a file is broken."""
_COMMENTS = r":[ ]*(?:#.*)?\n(?: *#.*\n)*"
_MAPPING = re.compile(rf"^\S.*{_COMMENTS}( +)[^\s#-]", re.MULTILINE)
"""The first indented mapping."""
_SEQUENCE = re.compile(rf"^( *)[^\s#].*{_COMMENTS}( *)- ", re.MULTILINE)
"""The first list with one entry a line."""


def edited(file: Path, changes: Mapping[str, Any]) -> str:
    """The text of the YAML file with a new value for each dotted key of `changes`.

    Raises:
        ConfigError: the file is missing or malformed, or a key leads through a value.
    """
    read_yaml(file)  # reports a malformed file in one line
    text = file.read_text(encoding="utf-8")
    yaml = _yaml(text)
    value = yaml.load(text)
    for key, setting in changes.items():
        _put(value, _quoted(key.split(".")), _quoted(setting), f"{file}: {key}")
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()


def _yaml(text: str) -> YAML:
    """A reader and writer with the indentation of `text`."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _LONGEST_LINE
    mapping = _MAPPING.search(text)
    sequence = _SEQUENCE.search(text)
    offset = len(sequence[2]) - len(sequence[1]) if sequence else 2
    yaml.indent(mapping=len(mapping[1]) if mapping else 2, sequence=offset + 2, offset=offset)
    yaml.representer.add_representer(
        type(None), lambda self, _: self.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    return yaml


def _quoted(setting: Any) -> Any:
    """The setting with quotes around each text that would be read as another value, such as no."""
    if isinstance(setting, dict):
        return {_quoted(key): _quoted(value) for key, value in setting.items()}
    if isinstance(setting, list):
        return [_quoted(entry) for entry in setting]
    try:
        plain = not isinstance(setting, str) or parse(setting) == setting
    except YamlFault:
        plain = False
    return setting if plain else SingleQuotedScalarString(setting)


def _put(value: Any, path: list[str], setting: Any, where: str) -> None:
    value = group_at(value, path[:-1], where)
    old = value.get(path[-1], value)
    if isinstance(setting, dict) and setting and isinstance(old, CommentedMap) and old:
        setting = CommentedMap(setting)
        _move_following(old, setting)
    value[path[-1]] = _styled(value.get(path[-1]), setting)


def _move_following(old: CommentedMap, new: CommentedMap) -> None:
    """Move the lines after a group, which ruamel keeps with its last value, behind `new`."""
    group, key = old, next(reversed(old))
    while isinstance(group[key], CommentedMap) and group[key]:
        group = group[key]
        key = next(reversed(group))
    comment = group.ca.items.get(key, [None] * 4)[2]
    own, _, after = comment.value.partition("\n") if comment else ("", "", "")
    if after:
        comment.value = f"{own}\n"
        following = CommentToken(f"\n{after}", CommentMark(0))
        new.ca.items[next(reversed(new))] = [None, None, following, None]


def _styled(old: Any, new: Any) -> Any:
    """A list in the style of the list that it replaces; entries that stay keep their comments."""
    if not isinstance(new, list):
        return new
    if not new or not old or not isinstance(old, CommentedSeq) or old.fa.flow_style():
        styled = CommentedSeq(new)
        styled.fa.set_flow_style()
        return styled
    # ruamel keeps the lines after a list with the comment of the last entry.
    comment, *rest = old.ca.items.pop(len(old) - 1, [None])
    own, _, after = comment.value.partition("\n") if comment else ("", "", "")
    if own or any(rest):
        kept = CommentToken(f"{own}\n", comment.start_mark) if own else None
        old.ca.items[len(old) - 1] = [kept, *rest]
    while old[:] != new[: len(old)]:
        old.pop()
    old.extend(new[len(old) :])
    comment, *rest = old.ca.items.get(len(old) - 1, [None] * 4)
    own, mark = (comment.value, comment.start_mark) if comment else ("\n", CommentMark(0))
    old.ca.items[len(old) - 1] = [CommentToken(own + after, mark), *rest]
    return old
