"""The studies of trained models by name.

A new study is one file in this package and one line in `STUDIES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from manymatch.system.errors import ConfigError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from manymatch.experiments.studies.subject import Subject
    from manymatch.results.studies import Study


@dataclass(frozen=True)
class Kind:
    """The module and function of a study, and whether the study needs the entities of captions."""

    where: str
    entities: bool = False

    def load(self) -> Callable[[Subject], Study[Any]]:
        """Import the module and return the function."""
        module, name = self.where.split(":")
        function: Callable[[Subject], Study[Any]] = getattr(import_module(module), name)
        return function


STUDIES = {
    "rich_captions": Kind("manymatch.experiments.studies.rich_captions:rich_captions"),
    "entity_retrieval": Kind("manymatch.experiments.studies.entity_retrieval:entity_retrieval"),
    "parse_errors": Kind("manymatch.experiments.studies.parse_errors:parse_errors", entities=True),
    "reranking": Kind("manymatch.experiments.studies.reranking:reranking", entities=True),
}


def study_kind(name: str) -> Kind:
    """Look up a study; an unknown name is a `ConfigError` with the nearest name."""
    if name not in STUDIES:
        raise ConfigError(f"study '{name}' does not exist{nearest(name, STUDIES)}")
    return STUDIES[name]
