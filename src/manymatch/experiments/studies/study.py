"""The command `study`: what more there is to learn of a trained model, in one JSON file.

    {"dataset", "split", "preset", "method", "seed", "checkpoint_sha256",
     "studies": {NAME: {"title", "about",
                        "tables": [{"title", "columns": [text], "rows": [[text, number or null]]}],
                        "samples": [{...}]}}}

The keys of samples are the study's own: those of `rich_captions` are `caption_id`, `caption`,
`attributes_and_relations`, `rank`; of `entity_retrieval` `image_id`, `thumbnail` (base64 JPEG or
null), `captions`, `entities: [{entity, score, true}]`; of `parse_errors` `error`, `caption_id`,
`caption`, and the graphs `before` and `after`; `reranking` has none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from manymatch.evaluation.rerank import check_entities
from manymatch.experiments.studies import STUDIES, study_kind
from manymatch.experiments.studies.subject import Subject
from manymatch.system import files
from manymatch.system.progress import say


def study(
    model: Path, shards: Path, target: Path, *, split: str = "test", only: Sequence[str] = ()
) -> None:
    """Run all studies that the method allows, or `only` the named ones, and write them to `target`.

    What `target` holds already of the same model and split stays, unless it is studied again.

    Raises:
        ConfigError: a study does not exist, or the method does not allow one of `only`.
        CheckpointError, DataError: as for `evaluate`.
    """
    for name in only:
        study_kind(name)
    subject = Subject.open(model, shards, split)
    record = subject.identity()
    found = _found_before(target, record)
    for name in only or _allowed(subject):
        kind = study_kind(name)
        if kind.entities:
            check_entities(subject.trained.method, subject.found, f"study '{name}'")
        say(f"study {name}")
        found[name] = kind.load()(subject).to_dict()
    files.write_json(target, record | {"studies": found})


def _found_before(target: Path, record: dict[str, Any]) -> dict[str, Any]:
    """The studies of the same model and split that are there; none if the file is another's."""
    try:
        before = json.loads(target.read_text(encoding="utf-8"))
        same = all(before[key] == value for key, value in record.items())
        return dict(before["studies"]) if same else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _allowed(subject: Subject) -> list[str]:
    has_entities = subject.found.texts.entities is not None
    left_out = [name for name, kind in STUDIES.items() if kind.entities and not has_entities]
    if left_out:
        say(f"not of a method without entities: {', '.join(left_out)}")
    return [name for name in STUDIES if name not in left_out]
