"""Names that become names of files: data sets, presets, features, models and experiments; and the
files of the methods, which are read as data, because an import would load torch."""

import ast
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from manymatch.util.errors import ConfigError, nearest

NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
MAX_LENGTH = 200
"""A file system allows 255 bytes, and files add endings such as `.relevance.parquet`."""
_OURS = (".partial", ".lock")
"""Endings of temporary files, which are removed without a question."""


def _not_temporary(name: str) -> str:
    if name.endswith(_OURS):
        raise ValueError(f"names that end with {' or '.join(_OURS)} are those of temporary files")
    return name


def _different_members(ensemble: str) -> str:
    members = ensemble.split("+")
    if len({*members}) < len(members):
        raise ValueError(f"'{ensemble}' holds a model twice")
    return ensemble


Name = Annotated[
    str, Field(pattern=f"^{NAME}$", max_length=MAX_LENGTH), AfterValidator(_not_temporary)
]
ModelPath = Annotated[str, Field(pattern=f"^{NAME}/{NAME}$", max_length=2 * MAX_LENGTH)]
"""DATASET/PRESET: a folder under `models/`."""
ParserName = Annotated[str, Field(pattern=r"^([a-z]{2,3}(_[a-z0-9]+)+|none)$", max_length=64)]
"""A pipeline of spaCy, LANGUAGE_NAME as spaCy names its packages, or "none"."""
Ensemble = Annotated[
    str,
    Field(pattern=rf"^{NAME}(\+{NAME})+$", max_length=MAX_LENGTH),
    AfterValidator(_different_members),
]
"""The members' names, joined by +."""
_CHECKED: TypeAdapter[str] = TypeAdapter(Name)


def checked_name(text: str, where: str) -> str:
    """`text`, if it is a name; `where` is the option or key that gives the name.

    Raises:
        ConfigError: `text` is not a name. A path made of `text` could lead to another folder.
    """
    try:
        return _CHECKED.validate_python(text)
    except ValidationError:
        raise ConfigError(
            f"{where}: '{text}' is not a name. A name is letters, digits and . _ - after a first "
            f"letter or digit, at most {MAX_LENGTH} characters, and does not end with "
            f"{' or '.join(_OURS)}."
        ) from None


def preset_path(presets: Path, dataset: str, name: str) -> Path:
    """The file of a preset.

    Raises:
        ConfigError: the preset or the data set does not exist; the message names the nearest name.
    """
    folder = presets / checked_name(dataset, "dataset")
    path = folder / f"{checked_name(name, 'preset')}.yaml"
    if not folder.is_dir():
        folders = [folder.name for folder in presets.glob("*/")]
        raise ConfigError(f"{path}: no presets for data set '{dataset}'{nearest(dataset, folders)}")
    if not os.path.lexists(path):  # what is no regular file has a message of its own
        known = [file.stem for file in folder.glob("*.yaml")]
        raise ConfigError(f"{path}: no such preset for data set '{dataset}'{nearest(name, known)}")
    return path


@cache
def method_names() -> tuple[str, ...]:
    """The names of all methods, those of their files, in alphabetical order."""
    return tuple(sorted(path.stem for path in _folder().glob("[!_]*.py")))


@cache
def method_titles() -> dict[str, str]:
    """Method -> the `title` of its class, which is what the papers call the method."""
    return _stated("title")


@cache
def method_papers() -> dict[str, str]:
    """Method -> the `paper` of its class: authors, place and year."""
    return _stated("paper")


def _folder() -> Path:
    spec = find_spec("manymatch")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "methods"


def _stated(attribute: str) -> dict[str, str]:
    """Method -> the text that its class gives an attribute."""
    return {
        name: ast.literal_eval(node.value)
        for name in method_names()
        for node in ast.walk(ast.parse((_folder() / f"{name}.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == attribute
    }
