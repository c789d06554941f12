"""Packages that may be missing: those of the extras, and those that bring data."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from manymatch.util.errors import ConfigError


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
