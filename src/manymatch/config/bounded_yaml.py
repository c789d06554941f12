"""Reading YAML with bounds on size, depth and aliases, so that no text exhausts time or memory."""

from __future__ import annotations

from typing import Any

import yaml

from manymatch.util.errors import first_line

MAX_BYTES = 256 * 1024
"""Limit of the size of a file. The largest file of settings has about 10 KiB."""
_MAX_DEPTH = 32
_MAX_EXPANDED = 4 * MAX_BYTES
"""Limit of the number of values and of their characters together, each alias replaced by what the
alias stands for."""


class YamlFault(Exception):
    """Why a text is not read, and the line of the fault, if it is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


class _BoundedLoader(yaml.SafeLoader):
    """A loader that refuses repeated keys, of which YAML's own loader takes the last, and texts
    beyond the bounds."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._expanded = 0
        self._sizes: dict[str | None, int] = {}
        """The size of the value of each anchor, as `_expanded` counts."""

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        before = self._expanded
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _fault(f"values are nested deeper than {_MAX_DEPTH} levels", event)
        if isinstance(event, yaml.AliasEvent):
            # An alias inside its own anchor has no size yet: the value would be infinite.
            self._expanded += self._sizes.get(event.anchor, _MAX_EXPANDED + 1)
        else:
            self._expanded += 1 + len(getattr(event, "value", ""))
        if self._expanded > _MAX_EXPANDED:
            raise _fault("too many values, after aliases are replaced by their values", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if not isinstance(event, yaml.AliasEvent) and event.anchor is not None:
            self._sizes[event.anchor] = self._expanded - before
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        known: set[tuple[str, str]] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if (key.tag, key.value) in known:
                raise _fault(f"the key '{key.value}' is given twice. Remove one of the two.", key)
            known.add((key.tag, key.value))
        return node


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    """A number, or the text of a number to the base 60 (1:30), which YAML 1.2 has given up."""
    construct = yaml.SafeLoader.yaml_constructors[node.tag]
    return node.value if ":" in node.value else construct(loader, node)


for _kind in ("int", "float"):
    _BoundedLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number)


def _fault(problem: str, where: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=where.start_mark)


def parse(text: str) -> Any:
    """The value of the YAML in `text`.

    Raises:
        YamlFault: the text is not YAML or beyond the bounds.
    """
    if len(text.encode()) > MAX_BYTES:
        raise YamlFault(f"larger than {MAX_BYTES:,} B. Check that this is a file of settings")
    try:
        return yaml.load(text, Loader=_BoundedLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise YamlFault(error.problem or first_line(error), line) from None
    except Exception as error:  # PyYAML raises almost any exception, such as KeyError for !!bool x.
        raise YamlFault(f"not valid YAML: {first_line(error)}") from None
