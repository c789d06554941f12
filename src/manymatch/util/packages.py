"""Packages that may be missing: those of the extras, those that bring data, and those that add
methods, data sets and image features.

A package names what it adds as an entry point of the group `manymatch.methods`,
`manymatch.datasets` or `manymatch.features`. Only installed packages count, so that a model from
elsewhere cannot choose what is imported.
"""

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal

from manymatch.util.errors import ConfigError, ManyMatchError, first_line, nearest

Group = Literal["methods", "datasets", "features"]


def extra(name: str) -> str:
    """What `pip install` takes in the clone to install an extra of pyproject.toml. The name
    `manymatch` is left out, because another project may own this name in a package registry."""
    return f"--constraint constraints.txt --editable '.[{name}]'"


def package_folder(package: str, requirement: str, advice: str) -> Path:
    """The folder of an installed `package`, which is not imported.

    Raises:
        ConfigError: the package is not installed. The message ends with the installation of
            `requirement`, or `advice`.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ConfigError(
            f"the package {package} is not installed. Run: pip install {requirement}, or {advice}"
        )
    return Path(spec.origin).parent


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


@contextlib.contextmanager
def importing(place: str, what: str) -> Iterator[None]:
    """Turn any fault of importing `place`, the value of an entry point of another package, into one
    line. A fault of a module of this package is a defect, and stays.

    Args:
        what: what a message calls the place, such as "method 'bag'".

    Raises:
        ConfigError: the module cannot be imported, or lacks the name.
    """
    try:
        yield
    except ManyMatchError:
        raise
    except (Exception, SystemExit) as error:
        if place.startswith("manymatch."):
            raise
        fault = f"{type(error).__name__}: {first_line(error)}"
        raise ConfigError(
            f"{what}: '{place}' cannot be imported ({fault}). Correct or uninstall the package"
        ) from None
