"""The studies that need ranks alone, of a model whose scores come from files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manymatch.evaluation.protocols.subject import Subject
from manymatch.evaluation.ranking.ranks import Ranking
from manymatch.experiments.studies.findings import Findings
from manymatch.experiments.studies.reranking import recalls
from manymatch.experiments.studies.rich_captions import rich_captions
from manymatch.shards.sample import CaptionEntry
from manymatch.shards.tables import read_images
from manymatch.system import files
from manymatch.system.errors import DataError
from manymatch.system.progress import say


@dataclass(frozen=True)
class External:
    """How another model ranked a split, and the split's captions with their scene graphs."""

    ranking: Ranking
    captions: list[CaptionEntry]


def study_scores(
    subject: Subject, captions: Path, graphs: Path, target: Path, identity: dict[str, Any]
) -> None:
    """Write `rich_captions` and the plain scores in `reranking`'s table to `target`.

    Without the table of scene graphs nothing is studied, and an earlier `target` is removed.

    Args:
        subject: the split as `evaluation.score` ranked it.
        captions, graphs: the data set's caption table and its scene graphs.
        identity: `dataset`, `split`, `preset` and `method` of the results.

    Raises:
        DataError: a table cannot be used, or lacks a caption of the split.
    """
    if not graphs.is_file():
        files.remove(target)
        say(f"{target.stem}: not studied, {graphs} is not there; run the stage 'scene_graphs'")
        return
    split = identity["split"]
    external = External(subject.ranking, _captions(captions, graphs, split, subject))
    plain = Findings(
        "Re-ranking by entities",
        "Another model's scores as they are: re-ranking needs scores of entities too.",
        [recalls(split, [("plain", None, subject.ranking)])],
    )
    found = {"rich_captions": rich_captions(external), "reranking": plain}
    studies = {name: findings.to_dict() for name, findings in found.items()}
    files.write_json(target, identity | {"studies": studies})


def _captions(captions: Path, graphs: Path, split: str, subject: Subject) -> list[CaptionEntry]:
    images = read_images(captions, graphs)
    by_id = {each.id: each for image in images if image.split == split for each in image.captions}
    try:
        return [by_id[caption_id] for caption_id in subject.found.caption_ids]
    except KeyError as error:
        raise DataError(f"{graphs}: no scene graph of caption {error}") from None
