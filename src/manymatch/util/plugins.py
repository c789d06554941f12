"""Methods, data sets and image features of other installed packages.

A package names each of them as an entry point of the group `manymatch.methods`,
`manymatch.datasets` or `manymatch.features`. Only installed packages count, so that a model from
elsewhere cannot choose what is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Literal

from manymatch.util.errors import ConfigError, nearest

Group = Literal["methods", "datasets", "features"]


def registered(group: Group, name: str, own: Mapping[str, str], what: str) -> str:
    """The value in `own` of the key `name`, or else the value of an entry point of this name.

    Args:
        what: what a message calls the name, such as "method".

    Raises:
        ConfigError: there is none, and the message names the nearest one; or two packages have one.
    """
    if name in own:
        return own[name]
    added = entry_points(group=f"manymatch.{group}")
    values = {one.value for one in added if one.name == name}
    if len(values) > 1:
        raise ConfigError(
            f"{what} '{name}': {' and '.join(sorted(values))} have this name. Uninstall one package"
        )
    if not values:
        raise ConfigError(f"{what} '{name}' does not exist{nearest(name, {*own, *added.names})}")
    (value,) = values
    if group != "methods" and ":" not in value:
        raise ConfigError(f"{what} '{name}': the entry point '{value}' is not MODULE:NAME")
    return value
