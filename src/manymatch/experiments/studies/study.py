"""The command `study`: studies of a trained model in one result file (`results.studies`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from manymatch.evaluation.rerank import check_entities
from manymatch.experiments.studies.entity_retrieval import entity_retrieval
from manymatch.experiments.studies.parse_errors import parse_errors
from manymatch.experiments.studies.reranking import reranking
from manymatch.experiments.studies.rich_captions import rich_captions
from manymatch.experiments.studies.subject import Subject
from manymatch.results.studies import Studies, StudiesByName, Study
from manymatch.util.errors import ConfigError, DataError, nearest
from manymatch.util.progress import say, working

STUDIES: dict[str, Callable[[Subject], Study[Any]]] = {
    "rich_captions": rich_captions,
    "entity_retrieval": entity_retrieval,
    "parse_errors": parse_errors,
    "reranking": reranking,
}
ENTITY_STUDIES = {"parse_errors", "reranking"}
"""The studies that need the entities of captions."""


def study(
    model: Path, shards: Path, target: Path, *, split: str = "test", only: Sequence[str] = ()
) -> None:
    """Run all studies that the method allows, or `only` the named studies, and write `target`.

    Earlier studies of the same model and split in `target` are kept unless they are run again.

    Raises:
        ConfigError: a study does not exist, or the method does not allow a study of `only`.
        CheckpointError, DataError: as for `evaluate`.
    """
    for name in only:
        if name not in STUDIES:
            raise ConfigError(f"study '{name}' does not exist{nearest(name, STUDIES)}")
    subject = Subject.open(model, shards, split)
    identity = subject.identity()
    studies = _earlier_studies(target, identity)
    for name in only or _allowed(subject):
        if name in ENTITY_STUDIES:
            check_entities(subject.trained.method, subject.embedded, f"study '{name}'")
        say(f"study {name}")
        with working(f"study {name}"):
            studies[name] = STUDIES[name](subject)
    Studies(**identity, studies=StudiesByName.model_validate(studies)).write(target)


def _earlier_studies(target: Path, identity: dict[str, Any]) -> dict[str, Study[Any]]:
    """The studies in `target` if the file is of the same model and split; else none."""
    try:
        earlier = Studies.read(target)
    except DataError:
        return {}
    same = all(getattr(earlier, key) == value for key, value in identity.items())
    return earlier.studies.present() if same else {}


def _allowed(subject: Subject) -> list[str]:
    has_entities = subject.embedded.texts.entities is not None
    left_out = [name for name in STUDIES if name in ENTITY_STUDIES and not has_entities]
    if left_out:
        say(f"left out, because the method gives captions no entities: {', '.join(left_out)}")
    return [name for name in STUDIES if name not in left_out]
