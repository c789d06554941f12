"""The studies by name: what more there is to learn of a trained model than its recalls.

A new one is a file here and a line in `STUDIES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from manymatch.system.errors import ConfigError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from manymatch.experiments.studies.findings import Findings
    from manymatch.experiments.studies.subject import Subject


@dataclass(frozen=True)
class Kind:
    """Where a study is, and whether it needs a method that gives captions entities."""

    where: str
    entities: bool = False

    def load(self) -> Callable[[Subject], Findings]:
        """The function; imports its module only now."""
        module, name = self.where.split(":")
        found: Callable[[Subject], Findings] = getattr(import_module(module), name)
        return found


STUDIES = {
    "rich_captions": Kind("manymatch.experiments.studies.rich_captions:rich_captions"),
    "entity_retrieval": Kind("manymatch.experiments.studies.entity_retrieval:entity_retrieval"),
    "parse_errors": Kind("manymatch.experiments.studies.parse_errors:parse_errors", entities=True),
    "reranking": Kind("manymatch.experiments.studies.reranking:reranking", entities=True),
}


def study_kind(name: str) -> Kind:
    """The study `name`; an unknown one is a `ConfigError` that names the nearest."""
    if name not in STUDIES:
        raise ConfigError(f"study '{name}' does not exist{nearest(name, STUDIES)}")
    return STUDIES[name]
